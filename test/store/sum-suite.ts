import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, it } from 'node:test';
import type {
  CallRow,
  SeriesQuery,
  UsageGrouping,
  UsageQuery,
  UsageRow,
} from '../../src/store/store.ts';
import { checkAsync } from '../support/checking.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import type { OpenStore } from './opened.ts';
import { costing } from './rows.ts';

const hour = day / 24;
const tokens = fc.option(fc.integer({ min: 0, max: 1000 }), { nil: undefined });

/** Some calls lack them. */
const homes = fc.record(
  {
    team: fc.constantFrom('red', 'blue'),
    provider: fc.constantFrom('p1', 'p2'),
    upstreamModel: fc.constantFrom('a', 'b'),
    error: fc.constantFrom('overloaded', 'model_not_found'),
  },
  { requiredKeys: [] },
);

const call: fc.Arbitrary<Partial<CallRow>> = fc.record({
  // Times on the edges of hours and days, and near them.
  startedAt: fc
    .tuple(fc.integer({ min: 0, max: 60 }), fc.constantFrom(0, 1, hour - 1, hour / 2))
    .map(([hours, rest]) => march + hours * hour + rest),
  keyId: fc.constantFrom('k1', 'k2', 'k3'),
  model: fc.constantFrom('m1', 'm2'),
  tags: fc.array(fc.constantFrom('x', 'y', 'ü'), { maxLength: 3 }),
  outcome: fc.constantFrom('ok', 'failed', 'canceled'),
  charged: fc
    .tuple(tokens, tokens, tokens, tokens)
    .map(([freshInputTokens, cacheReadTokens, outputTokens, piece]) => ({
      ...(piece === undefined ? {} : { audioInputTokens: piece, images: 2 * piece }),
      ...(freshInputTokens === undefined ? {} : { freshInputTokens }),
      ...(cacheReadTokens === undefined ? {} : { cacheReadTokens }),
      ...(outputTokens === undefined ? {} : { outputTokens }),
    })),
});

const cost = fc.option(fc.integer({ min: 0, max: 10 ** 12 }), { nil: undefined });
const budgets = fc.subarray([
  { counter: 'key', window: '2026-03' },
  { counter: 'team', window: '2026-03-01' },
]);

const rows: fc.Arbitrary<readonly CallRow[]> = fc
  .array(fc.tuple(call, cost, budgets, homes), { minLength: 1, maxLength: 30 })
  .map((all) =>
    all.map(([change, total, counted, home], i) =>
      callRow(`c${i}`, {
        ...change,
        ...home,
        budgets: counted,
        ...(total === undefined ? {} : costing(total)),
      }),
    ),
  );

/** The rows in any order, some of them several times, cut into batches anywhere. */
const written = rows.chain((all) =>
  fc.record({
    all: fc.constant(all),
    batches: fc.array(fc.array(fc.constantFrom(...all), { maxLength: 9 }), {
      maxLength: 8,
    }),
    by: fc.constantFrom<UsageGrouping>(
      'key',
      'model',
      'answered',
      'provider',
      'team',
      'tag',
      'day',
      'hour',
    ),
    since: fc.integer({ min: -1, max: 60 * hour }),
    length: fc.option(fc.integer({ min: 0, max: 60 * hour }), { nil: undefined }),
    key: fc.option(fc.constantFrom('k1', 'k9'), { nil: undefined }),
    step: fc.constantFrom('hour', 'day'),
    ofSeries: fc.constantFrom('model', 'answered', 'team', 'provider', 'key', 'tag', undefined),
  }),
);

function groupsOf(by: UsageGrouping, row: CallRow): readonly string[] {
  const time = new Date(row.startedAt).toISOString();
  if (by === 'tag') return row.tags.length === 0 ? [''] : [...new Set(row.tags)];
  if (by === 'day') return [time.slice(0, 10)];
  if (by === 'hour') return [`${time.slice(0, 13)}:00Z`];
  return [nameOf(by as Named, row)];
}

type Named = 'key' | 'model' | 'answered' | 'provider' | 'team';

/** The group of a call. Names that no model has are summed as one. */
function nameOf(by: Named, row: CallRow): string {
  const { keyId, model, provider = '', upstreamModel = '', team = '', error } = row;
  const isKnown = error !== 'model_not_found';
  switch (by) {
    case 'key':
      return keyId;
    case 'model':
      return isKnown ? model : '';
    case 'answered':
      return isKnown && provider !== '' ? `${provider}/${upstreamModel}` : '';
    case 'provider':
      return provider;
    case 'team':
      return team;
  }
}

