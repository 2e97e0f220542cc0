import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Spent } from '../../src/store/calls.ts';
import { callRow, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';
import { costing, fullCall, price } from './rows.ts';

export function callSuite(open: OpenStore): void {
  describe('calls', () => {
    const opened = eachWith(open);

    it('keeps a call as it was given, absent members absent', async () => {
      const bare = callRow('c1');
      const empty = callRow('c3', { charged: {} });
      await opened.store.calls.record([bare, fullCall, empty]);
      assert.deepEqual(await opened.store.calls.find('c1'), bare);
      assert.deepEqual(await opened.store.calls.find('c2'), fullCall);
      assert.deepEqual(await opened.store.calls.find('c3'), empty);
      assert.equal(await opened.store.calls.find('c4'), undefined);
      await opened.store.calls.record([]);
    });

    it('keeps the price of each call, also when the next one has another', async () => {
      const changed = { ...price, source: 'gateway.yaml:13' };
      await opened.store.calls.record([
        callRow('c1', costing(5)),
        callRow('c2', { ...costing(6), price: changed }),
        callRow('c3', costing(7)),
      ]);
      const found = await Promise.all(['c1', 'c2', 'c3'].map((id) => opened.store.calls.find(id)));
      assert.deepEqual(
        found.map((row) => row?.price),
        [price, changed, price],
      );
    });

    it('K5 F8 counts a row that comes twice once everywhere, and never overwrites one', async () => {
      const { store } = opened;
      await store.calls.record([fullCall, callRow('c1')]);
      await store.calls.record([fullCall, callRow('c1', { model: 'other' }), callRow('c3')]);
      await store.calls.record([callRow('c4'), callRow('c4', { keyId: 'k9' })]);
      const { calls } = await store.calls.list({ limit: 10 });
      assert.deepEqual(
        calls.map((row) => `${row.id} ${row.model} ${row.keyId}`),
        ['c2 local/tiny k1', 'c4 local/tiny k1', 'c3 local/tiny k1', 'c1 local/tiny k1'],
      );
      assert.deepEqual(await store.calls.find('c2'), fullCall);
      const [usage, ...others] = await store.calls.usage({ by: 'key', since: 0 });
      assert.deepEqual(others, []);
      assert.equal(usage?.calls, 4);
      assert.equal(usage?.nanodollars, 28);
      assert.deepEqual(
        (await store.calls.spent(march)).map(({ nanodollars }) => nanodollars),
        [28, 28],
      );
    });

    it('Q3 adds a cost to its budgets in the windows of the call', async () => {
      const { store } = opened;
      const month = { counter: 'key:k1:month', window: '2026-03', endsAt: march + 1000 };
      const day = { counter: 'key:k1:day', window: '2026-03-01', endsAt: march + 10 };
      const ever = { counter: 'tag:x:ever', window: 'ever' };
      await store.calls.record([
        callRow('c1', { ...costing(5), budgets: [month, day] }),
        callRow('c2', { ...costing(7), budgets: [month, ever] }),
        callRow('c3', { budgets: [month] }),
      ]);
      await store.calls.record([callRow('c4', { ...costing(100), budgets: [ever] })]);
      const spent = async (after: number): Promise<readonly string[]> =>
        (await store.calls.spent(after))
          .map(({ counter, window, nanodollars }) => `${counter} ${window} ${nanodollars}`)
          .toSorted();
      const of = await store.calls.spent(march + 500, ['key:k1:day', 'key:k1:month', 'key:k2:day']);
      assert.deepEqual(of, [{ counter: 'key:k1:month', window: '2026-03', nanodollars: 12 }]);
      assert.deepEqual(await store.calls.spent(march, []), []);
      assert.deepEqual(await spent(march), [
        'key:k1:day 2026-03-01 5',
        'key:k1:month 2026-03 12',
        'tag:x:ever ever 107',
      ]);
      assert.deepEqual(await spent(march + 10), ['key:k1:month 2026-03 12', 'tag:x:ever ever 107']);
      assert.deepEqual(await spent(march + 1000), ['tag:x:ever ever 107']);
      const inPortions: string[] = [];
      let after: Spent | undefined;
      do {
        const page = { limit: 1, ...(after === undefined ? {} : { after }) };
        [after] = await store.calls.spentPage(march, page);
        if (after !== undefined)
          inPortions.push(`${after.counter} ${after.window} ${after.nanodollars}`);
      } while (after !== undefined);
      assert.deepEqual(inPortions, await spent(march));
      assert.deepEqual(
        await store.calls.spentPage(march + 1000, { limit: 9 }),
        await store.calls.spent(march + 1000),
      );
    });
  });
}
