/** Calls of gateways that are gone, on the shared book: none holds up the others, none is booked twice. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { openTestStore, type TestStore } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import { costing } from './rows.ts';

await withPostgres(lostCalls);

const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];
const cut = { outcome: 'failed', error: 'interrupted', usageSource: 'estimated' } as const;

function lostCalls(postgres: TestPostgres): void {
  const stores: TestStore[] = [];
  const open = async (): Promise<TestStore & { readonly url: string }> => {
    const url = await postgres.makeDatabase();
    const opened = await openTestStore(url);
    stores.push(opened);
    return { ...opened, url };
  };
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((each) => each.close()));
  });

  describe('calls of gateways that are gone', () => {
    it('F81 Q2: an orphan that cannot be recorded is laid aside, and holds up no other', async () => {
      const { store, url, spoolDirectory, log } = await open();
      const ids = ['c1', 'c2', 'c3', 'c4', 'c5'];
      const row = (id: string) => callRow(id, { ...cut, ...costing(10), budgets });
      await store.calls.open(ids.map((id) => ({ row: row(id), seenAt: march })));
      await postgres.query(`UPDATE open_calls SET call = '["half' WHERE id = 'c1'`, url);
      await postgres.query(
        `UPDATE open_calls SET call = replace(call, '"c3"', '"c\\u00003"') WHERE id = 'c3'`,
        url,
      );
      const settled = await store.calls.settleOrphans(Infinity);
      assert.deepEqual(settled.map(({ id }) => id).toSorted(), ['c2', 'c4', 'c5']);
      assert.equal((await store.calls.spent(0))[0]?.nanodollars, 30);
      const aside = readFileSync(join(spoolDirectory, 'orphans.unread'), 'utf8');
      assert.match(aside, /"id":"c1".*half.*\n.*"id":"c3"/);
      assert.equal(log.filter((line) => line.startsWith('orphan_refused')).length, 2);
      assert.deepEqual(await store.calls.settleOrphans(Infinity), []);
    });

    it('Q1 Q3: what others book of a call is booked once, and gives way to the real row', async () => {
      const { store, url } = await open();
      const lost = callRow('gone', { ...cut, ...costing(50), charged: {}, budgets });
      await store.calls.open([{ row: lost, seenAt: march }]);
      await Promise.all([store.calls.settleOrphans(Infinity), store.calls.settleOrphans(Infinity)]);
      assert.equal((await store.calls.spent(0))[0]?.nanodollars, 50);
      await Promise.all([
        store.calls.record([callRow('gone', { ...costing(20), budgets })]),
        store.calls.record([callRow('gone', { ...costing(20), budgets })]),
        store.calls.settleOrphans(Infinity),
      ]);
      assert.equal((await store.calls.spent(0))[0]?.nanodollars, 20);
      const [sums] = await store.calls.usage({ by: 'key', since: 0 });
      assert.deepEqual([sums?.calls, sums?.nanodollars, sums?.failed], [1, 20, 0]);
      for (const by of ['model', 'team', 'provider'] as const) {
        const period = { since: march, until: march + day, step: 'day', groups: 9 } as const;
        const told = (await store.calls.series({ ...period, by })).map(
          ({ calls, nanodollars, failed }) => [calls, nanodollars, failed],
        );
        assert.deepEqual(told, [[1, 20, 0]], by);
      }
      const [empty] = await postgres.query(
        'SELECT count(*)::integer AS n FROM total_hours WHERE calls = 0',
        url,
      );
      assert.deepEqual(empty, { n: 0 });
      const [tries] = await postgres.query('SELECT count(*)::integer AS n FROM attempts', url);
      assert.deepEqual(tries, { n: 0 });
    });
  });
}
