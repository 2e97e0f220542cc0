import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { storeSuite } from './store-suite.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-store-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

storeSuite('sqlite', () => {
  files += 1;
  return openSqliteStore({ path: join(folder, `${files}.db`), log: silentLog });
});