/** The sums as a person would make them from the rows. */
function folded(all: readonly CallRow[], query: UsageQuery): ReadonlyMap<string, string> {
  const wanted = all.filter(
    (row) =>
      row.startedAt >= query.since &&
      row.startedAt < (query.until ?? Infinity) &&
      (query.filter?.key === undefined || query.filter.key === row.keyId),
  );
  const groups = new Map<string, CallRow[]>();
  for (const row of wanted) {
    for (const group of groupsOf(query.by, row)) {
      groups.set(group, [...(groups.get(group) ?? []), row]);
    }
  }
  return new Map([...groups].map(([group, members]) => [group, summary(members)]));
}

/** The same by group and by the beginning of each step. */
function foldedSeries(all: readonly CallRow[], query: SeriesQuery): ReadonlyMap<string, string> {
  const unit = query.step === 'day' ? day : hour;
  const groups = (row: CallRow): readonly string[] =>
    query.by === undefined ? [''] : groupsOf(query.by as UsageGrouping, row);
  const wanted = all.filter(
    (row) =>
      row.startedAt >= query.since &&
      row.startedAt < query.until &&
      (query.filter?.key === undefined || query.filter.key === row.keyId),
  );
  const counted = wanted.flatMap((row) =>
    groups(row).map((group) => ({
      row,
      step: `${group} ${Math.floor(row.startedAt / unit) * unit}`,
    })),
  );
  const steps = Map.groupBy(counted, ({ step }) => step);
  return new Map(
    [...steps].map(([step, members]) => [step, summary(members.map(({ row }) => row))]),
  );
}

function summary(members: readonly CallRow[]): string {
  const sum = (of: (row: CallRow) => number): number =>
    members.reduce((total, row) => total + of(row), 0);
  const read = sum((row) => row.charged.cacheReadTokens ?? 0);
  const charged = ({ charged: counts }: CallRow): number =>
    (counts.freshInputTokens ?? 0) + (counts.cacheReadTokens ?? 0) + (counts.outputTokens ?? 0);
  return JSON.stringify([
    members.length,
    members.filter((row) => row.outcome === 'failed').length,
    read + sum((row) => row.charged.freshInputTokens ?? 0),
    read,
    sum((row) => row.charged.outputTokens ?? 0),
    sum((row) => row.charged.audioInputTokens ?? 0),
    sum((row) => row.charged.images ?? 0),
    members.filter((row) => row.cost !== undefined).length,
    members.filter((row) => row.cost === undefined && charged(row) > 0).length,
    sum((row) => row.cost?.total ?? 0),
  ]);
}

function told(row: UsageRow): string {
  return JSON.stringify([
    row.calls,
    row.failed,
    row.inputTokens,
    row.cacheReadTokens,
    row.outputTokens,
    row.audioInputTokens,
    row.images,
    row.pricedCalls,
    row.unpricedCalls,
    row.nanodollars,
  ]);
}

type Written = typeof written extends fc.Arbitrary<infer T> ? T : never;

async function checkSums(open: OpenStore, wanted: Written) {
  const { all, batches, by, since, length, key } = wanted;
  const store = await open();
  try {
    for (const batch of batches) await store.calls.record(batch);
    await store.calls.record(all);
    const query: UsageQuery = {
      by,
      since: march + since,
      ...(length === undefined ? {} : { until: march + since + length }),
      ...(key === undefined ? {} : { filter: { key } }),
    };
    const found = await store.calls.usage(query);
    const expected = folded(all, query);
    assert.deepEqual(new Map(found.map((row) => [row.group, told(row)])), expected);
    const series: SeriesQuery = {
      step: wanted.step,
      groups: 10,
      since: query.since,
      until: query.until ?? march + 100 * day,
      filter: query.filter ?? {},
      ...(wanted.ofSeries === undefined ? {} : { by: wanted.ofSeries }),
    };
    assert.deepEqual(
      new Map(
        (await store.calls.series(series)).map((row) => [`${row.group} ${row.at}`, told(row)]),
      ),
      foldedSeries(all, series),
    );
    for (const counter of ['key', 'team']) {
      const spent = (await store.calls.spent(0)).find((row) => row.counter === counter);
      const counted = all.filter((row) => row.budgets.some((b) => b.counter === counter));
      const sum = counted.reduce((total, row) => total + (row.cost?.total ?? 0), 0);
      assert.equal(spent?.nanodollars ?? 0, sum);
    }
  } finally {
    await store.close();
  }
}

export function sumSuite(open: OpenStore): void {
  describe('sums', () => {
    it('K5 roll-ups and spending equal the fold of the rows, whatever comes in which order', async (t) => {
      let last: Promise<void> | undefined;
      try {
        await checkAsync(t, written, (value) => {
          last = checkSums(open, value);
          return last;
        });
      } finally {
        // The time box ends the check in the middle of a case.
        await last?.catch(() => undefined);
      }
    });
  });
}
