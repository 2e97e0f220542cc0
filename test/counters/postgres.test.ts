/** Counters in PostgreSQL, on a real server whose clock the tests hold. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { noPostgres, startPostgres } from '../support/postgres.ts';
import { openPostgresRig } from './postgres-rig.ts';
import { leases } from './leases.ts';
import { properties } from './properties.ts';
import { drawOf } from './rig.ts';
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

  test('Q2 a call that settles while its hold is on its way leaves nothing held', async () => {
    const { counters, url, clock } = lonely;
    const now = (body: string): Promise<unknown> =>
      server.query(
        `CREATE OR REPLACE FUNCTION counter_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$ ${body} $$`,
        url,
      );
    const usual = `SELECT ${clock.wall()}::bigint`;
    // A row of a hold asks for the time before it is there.
    await now(`SELECT pg_sleep(0.5); ${usual}`);
    const place = { counter: 'key:moved:ever', window: 'ever' };
    const wanted = drawOf({
      budgets: [{ ...place, endsAt: undefined, nanodollars: 10, amount: 7 }],
    });
    const taking = counters.takeMoney([wanted]);
    counters.settle(wanted.callId, { tokens: 0, nanodollars: 5 });
    await taking;
    await counters.settled();
    await now(usual);
    assert.equal((await counters.balance(place.counter, place.window)).open, 0);
  });
}
