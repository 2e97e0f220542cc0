import { after, test } from 'node:test';
import { noPostgres, startPostgres } from '../support/postgres.ts';
import { openTestStore } from '../support/postgres-store.ts';
import { storeSuite } from './store-suite.ts';

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else {
  after(() => server.close());
  const open = async () => (await openTestStore(await server.makeDatabase())).store;
  storeSuite('postgres', open, 'shared');
}
