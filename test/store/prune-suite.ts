import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { totalKinds } from '../../src/store/roll-up.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';
import { costing, fullCall } from './rows.ts';

const hour = day / 24;

async function pruneAll(store: Store, before: { calls: number; hours: number }): Promise<number> {
  const retention = { callsBefore: before.calls, hoursBefore: before.hours };
  let all = 0;
  for (;;) {
    const pruned = await store.calls.prune(retention, 3);
    assert.ok(pruned <= 3, `${pruned} at once`);
    all += pruned;
    if (pruned < 3) return all;
  }
}

export function pruneSuite(open: OpenStore): void {
  describe('retention', () => {
    const opened = eachWith(open);

    async function ids(): Promise<readonly string[]> {
      return (await opened.store.calls.list({ limit: 100 })).calls.map((row) => row.id);
    }

    async function total(since: number, until?: number): Promise<number> {
      const query = { by: 'key', since, ...(until === undefined ? {} : { until }) } as const;
      return (await opened.store.calls.usage(query)).reduce((sum, row) => sum + row.calls, 0);
    }

    it('L3 removes old calls with their attempts in bounded steps; the sums stay', async () => {
      const { store } = opened;
      const old = Array.from({ length: 10 }, (_, i) =>
        callRow(`c${i}`, {
          ...costing(1),
          startedAt: march + i,
          attemptRows: fullCall.attemptRows,
        }),
      );
      await store.calls.record([...old, callRow('new', { startedAt: march + day })]);
      assert.equal(await pruneAll(store, { calls: march + day, hours: 0 }), 10);
      assert.deepEqual(await ids(), ['new']);
      assert.equal(await store.calls.find('c1'), undefined);
      assert.equal(await total(march), 11);
      assert.equal((await store.calls.usage({ by: 'hour', since: march }))[0]?.nanodollars, 10);
      assert.equal(await pruneAll(store, { calls: march + day, hours: 0 }), 0);
    });

    it('L3 a time that begins or ends in pruned hours is moved to whole hours', async () => {
      const { store } = opened;
      await store.calls.record(
        [0, 30, 61, 90, 150].map((minutes) =>
          callRow(`c${minutes}`, { startedAt: march + minutes * 60_000 }),
        ),
      );
      assert.equal(await total(march + 45 * 60_000), 3);
      // The hour that has begun is kept: its roll-up could not tell its minutes apart.
      assert.equal(await pruneAll(store, { calls: march + 2 * hour + 5, hours: 0 }), 4);
      assert.deepEqual(await ids(), ['c150']);
      assert.equal(await total(march + 45 * 60_000), 5);
      assert.equal(await total(march, march + 45 * 60_000), 2);
      assert.equal(await total(march + 2 * hour + 60_000), 1);
      assert.equal(await total(march + 2 * hour + 40 * 60_000), 0);
    });

    it('L3 sums by hour become sums by day; those stay', async () => {
      const { store } = opened;
      await store.calls.record(
        [0, 5, 30, 47, 50].map((hours) =>
          callRow(`c${hours}`, { startedAt: march + hours * hour }),
        ),
      );
      const counted = async (): Promise<readonly string[]> => {
        const whole = { since: march, until: march + 3 * day, step: 'day', groups: 9 } as const;
        return (await store.calls.series(whole)).map(({ at, calls }) => `${at - march} ${calls}`);
      };
      const before = await counted();
      // Four calls, and for each of their hours the sums of its group and a total of each kind.
      const retention = { calls: march + 2 * day, hours: march + 2 * day };
      assert.equal(await pruneAll(store, retention), 4 + 4 * (1 + totalKinds.length));
      assert.deepEqual(await counted(), before);
      assert.deepEqual(before, ['0 2', `${day} 2`, `${2 * day} 1`]);
      assert.equal(await total(march), 5);
      assert.equal(await total(march + 3 * hour), 5);
      assert.equal(await total(march, march + 3 * hour), 2);
      const hours = await store.calls.usage({ by: 'hour', since: march });
      assert.deepEqual(
        hours.map((row) => `${row.group} ${row.calls}`),
        ['2026-03-01 2', '2026-03-02 2', '2026-03-03T02:00Z 1'],
      );
    });

    it('K7 spending goes only when its window is long over', async () => {
      const { store } = opened;
      const budgets = [
        { counter: 'a', window: '1', endsAt: march + day },
        { counter: 'b', window: '2', endsAt: march + 2 * day + 1 },
        { counter: 'c', window: 'ever' },
      ];
      await store.calls.record([callRow('c1', { ...costing(5), budgets })]);
      await pruneAll(store, { calls: march + 2 * day, hours: march + 2 * day });
      const left = (await store.calls.spent(0)).map(({ counter }) => counter);
      assert.deepEqual(left.toSorted(), ['b', 'c']);
    });
  });
}
