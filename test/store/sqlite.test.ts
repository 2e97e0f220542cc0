import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { temporaryFolder } from '../support/folders.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { storeSuite } from './store-suite.ts';

const folder = temporaryFolder('store');
let files = 0;

storeSuite('sqlite', () => {
  files += 1;
  return openSqliteStore({ path: join(folder, `${files}.db`), log: silentLog });
});
