/** The store of a worker is its parent's: the suite of all stores, over a socket. */
import { join } from 'node:path';
import { MemoryCounters } from '../../src/store/counters/memory-counters.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { storeSuite } from '../store/store-suite.ts';
import { temporaryFolder } from '../support/folders.ts';
import { HeldClock, silentLog } from '../unit/access/fakes.ts';
import { linkedStore } from './linked.ts';

const folder = temporaryFolder('worker-store');
let files = 0;

storeSuite('of a worker', async () => {
  files += 1;
  const store = await openSqliteStore({ path: join(folder, `${files}.db`), log: silentLog });
  return linkedStore(store, new MemoryCounters(new HeldClock()));
});
