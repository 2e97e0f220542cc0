import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallRow, OpenCall } from '../../src/store/store.ts';
import { callRow, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';
import { costing, fullCall } from './rows.ts';

/** A running call as it shall stand when its process dies. */
function running(id: string, seenAt: number, change: Partial<CallRow> = {}): OpenCall {
  const cut = { outcome: 'failed', error: 'interrupted', usageSource: 'estimated' } as const;
  return { row: callRow(id, { ...cut, ...change }), seenAt };
}

export function openCallSuite(open: OpenStore, kind: 'own' | 'shared'): void {
  describe('running calls', () => {
    const opened = eachWith(open);

    it('F81 a call without an end is recorded as last seen, once, with its cost', async () => {
      const { store } = opened;
      const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];
      const first = running('c1', march, { ...costing(10), budgets });
      const later = running('c1', march + 5000, { ...costing(30), budgets, totalMs: 5000 });
      await store.calls.open([first]);
      await store.calls.open([later, { row: fullCall, seenAt: march }]);
      const { calls } = await store.calls.list({ limit: 10 });
      assert.deepEqual(calls, []);
      assert.deepEqual(await store.calls.spent(march), []);
      assert.deepEqual(await store.calls.settleOrphans(Infinity), [later.row, fullCall]);
      assert.deepEqual(await store.calls.find('c1'), later.row);
      assert.deepEqual(await store.calls.find('c2'), fullCall);
      assert.deepEqual(await store.calls.settleOrphans(Infinity), []);
      const spent = new Map((await store.calls.spent(march)).map((row) => [row.counter, row]));
      assert.equal(spent.get('key:k1:ever')?.nanodollars, 30);
      assert.equal((await store.calls.usage({ by: 'model', since: 0 }))[0]?.calls, 2);
    });

    it('F81 a call that ended is no orphan, and a late sign of life does not open it again', async () => {
      const { store } = opened;
      await store.calls.open([running('c1', march), running('c2', march)]);
      await store.calls.record([callRow('c1', { totalMs: 99 })]);
      await store.calls.open([running('c1', march + 1)]);
      const [orphan, ...others] = await store.calls.settleOrphans(Infinity);
      assert.equal(orphan?.id, 'c2');
      assert.deepEqual(others, []);
      assert.equal((await store.calls.find('c1'))?.totalMs, 99);
    });

    it('F81 only calls that were not seen for long are orphans', async () => {
      const { store } = opened;
      await store.calls.open([running('c1', march), running('c2', march + 10)]);
      await store.calls.open([]);
      const [orphan, ...others] = await store.calls.settleOrphans(march + 10);
      assert.equal(orphan?.id, 'c1');
      assert.deepEqual(others, []);
      await store.calls.open([running('c2', march + 20)]);
      assert.deepEqual(await store.calls.settleOrphans(march + 20), []);
    });

    it('Q3 an end that comes after the call was given up counts once', async () => {
      const { store } = opened;
      const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];
      await store.calls.open([running('c1', march, { ...costing(10), budgets })]);
      await store.calls.settleOrphans(Infinity);
      const late = callRow('c1', { ...fullCall, ...costing(99), id: 'c1', budgets });
      await store.calls.record([late]);
      await store.calls.record([late, callRow('c1', costing(5))]);
      // Only on a shared store can somebody be alive who knows better than the estimate.
      const total = kind === 'shared' ? 99 : 10;
      const found = await store.calls.find('c1');
      assert.equal(found?.cost?.total, total);
      if (kind === 'shared') assert.deepEqual(found, late);
      for (const by of ['key', 'day', 'hour', 'provider'] as const) {
        const [sums, ...others] = await store.calls.usage({ by, since: 0 });
        assert.deepEqual([sums?.calls, sums?.nanodollars, others], [1, total, []], by);
      }
      const [spent] = await store.calls.spent(march);
      assert.equal(spent?.nanodollars, total);
    });
  });
}
