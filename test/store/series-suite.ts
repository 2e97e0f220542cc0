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
      const rows = await opened.store.calls.series({ ...wanted, ...query });
      return rows.map(({ group, at, calls, failed }) => {
        const time = new Date(at).toISOString().slice(8, 16);
        return `${group} ${time} ${calls} ${failed}`;
      });
    }

    it('issue 8 sums by step and group, the group with the most calls first', async () => {
      await opened.store.calls.record([
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
      const [first] = await opened.store.calls.series({
        step: 'day',
        since: march,
        until: march + day,
        groups: 1,
      });
      assert.deepEqual([first?.inputTokens, first?.pricedCalls, first?.nanodollars], [40, 1, 5]);
    });

    it('sums beyond 2^53 nanodollars are read, of everything and of each group', async () => {
      const most = Number.MAX_SAFE_INTEGER;
      const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];
      for (const batch of ['a', 'b']) {
        const cost = { ...costing(most), cacheSaved: -most, budgets };
        await opened.store.calls.record(
          [1, 2, 3].map((i) => callRow(`${batch}${i}`, { startedAt: march + i, ...cost })),
        );
      }
      const all = { since: march, until: march + day, groups: 10 };
      for (const step of ['minute', 'hour', 'day'] as const) {
        for (const by of [{}, { by: 'model' }, { by: 'key' }] as const) {
          const [row] = await opened.store.calls.series({ ...all, step, ...by });
          assert.deepEqual([row?.calls, row?.nanodollars], [6, 6 * most], JSON.stringify(by));
          assert.equal(row?.cacheSaved, -6 * most);
        }
      }
      for (const by of ['key', 'model', 'day', 'hour', 'tag', 'user'] as const) {
        const [row] = await opened.store.calls.usage({ by, since: march });
        assert.equal(row?.nanodollars, 6 * most, by);
      }
      assert.equal((await opened.store.calls.spent(0))[0]?.nanodollars, 6 * most);
    });

    it('issue 24 sums by user and step, of the calls themselves', async () => {
      await opened.store.calls.record([
        callRow('c1', { user: 'ana' }),
        callRow('c2', { user: 'ana', startedAt: march + hour }),
        callRow('c3', { user: 'bob', startedAt: march + hour + 1, outcome: 'failed' }),
        callRow('c4', { startedAt: march + hour, model: 'm' }),
      ]);
      assert.deepEqual(await points({ by: 'user' }), [
        'ana 01T00:00 1 0',
        'ana 01T01:00 1 0',
        ' 01T01:00 1 0',
        'bob 01T01:00 1 1',
      ]);
      assert.deepEqual(await points({ by: 'user', step: 'day', groups: 1 }), ['ana 01T00:00 2 0']);
      assert.deepEqual(await points({ by: 'user', filter: { model: 'm' } }), [' 01T01:00 1 0']);
    });

    it('issue 24 sums by tag: a call counts for each of its tags, in days, in hours and at ragged ends', async () => {
      const tagged = (id: string, at: number, tags: readonly string[]) =>
        callRow(id, { startedAt: march + at, tags });
      await opened.store.calls.record([
        tagged('c1', 1, ['b', 'a', 'b']),
        tagged('c2', 2, ['a', 'c']),
        tagged('c3', day + hour, ['a']),
        tagged('c4', day + hour, ['c', 'b', 'a']),
        tagged('c5', day + hour, []),
        tagged('c6', 2 * day + minute, ['b', 'b']),
        tagged('c7', 3 * day + minute, ['c']),
      ]);
      const period = { by: 'tag', until: march + 2 * day + 2 * minute } as const;
      const a = ['a 01T00:00 2 0', 'a 02T00:00 2 0'];
      const b = ['b 01T00:00 1 0', 'b 02T00:00 1 0', 'b 03T00:00 1 0'];
      const c = ['c 01T00:00 1 0', 'c 02T00:00 1 0'];
      const none = ' 02T00:00 1 0';
      assert.deepEqual(await points({ ...period, step: 'day' }), [...a, ...b, ...c, none]);
      // What the others share with the chosen ones is not theirs alone, and is left out with them.
      assert.deepEqual(await points({ ...period, step: 'day', groups: 2 }), [...a, ...b]);
      const inHours = (each: string): string => each.replace('02T00', '02T01');
      assert.deepEqual(await points({ ...period, groups: 2 }), [...a, ...b].map(inHours));
      assert.deepEqual(
        await points({ by: 'tag', step: 'minute', until: march + 2 * minute, groups: 1 }),
        ['a 01T00:00 2 0'],
      );
      assert.deepEqual(await points({ ...period, filter: { key: 'none' } }), []);
    });

    it('issue 8 an end within a step counts only what lies within', async () => {
      await opened.store.calls.record(
        [1, 20, 40].map((at) => callRow(`c${at}`, { startedAt: march + at * minute })),
      );
      assert.deepEqual(await points({ since: march + 10 * minute, until: march + 30 * minute }), [
        ' 01T00:00 1 0',
      ]);
    });

    it('issue 8 of many groups only those with the most calls are reported, each with all it had', async () => {
      const rows = Array.from({ length: 30 }, (_, key) =>
        Array.from({ length: key + 1 }, (_call, n) =>
          callRow(`c${key}-${n}`, {
            keyId: `key${String(key).padStart(2, '0')}`,
            team: key % 2 === 0 ? 'even' : 'odd',
            tags: n % 2 === 0 ? [] : [`tag ${n}`],
            // The busiest by whole days are not those of the ragged ends.
            startedAt: march + day + (n % 3) * day,
          }),
        ),
      ).flat();
      rows.push(
        ...Array.from({ length: 5 }, (_, n) =>
          callRow(`end-${n}`, { keyId: 'key01', startedAt: march + 10 * minute + n }),
        ),
      );
      await opened.store.calls.record(rows);
      const period = { since: march + 5 * minute, until: march + 4 * day, step: 'day' } as const;
      const told = await points({ ...period, by: 'key', groups: 2 });
      assert.deepEqual(told, [
        'key29 02T00:00 10 0',
        'key29 03T00:00 10 0',
        'key29 04T00:00 10 0',
        'key28 02T00:00 10 0',
        'key28 03T00:00 10 0',
        'key28 04T00:00 9 0',
      ]);
      const even = { team: 'even' } as const;
      assert.deepEqual(
        (await points({ ...period, by: 'key', groups: 1, filter: even })).map((row) =>
          row.slice(0, 5),
        ),
        ['key28', 'key28', 'key28'],
      );
      assert.deepEqual(await points({ ...period, filter: { key: 'key01' } }), [
        ' 01T00:00 5 0',
        ' 02T00:00 1 0',
        ' 03T00:00 1 0',
      ]);
      const hours = await points({ ...period, step: 'hour', by: 'team', groups: 1 });
      assert.deepEqual(hours, ['odd 02T00:00 85 0', 'odd 03T00:00 80 0', 'odd 04T00:00 75 0']);
    });
  });

  describe('a sample of latencies', () => {
    const opened = eachWith(open);

    it('issue 8 takes calls that ended well, of the wanted groups, in the period; the first token of streams alone', async () => {
      const { store } = opened;
      await store.calls.record([
        callRow('c1', {
          totalMs: 1,
          firstEventMs: 0.5,
          stream: true,
          team: 'red',
          provider: 'p',
          tags: ['x'],
          user: 'ana',
        }),
        callRow('c2', {
          totalMs: 2,
          firstEventMs: 1.5,
          startedAt: march + hour,
          model: 'm',
          keyId: 'k2',
        }),
        callRow('c3', { totalMs: 3, startedAt: march + hour, outcome: 'failed' }),
        callRow('c4', { totalMs: 4, startedAt: march + day }),
        callRow('c5', { totalMs: 5, startedAt: march - 1 }),
      ]);
      const period = { since: march, until: march + day, slices: 24 };
      const all = await store.calls.sampleLatency(period);
      assert.deepEqual(
        all.calls.map(({ totalMs, firstEventMs }) => [totalMs, firstEventMs]),
        [
          [1, 0.5],
          [2, undefined],
        ],
      );
      assert.equal(all.isAll, true);
      const [first] = all.calls;
      const labels = { user: 'ana', tags: ['x'], outputTokens: 5 };
      assert.deepEqual(first, {
        ...first,
        startedAt: march,
        keyId: 'k1',
        provider: 'p',
        ...labels,
      });
      for (const filter of [
        { key: 'k1' },
        { team: 'red' },
        { provider: 'p' },
        { tag: 'x' },
        { model: 'local/tiny' },
      ]) {
        const found = await store.calls.sampleLatency({ ...period, filter });
        assert.deepEqual(
          found.calls.map(({ totalMs }) => totalMs),
          [1],
          JSON.stringify(filter),
        );
      }
    });

    it('L5 of many calls it takes some thousand, from all parts of the period; of few it takes all', async () => {
      const { store } = opened;
      const rows = Array.from({ length: 15_000 }, (_, i) =>
        callRow(`c${i}`, { startedAt: march + i * 1000, totalMs: i }),
      );
      for (let i = 0; i < rows.length; i += 1000) await store.calls.record(rows.slice(i, i + 1000));
      const until = march + 15_000_000;
      const { calls, isAll } = await store.calls.sampleLatency({ since: march, until, slices: 10 });
      assert.equal(isAll, false);
      assert.ok(calls.length > 2000 && calls.length <= 6_000, `${calls.length} calls`);
      for (let part = 0; part < 10; part++) {
        const own = calls.filter(({ totalMs }) => Math.floor(totalMs / 1500) === part);
        assert.ok(own.length > 200 && own.length <= 600, `${own.length} in part ${part}`);
      }
      const few = await store.calls.sampleLatency({
        since: march,
        until: march + 6_000_000,
        slices: 10,
      });
      assert.equal(few.isAll, true);
      assert.deepEqual(
        few.calls.map(({ totalMs }) => totalMs).toSorted((a, b) => a - b),
        Array.from({ length: 6000 }, (_, i) => i),
      );
    });
  });
}
