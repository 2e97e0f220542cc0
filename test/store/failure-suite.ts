import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Failure } from '../../src/core/faults.ts';
import type { CallRow } from '../../src/store/store.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';

const limited: Failure = {
  fault: 'limit',
  message: 'Rate limit of this key (k1): 2 requests per minute, 0 left.',
  limit: 'key:k1:requests',
};
const unpriced: Failure = {
  fault: 'limit',
  reason: 'price_unknown',
  message: 'The price of openai/gpt-9 is not known.',
};
const busy: Failure = { fault: 'provider', message: 'Slow down.' };

function failedCall(id: string, row: Partial<CallRow>): CallRow {
  return callRow(id, { outcome: 'failed', charged: {}, ...row });
}

const rows: readonly CallRow[] = [
  callRow('good'),
  failedCall('l1', { startedAt: march + 1, error: 'rate_limited', status: 429, failure: limited }),
  failedCall('l2', {
    startedAt: march + day,
    error: 'rate_limited',
    status: 429,
    failure: { ...limited, message: 'The newest.' },
  }),
  failedCall('u1', {
    startedAt: march + 2,
    error: 'invalid_request',
    status: 400,
    failure: unpriced,
  }),
  failedCall('p1', {
    startedAt: march + 3,
    keyId: 'k2',
    team: 'red',
    provider: 'openai',
    upstreamModel: 'gpt-5',
    error: 'rate_limited',
    status: 429,
    failure: busy,
    totalMs: 900,
  }),
  failedCall('none', { startedAt: march + 4, error: 'model_not_found', model: 'made up' }),
  callRow('left', { startedAt: march + 5, outcome: 'canceled', error: 'canceled' }),
];

export function failureSuite(open: OpenStore): void {
  describe('failures', () => {
    const opened = eachWith(open);

    it('come back as they were written', async () => {
      const { store } = opened;
      await store.calls.record(rows);
      assert.deepEqual((await store.calls.find('u1'))?.failure, unpriced);
      assert.deepEqual((await store.calls.find('l1'))?.failure, limited);
      assert.equal((await store.calls.find('good'))?.failure, undefined);
    });

    it('are summed by whose fault they were: from days, hours and the calls themselves', async () => {
      const { store } = opened;
      await store.calls.record(rows);
      for (const until of [march + 2 * day, march + day / 24, march + 6]) {
        const sums = await store.calls.usage({ by: 'key', since: march, until });
        const told = sums.map(({ group, failed, failedLimit, ...sum }) => {
          const others = [sum.failedClient, sum.failedProvider, sum.failedGateway];
          return [group, failed, failedLimit, ...others];
        });
        const limits = until > march + day ? 3 : 2;
        assert.deepEqual(told, [
          ['k1', limits + 1, limits, 0, 0, 0],
          ['k2', 1, 0, 0, 1, 0],
        ]);
      }
      const asked = { step: 'day', since: march, until: march + 2 * day, groups: 8 } as const;
      const series = await store.calls.series(asked);
      assert.deepEqual(
        series.map((sum) => [sum.failedLimit, sum.failedProvider]),
        [
          [2, 1],
          [1, 0],
        ],
      );
    });

    it('are grouped by what they have in common, with the newest call of each', async () => {
      const { store } = opened;
      await store.calls.record(rows);
      const period = { since: march, until: march + 2 * day };
      const { groups, isCut } = await store.calls.failures(period);
      assert.equal(isCut, false);
      const told = groups
        .toSorted((a, b) => (a.last.id < b.last.id ? -1 : 1))
        .map((group) => [group.calls, group.fault, group.error, group.limit, group.last]);
      assert.deepEqual(told, [
        [2, 'limit', 'rate_limited', 'key:k1:requests', last('l2', day, 'The newest.')],
        [1, '', 'model_not_found', '', last('none', 4, '')],
        [1, 'provider', 'rate_limited', '', last('p1', 3, busy.message)],
        [1, 'limit', 'invalid_request', '', last('u1', 2, unpriced.message)],
      ]);
      const made = groups.find(({ error }) => error === 'model_not_found');
      assert.equal(made?.model, '');
      const ofRed = await store.calls.failures({ ...period, filter: { team: 'red' } });
      assert.deepEqual(
        ofRed.groups.map(({ key, provider, status }) => [key, provider, status]),
        [['k2', 'openai', 429]],
      );
      const ofLimits = await store.calls.failures({
        ...period,
        until: march + day,
        fault: 'limit',
      });
      assert.deepEqual(ofLimits.groups.map(({ calls }) => calls).toSorted(), [1, 1]);
    });

    it('are found by fault, error and reason, and calls by model, cost and time', async () => {
      const { store } = opened;
      await store.calls.record(rows);
      const ids = async (query: object): Promise<readonly string[]> =>
        (await store.calls.list({ limit: 10, ...query })).calls.map(({ id }) => id);
      assert.deepEqual(await ids({ fault: 'limit' }), ['l2', 'u1', 'l1']);
      assert.deepEqual(await ids({ error: 'rate_limited' }), ['l2', 'p1', 'l1']);
      assert.deepEqual(await ids({ reason: 'price_unknown' }), ['u1']);
      assert.deepEqual(await ids({ upstreamModel: 'gpt-5' }), ['p1']);
      assert.deepEqual(await ids({ minMs: 900 }), ['p1']);
      assert.deepEqual(await ids({ minNanodollars: 1, key: 'k1' }), []);
    });
  });
}

function last(id: string, after: number, message: string): object {
  return { at: march + after, id, message };
}
