import { openTestStore } from '../support/postgres-store.ts';
import { withPostgres } from '../support/with-servers.ts';
import { storeSuite } from './store-suite.ts';

await withPostgres((postgres) => {
  const open = async () => (await openTestStore(await postgres.makeDatabase())).store;
  storeSuite('postgres', open, 'shared');
});
