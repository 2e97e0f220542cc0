import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SeriesQuery } from '../../src/store/store.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';
import { costing } from './rows.ts';

const hour = day / 24;
const minute = hour / 60;

export function seriesSuite(open: OpenStore): void {
  describe('series', () => {
    const opened = eachWith(open);

    async function points(query: Partial<SeriesQuery>): Promise<readonly string[]> {
      const wanted = { step: 'hour', since: march, until: march + day, groups: 10 } as const;
      const rows = await opened.store.series({ ...wanted, ...query });
      return rows.map(({ group, at, calls, failed }) => {
        const time = new Date(at).toISOString().slice(8, 16);
        return `${group} ${time} ${calls} ${failed}`;
      });
    }

    it('issue 8 sums by step and group, the group with the most calls first', async () => {
      await opened.store.recordCalls([
        callRow('c1', { model: 'a', startedAt: march + 1 }),
        callRow('c2', { model: 'b', startedAt: march + 2, outcome: 'failed' }),
        callRow('c3', { model: 'b', startedAt: march + hour + minute, provider: 'p' }),
        callRow('c4', { model: 'b', startedAt: march + hour + 2 * minute, ...costing(5) }),
        callRow('before', { model: 'a', startedAt: march - 1 }),
        callRow('after', { model: 'a', startedAt: march + day }),
      ]);
      assert.deepEqual(await points({ by: 'model' }), [
        'b 01T00:00 1 1',
        'b 01T01:00 2 0',
        'a 01T00:00 1 0',
      ]);
      assert.deepEqual(await points({}), [' 01T00:00 2 1', ' 01T01:00 2 0']);
      assert.deepEqual(await points({ step: 'day' }), [' 01T00:00 4 1']);
      assert.deepEqual(await points({ step: 'minute', until: march + 2 * hour }), [
        ' 01T00:00 2 1',
        ' 01T01:01 1 0',
        ' 01T01:02 1 0',
      ]);
      assert.deepEqual(await points({ by: 'provider', groups: 1 }), [
        ' 01T00:00 2 1',
        ' 01T01:00 1 0',
      ]);
      assert.deepEqual(await points({ by: 'key', filter: { model: 'a' } }), ['k1 01T00:00 1 0']);
      const [first] = await opened.store.series({
        step: 'day',
        since: march,
        until: march + day,
        groups: 1,
      });
      assert.deepEqual([first?.inputTokens, first?.pricedCalls, first?.nanodollars], [40, 1, 5]);
    });

    it('issue 8 an end within a step counts only what lies within', async () => {
      await opened.store.recordCalls(
        [1, 20, 40].map((at) => callRow(`c${at}`, { startedAt: march + at * minute })),
      );
      assert.deepEqual(await points({ since: march + 10 * minute, until: march + 30 * minute }), [
        ' 01T00:00 1 0',
      ]);
    });
  });

  describe('a sample of latencies', () => {
    const opened = eachWith(open);

    it('issue 8 takes calls that ended well, of the wanted groups, in the period', async () => {
      const { store } = opened;
      await store.recordCalls([
        callRow('c1', { totalMs: 1, firstEventMs: 0.5, team: 'red', provider: 'p', tags: ['x'] }),
        callRow('c2', { totalMs: 2, startedAt: march + hour, model: 'm', keyId: 'k2' }),
        callRow('c3', { totalMs: 3, startedAt: march + hour, outcome: 'failed' }),
        callRow('c4', { totalMs: 4, startedAt: march + day }),
        callRow('c5', { totalMs: 5, startedAt: march - 1 }),
      ]);
      const period = { since: march, until: march + day, slices: 24 };
      const all = await store.sampleLatency(period);
      assert.deepEqual(
        all.map(({ totalMs, firstEventMs }) => [totalMs, firstEventMs]),
        [
          [1, 0.5],
          [2, undefined],
        ],
      );
      assert.deepEqual(all[0], { ...all[0], startedAt: march, keyId: 'k1', provider: 'p' });
      for (const filter of [
        { key: 'k1' },
        { team: 'red' },
        { provider: 'p' },
        { tag: 'x' },
        { model: 'local/tiny' },
      ]) {
        const found = await store.sampleLatency({ ...period, filter });
        assert.deepEqual(
          found.map(({ totalMs }) => totalMs),
          [1],
          JSON.stringify(filter),
        );
      }
    });

    it('L5 of many calls it takes some thousand, from all parts of the period', async () => {
      const { store } = opened;
      const rows = Array.from({ length: 15_000 }, (_, i) =>
        callRow(`c${i}`, { startedAt: march + i * 1000, totalMs: i }),
      );
      for (let i = 0; i < rows.length; i += 1000) await store.recordCalls(rows.slice(i, i + 1000));
      const until = march + 15_000_000;
      const sample = await store.sampleLatency({ since: march, until, slices: 10 });
      assert.ok(sample.length > 2000 && sample.length <= 6_000, `${sample.length} calls`);
      for (let part = 0; part < 10; part++) {
        const own = sample.filter(({ totalMs }) => Math.floor(totalMs / 1500) === part);
        assert.ok(own.length > 200 && own.length <= 600, `${own.length} in part ${part}`);
      }
    });
  });
}
