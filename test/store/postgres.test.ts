import { openTestStore } from '../support/postgres-store.ts';
import { withPostgres } from '../support/with-servers.ts';
import { storeSuite } from './store-suite.ts';

await withPostgres((postgres) => {
  let made: Promise<string> | undefined;
  const open = async () => {
    made ??= postgres.makeDatabase();
    const url = await made;
    // The tests follow one another, and each closes its store.
    await postgres.empty(url);
    return (await openTestStore(url)).store;
  };
  storeSuite('postgres', open, 'shared');
});
