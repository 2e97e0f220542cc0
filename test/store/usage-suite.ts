import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UsageGrouping, UsageQuery } from '../../src/store/store.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';
import { costing } from './rows.ts';

const hour = day / 24;

export function usageSuite(open: OpenStore): void {
  describe('usage', () => {
    const opened = eachWith(open);

    async function counts(query: Partial<UsageQuery>): Promise<readonly string[]> {
      const rows = await opened.store.calls.usage({ by: 'key', since: 0, ...query });
      return rows.map((row) => `${row.group}: ${row.calls}`);
    }

    it('sums by every grouping; all three input classes are input', async () => {
      const { store } = opened;
      await store.calls.record([
        callRow('c1', {
          provider: 'p',
          upstreamModel: 'm',
          team: 'red',
          tags: ['x', 'y'],
          charged: {
            freshInputTokens: 1,
            cacheReadTokens: 20,
            cacheWriteTokens: 300,
            cacheWriteLongTokens: 100,
            outputTokens: 7,
            reasoningTokens: 2,
            audioInputTokens: 1,
            imageInputTokens: 2,
            videoInputTokens: 3,
            audioOutputTokens: 4,
            imageOutputTokens: 5,
            webSearches: 6,
            images: 7,
          },
        }),
        callRow('c2', { keyId: 'k2', model: 'm2', tags: ['y'], outcome: 'failed', charged: {} }),
        callRow('c3', {
          startedAt: march + day - 1,
          outcome: 'canceled',
          provider: 'p',
          upstreamModel: 'm',
        }),
        callRow('c4', { startedAt: march + day, provider: 'p', upstreamModel: 'n' }),
        callRow('old', { startedAt: march - 1 }),
      ]);
      const sums = async (by: UsageGrouping): Promise<readonly string[]> =>
        (await store.calls.usage({ by, since: march })).map(
          ({ group, calls, failed, inputTokens, outputTokens }) =>
            `${group}: ${calls} ${failed} ${inputTokens} ${outputTokens}`,
        );
      assert.deepEqual(await sums('key'), ['k1: 3 0 341 17', 'k2: 1 1 0 0']);
      assert.deepEqual(await sums('model'), ['local/tiny: 3 0 341 17', 'm2: 1 1 0 0']);
      assert.deepEqual(await sums('answered'), [': 1 1 0 0', 'p/m: 2 0 331 12', 'p/n: 1 0 10 5']);
      assert.deepEqual(await sums('provider'), [': 1 1 0 0', 'p: 3 0 341 17']);
      assert.deepEqual(await sums('team'), [': 3 1 20 10', 'red: 1 0 321 7']);
      assert.deepEqual(await sums('tag'), [': 2 0 20 10', 'x: 1 0 321 7', 'y: 2 1 321 7']);
      assert.deepEqual(await sums('day'), ['2026-03-01: 3 1 331 12', '2026-03-02: 1 0 10 5']);
      assert.deepEqual(await sums('hour'), [
        '2026-03-01T00:00Z: 2 1 321 7',
        '2026-03-01T23:00Z: 1 0 10 5',
        '2026-03-02T00:00Z: 1 0 10 5',
      ]);
      const red = (await store.calls.usage({ by: 'team', since: march })).at(-1);
      assert.equal(red?.cacheReadTokens, 20);
      assert.equal(red?.cacheWriteTokens, 300);
      // From whole days, whole hours, and the rows themselves.
      for (const until of [march + 2 * day, march + hour, march + 5]) {
        const told = (await store.calls.usage({ by: 'team', since: march, until })).at(-1);
        const { audioInputTokens, imageInputTokens, videoInputTokens } = told ?? {};
        assert.deepEqual([audioInputTokens, imageInputTokens, videoInputTokens], [1, 2, 3]);
        const { audioOutputTokens, imageOutputTokens, webSearches, images } = told ?? {};
        assert.deepEqual([audioOutputTokens, imageOutputTokens, webSearches, images], [4, 5, 6, 7]);
      }
    });

    it('F6 distinguishes priced and unpriced calls; a call that was not charged needs no price', async () => {
      const { store } = opened;
      await store.calls.record([
        callRow('c1', { model: 'a', ...costing(5) }),
        callRow('c2', { model: 'a', ...costing(0) }),
        callRow('c3', { model: 'a' }),
        callRow('c4', { model: 'b' }),
        callRow('c5', { model: 'b', charged: {} }),
        callRow('c6', { model: 'b', charged: { freshInputTokens: 0, outputTokens: 0 } }),
      ]);
      const rows = await store.calls.usage({ by: 'model', since: 0 });
      assert.deepEqual(
        rows.map((row) => [row.pricedCalls, row.unpricedCalls, row.nanodollars]),
        [
          [2, 1, 5],
          [0, 1, 0],
        ],
      );
    });

    it('issue 24 sums what caches saved, also where writing cost more', async () => {
      const saved = [5, -2, undefined, 9_000_000_000_000];
      await opened.store.calls.record(
        saved.map((each, i) =>
          callRow(`c${i}`, { ...costing(1), ...(each === undefined ? {} : { cacheSaved: each }) }),
        ),
      );
      // From whole days, whole hours, and the rows themselves.
      for (const until of [march + 2 * day, march + hour, march + 5]) {
        const [all] = await opened.store.calls.usage({ by: 'key', since: march, until });
        assert.equal(all?.cacheSaved, 9_000_000_000_003);
      }
      const found = await opened.store.calls.find('c1');
      assert.equal(found?.cacheSaved, -2);
      assert.equal((await opened.store.calls.find('c2'))?.cacheSaved, undefined);
    });

    it('issue 23 sums by user are those of the calls, by any filter', async () => {
      await opened.store.calls.record([
        callRow('c1', { user: 'ana', team: 'red', ...costing(5) }),
        callRow('c2', { user: 'ana', startedAt: march + day, tags: ['x'], ...costing(7) }),
        callRow('c3', { user: 'bob', startedAt: march + hour }),
        callRow('c4'),
      ]);
      assert.deepEqual(await counts({ by: 'user' }), [': 1', 'ana: 2', 'bob: 1']);
      assert.deepEqual(await counts({ by: 'user', until: march + day }), [
        ': 1',
        'ana: 1',
        'bob: 1',
      ]);
      assert.deepEqual(await counts({ by: 'user', filter: { team: 'red' } }), ['ana: 1']);
      assert.deepEqual(await counts({ by: 'user', filter: { tag: 'x' } }), ['ana: 1']);
      const [, ana] = await opened.store.calls.usage({ by: 'user', since: 0 });
      assert.deepEqual([ana?.nanodollars, ana?.pricedCalls], [12, 2]);
    });

    it('counts a call once for a tag that it has twice', async () => {
      const { store } = opened;
      await store.calls.record([
        callRow('c1', { tags: ['b', 'a', 'b'] }),
        callRow('c2', { tags: ['a', 'b'] }),
      ]);
      assert.deepEqual(await counts({ by: 'tag' }), ['a: 2', 'b: 2']);
      assert.deepEqual(await counts({ by: 'tag', since: march - 5 }), ['a: 2', 'b: 2']);
      assert.deepEqual(await counts({ by: 'tag', until: march + 5 }), ['a: 2', 'b: 2']);
    });

    it('sums names of models that there are not as one', async () => {
      await opened.store.calls.record([
        callRow('c1', { model: 'x', outcome: 'failed', error: 'model_not_found' }),
        callRow('c2', { model: 'y', outcome: 'failed', error: 'model_not_found' }),
        callRow('c3', { model: 'z' }),
      ]);
      for (const until of [march + 5, march + 2 * day]) {
        assert.deepEqual(await counts({ by: 'model', until }), [': 2', 'z: 1']);
      }
    });

    it('takes any millisecond for a beginning and an end', async () => {
      const times = [0, 1, hour - 1, hour, day - 1, day, day + 1, 2 * day, 2 * day + hour];
      await opened.store.calls.record(
        times.map((time, i) => callRow(`c${i}`, { startedAt: march + time })),
      );
      for (const since of times) {
        for (const until of [...times, undefined]) {
          const expected = times.filter((time) => time >= since && time < (until ?? Infinity));
          const found = await counts({
            since: march + since,
            ...(until === undefined ? {} : { until: march + until }),
          });
          const wanted = expected.length === 0 ? [] : [`k1: ${expected.length}`];
          assert.deepEqual(found, wanted, `${since}-${until}`);
        }
      }
    });

    it('filters by key, team, model, provider and tag, and by several', async () => {
      await opened.store.calls.record([
        callRow('c1', { keyId: 'k1', team: 'red', model: 'm1', provider: 'p1', tags: ['x'] }),
        callRow('c2', { keyId: 'k2', team: 'red', model: 'm2', provider: 'p1', tags: ['x', 'y'] }),
        callRow('c3', { keyId: 'k3', model: 'm1' }),
      ]);
      // From roll-ups, and from the calls themselves.
      for (const until of [march + day, march + 5]) {
        const by = (filter: UsageQuery['filter']) =>
          counts({ until, ...(filter === undefined ? {} : { filter }) });
        assert.deepEqual(await by({ key: 'k2' }), ['k2: 1']);
        assert.deepEqual(await by({ team: 'red' }), ['k1: 1', 'k2: 1']);
        assert.deepEqual(await by({ team: '' }), ['k3: 1']);
        assert.deepEqual(await by({ model: 'm1' }), ['k1: 1', 'k3: 1']);
        assert.deepEqual(await by({ provider: 'p1', model: 'm2' }), ['k2: 1']);
        assert.deepEqual(await by({ provider: '' }), ['k3: 1']);
        assert.deepEqual(await by({ tag: 'x' }), ['k1: 1', 'k2: 1']);
        assert.deepEqual(await by({ tag: '' }), ['k3: 1']);
        assert.deepEqual(await by({ tag: 'z' }), []);
      }
    });

    it('L3 tags that clients make up do not make sums for ever', async () => {
      const rows = Array.from({ length: 10_500 }, (_, i) =>
        callRow(`c${i}`, { tags: [`request-${i}`] }),
      );
      for (let from = 0; from < rows.length; from += 500) {
        await opened.store.calls.record(rows.slice(from, from + 500));
      }
      const late = callRow('known', { tags: ['request-7'] });
      await opened.store.calls.record([late, callRow('k2', { keyId: 'k2', tags: ['prod'] })]);
      const tags = await opened.store.calls.usage({ by: 'tag', since: 0 });
      const calls = (tag: string) => tags.find(({ group }) => group === tag)?.calls;
      assert.deepEqual([calls('(others)'), calls('prod'), calls('request-7')], [500, 1, 2]);
      assert.equal(tags.length, 10_002);
      assert.equal((await opened.store.calls.usage({ by: 'day', since: 0 }))[0]?.calls, 10_502);
    });

    it('orders groups alike, beyond ASCII too', async () => {
      const names = ['\u{1F600}', '￿', 'é', 'a', 'B'];
      await opened.store.calls.record(names.map((model, i) => callRow(`c${i}`, { model })));
      const groups = (await opened.store.calls.usage({ by: 'model', since: 0 })).map(
        (row) => row.group,
      );
      assert.deepEqual(groups, ['B', 'a', 'é', '￿', '\u{1F600}']);
    });
  });
}
