/** Counters in PostgreSQL, on a real server whose clock the tests hold. */
import { after, test } from 'node:test';
import { noPostgres, startPostgres } from '../support/postgres.ts';
import { openPostgresRig } from './postgres-rig.ts';
import { leases } from './leases.ts';
import { properties } from './properties.ts';
import { suite } from './suite.ts';

const server = await startPostgres();
if (server === undefined) {
  test(noPostgres, () => {});
} else {
  const rig = await openPostgresRig(server);
  // Without what other tests left: two hundred lost calls are told at once.
  const lonely = await openPostgresRig(server);
  after(async () => {
    await rig.close();
    await lonely.close();
    await server.close();
  });
  suite('postgres', () => rig);
  properties('postgres', () => rig, 25);
  leases('postgres', () => lonely, {
    book: async (rows) => void (await lonely.store.store.recordLost(rows)),
    bookReal: (rows) => lonely.store.store.recordCalls(rows),
  });
}
