import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitName } from '../../../dashboard/src/api/errors.ts';
import { periodBefore, periodOf } from '../../../dashboard/src/api/period.ts';
import { filterOfGroup, type SeriesAnswer } from '../../../dashboard/src/api/series.ts';
import { once } from '../../../dashboard/src/components/once.ts';
import { roughMoney } from '../../../dashboard/src/format/money.ts';
import { groupColours, linesOfGroups } from '../../../dashboard/src/pages/overview/lines.ts';
import { storeItem } from '../../../dashboard/src/pages/overview/store-item.ts';
import { shortSpan } from '../../../dashboard/src/format/time.ts';

test('issue 24 sums at a glance have two significant digits, or whole dollars', () => {
  const amounts = [null, 0, 0.132_632, 0.8, 0.000_31, 1.5, 9.99, 25.54, 412.4, 12_345, 2_500_000];
  const texts = [
    '–',
    '$0',
    '$0.13',
    '$0.80',
    '$0.00031',
    '$1.5',
    '$10',
    '$26',
    '$412',
    '$12K',
    '$2.5M',
  ];
  assert.deepEqual(amounts.map(roughMoney), texts);
});

test('issue 24 the period before is as long as the period, and ends where it begins', () => {
  const now = Date.parse('2026-11-27T12:00:00Z');
  assert.deepEqual(periodBefore(periodOf({}), now), { since: '48h', until: '24h' });
  assert.deepEqual(periodBefore(periodOf({ range: '7d' }), now), { since: '14d', until: '7d' });
  const dates = { since: '2026-11-26T00:00:00Z', until: '2026-11-26T06:00:00Z' };
  assert.deepEqual(periodBefore(periodOf(dates), now), {
    since: '2026-11-25T18:00:00.000Z',
    until: '2026-11-26T00:00:00.000Z',
  });
  assert.deepEqual(periodBefore(periodOf({ since: '2026-11-27T00:00:00Z' }), now), {
    since: '2026-11-26T12:00:00.000Z',
    until: '2026-11-27T00:00:00.000Z',
  });
  assert.equal(periodBefore(periodOf({ since: 'no date' }), now), undefined);
});

test('issue 24 ticks of an axis have no digits that say nothing', () => {
  const ticks = [0, 0.5, 250, 1500, 20_000, 90_000, 7_200_000];
  const texts = ['0', '0.5 ms', '250 ms', '1.5 s', '20 s', '1.5 min', '2 h'];
  assert.deepEqual(ticks.map(shortSpan), texts);
});

test('issue 24 the calls of an answering model are those of its provider and its name there, slashes and all', () => {
  assert.deepEqual(filterOfGroup('model', 'a/b'), { model: 'a/b' });
  assert.deepEqual(filterOfGroup('answered', 'router/meta/llama'), {
    provider: 'router',
    upstream_model: 'meta/llama',
  });
});

test('issue 24 a group has one colour, in the chart of costs and in those of calls', () => {
  const none = { points: [], cost_usd: 0 };
  const groups = [
    { ...none, name: 'cheap', calls: 9, cost_usd: 1 },
    { ...none, name: 'dear', calls: 2, cost_usd: 5 },
    ...['a', 'b', 'c', 'd', 'e'].map((name, i) => ({ ...none, name, calls: 8 - i })),
  ];
  const answer = {
    since: '2026-03-01T00:00:00Z',
    until: '2026-03-02T00:00:00Z',
    step: 'day',
    groups,
  } as unknown as SeriesAnswer;
  const colours = groupColours(answer);
  assert.equal(new Set(colours.values()).size, 7);
  assert.equal(colours.get('dear'), '--series-1');
  const calls = { name: 'calls', of: () => 1, empty: 0 } as const;
  for (const sorted of [groups, groups.toReversed()]) {
    const { series } = linesOfGroups(
      { ...answer, groups: sorted } as unknown as SeriesAnswer,
      calls,
      'model',
    );
    for (const { name, colour } of series) assert.equal(colour, colours.get(name), name);
  }
});

test('issue 24 code is fetched once, and again where it did not come', async () => {
  let fetched = 0;
  const load = once(async () => {
    fetched += 1;
    if (fetched === 1) throw new Error('away');
    return fetched;
  });
  const both = await Promise.allSettled([load(), load()]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.deepEqual(await Promise.all([load(), load(), load()]), [2, 2, 2]);
});

test('A4 a limit is named in words, also of a tag with colons and of certain models', () => {
  const kinds = ['key:a1:requests', 'team:red:month', 'tag:a:b:day', 'key:a1:tokens:openai/*'];
  assert.deepEqual(
    kinds.map((limit) => {
      const { holder, name, kind } = limitName(limit) ?? {};
      return [holder, name, kind];
    }),
    [
      ['key', 'a1', 'request limit'],
      ['team', 'red', 'monthly budget'],
      ['tag', 'a:b', 'daily budget'],
      ['key', 'a1', 'token limit for openai/*'],
    ],
  );
  assert.equal(limitName('nothing'), undefined);
});

test('a gateway that is not ready shows why its store takes no calls, whichever store it has', () => {
  const status = { version: '0.1.0', ready: false, store_reason: 'gateway.db: disk full' };
  const text = (more: object): string => storeItem({ ...status, ...more }, undefined).text;
  assert.equal(text({}), 'gateway.db: disk full');
  assert.equal(text({ store_up: false }), 'gateway.db: disk full');
  assert.equal(text({ store_up: false, store_reason: null }), 'store unreachable');
  assert.equal(text({ store_reason: null }), 'not ready');
  // A write that failed once and is tried again.
  assert.equal(text({ ready: true }), 'ready, store writable');
});
