/** `/api/series`: what happened over time, by model, provider, key or team: for charts. */
import { z } from 'zod';
import type { JsonObject } from '../json/value.ts';
import type {
  LatencySample,
  LatencySamples,
  SeriesQuery,
  SeriesRow,
  Store,
} from '../store/store.ts';
import {
  groupFilter,
  inPeriod,
  knownCost,
  readFilter,
  readWhen,
  type UsageRouteParts,
} from './usage.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRoute,
  dateText,
  readInput,
  time,
} from './route.ts';

const groupings = ['model', 'provider', 'key', 'team'] as const;
const steps = ['minute', 'hour', 'day'] as const;

const stepMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
/** More points no chart shows; minutes are counted call by call. */
const maxPoints = 1000;
const minutesUpToMs = 3 * stepMs.hour;
const hoursUpToMs = 8 * stepMs.day;

const query = z.strictObject({
  ...inPeriod,
  since: inPeriod.since.default('24h'),
  ...groupFilter,
  by: z.enum(groupings, `must be one of ${groupings.join(', ')}`).optional(),
  step: z
    .enum(steps, `must be one of ${steps.join(', ')}`)
    .optional()
    .describe('Default: minutes up to 3 h, hours up to 8 d, then days (UTC).'),
  groups: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(50, 'must be at most 50')
    .default(8)
    .describe('Maximum number of groups; those with the most calls.'),
});

const count = z.number().int();
const ms = z.number().nullable();
const sums = {
  calls: count,
  failed: count,
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cost_usd: z
    .number()
    .nullable()
    .describe('Cost of the calls with a known price; null: no call has one.'),
};
const latency = {
  p50_ms: ms.describe('Of successful calls; null: there was none.'),
  p95_ms: ms,
  first_p50_ms: ms.describe(
    'Time to the first part of the answer, for streams; null: there was none.',
  ),
  first_p95_ms: ms,
};

const answer = z.strictObject({
  since: time,
  until: time,
  step: z.enum(steps),
  sampled: count.describe('Number of calls that the percentiles are computed from.'),
  percentiles: z
    .enum(['exact', 'sampled'])
    .describe('Of successful calls; above 6,000 calls of an evenly spread sample.'),
  groups: z.array(
    z.strictObject({
      name: z.string().nullable().describe('Null: all calls, or calls without this property.'),
      key_name: z.string().nullable().optional().describe('Only with by=key.'),
      ...sums,
      ...latency,
      points: z.array(z.strictObject({ at: time, ...sums, ...latency })),
    }),
  ),
});

export function seriesRoutes(parts: UsageRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/series',
      about: {
        summary: 'Calls, tokens, cost, errors and latency over time.',
        query,
        answer,
      },
      run: (request) => series(parts, readInput(query, request.query)),
    },
  ];
}

async function series(
  parts: UsageRouteParts,
  wanted: z.output<typeof query>,
): Promise<AdminAnswer> {
  const { store, clock, flushLedger } = parts;
  const when = readWhen(wanted, clock);
  const until = Math.min(when.until ?? Infinity, clock.wall() + 1);
  const since = when.since ?? 0;
  if (since >= until) throw new AdminError(400, 'must be before until', 'since');
  const step = wanted.step ?? stepFor(until - since);
  const points = Math.ceil((until - since) / stepMs[step]);
  if (points > maxPoints || (step === 'minute' && until - since > minutesUpToMs)) {
    throw new AdminError(400, 'is too short for this period', 'step');
  }
  await flushLedger?.().catch(() => undefined);
  const { by, groups } = wanted;
  const filter = readFilter(wanted);
  const asked = { step, since, until, filter, groups, ...(by === undefined ? {} : { by }) };
  const rows = await store.calls.series(asked);
  const { calls, isAll } = await sampleOf(store, asked);
  const names = [...new Set(rows.map(({ group }) => group))];
  const ofGroup = new Latencies(calls, asked);
  const shown = names.map((name) => ({
    name: name === '' ? null : name,
    ...(by === 'key' ? { key_name: parts.keys.find(name)?.record.name ?? null } : {}),
    ...groupJson(
      rows.filter(({ group }) => group === name),
      (at) => ofGroup.of(name, at),
    ),
  }));
  const body = {
    since: dateText(since),
    until: dateText(until),
    step,
    sampled: calls.length,
    percentiles: isAll ? 'exact' : 'sampled',
    groups: shown,
  };
  return { status: 200, body };
}

function stepFor(periodMs: number): SeriesQuery['step'] {
  if (periodMs <= minutesUpToMs) return 'minute';
  return periodMs <= hoursUpToMs ? 'hour' : 'day';
}

/** Slices are the chart's own steps where these are no more than may be; a period without end has few. */
function sampleOf(store: Store, asked: SeriesQuery): Promise<LatencySamples> {
  const { since, until, step, filter } = asked;
  const slices = Math.ceil((until - since) / stepMs[step]);
  return store.calls.sampleLatency({
    since,
    until,
    slices,
    ...(filter === undefined ? {} : { filter }),
  });
}

function groupJson(
  rows: readonly SeriesRow[],
  latencyAt: (at: number | undefined) => JsonObject,
): JsonObject {
  const total = rows.reduce(
    (sum, row) => ({
      ...sum,
      calls: sum.calls + row.calls,
      failed: sum.failed + row.failed,
      inputTokens: sum.inputTokens + row.inputTokens,
      outputTokens: sum.outputTokens + row.outputTokens,
      cacheReadTokens: sum.cacheReadTokens + row.cacheReadTokens,
      pricedCalls: sum.pricedCalls + row.pricedCalls,
      unpricedCalls: sum.unpricedCalls + row.unpricedCalls,
      nanodollars: sum.nanodollars + row.nanodollars,
    }),
    emptySums,
  );
  return {
    ...sumsJson(total),
    ...latencyAt(undefined),
    points: rows.map((row) => ({
      at: dateText(row.at),
      ...sumsJson(row),
      ...latencyAt(row.at),
    })),
  };
}

type Summed = Pick<
  SeriesRow,
  | 'calls'
  | 'failed'
  | 'inputTokens'
  | 'outputTokens'
  | 'cacheReadTokens'
  | 'pricedCalls'
  | 'unpricedCalls'
  | 'nanodollars'
>;

const emptySums: Summed = {
  calls: 0,
  failed: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  pricedCalls: 0,
  unpricedCalls: 0,
  nanodollars: 0,
};

function sumsJson(row: Summed): JsonObject {
  return {
    calls: row.calls,
    failed: row.failed,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    cache_read_tokens: row.cacheReadTokens,
    cost_usd: knownCost(row),
  };
}

/** Percentiles of a sample by group and step. */
class Latencies {
  readonly #samples = new Map<string, LatencySample[]>();
  readonly #query: SeriesQuery;

  constructor(samples: readonly LatencySample[], asked: SeriesQuery) {
    this.#query = asked;
    for (const sample of samples) {
      const name = this.#nameOf(sample);
      this.#put(this.#slot(name, undefined), sample);
      this.#put(this.#slot(name, sample.startedAt), sample);
    }
  }

  of(name: string, at: number | undefined): JsonObject {
    const samples = this.#samples.get(this.#slot(name, at)) ?? [];
    const totals = sorted(samples.map(({ totalMs }) => totalMs));
    const firsts = sorted(samples.flatMap(({ firstEventMs }) => firstEventMs ?? []));
    return {
      p50_ms: percentile(totals, 0.5),
      p95_ms: percentile(totals, 0.95),
      first_p50_ms: percentile(firsts, 0.5),
      first_p95_ms: percentile(firsts, 0.95),
    };
  }

  #nameOf(sample: LatencySample): string {
    switch (this.#query.by) {
      case 'key':
        return sample.keyId;
      case 'model':
        return sample.model;
      case 'provider':
        return sample.provider ?? '';
      case 'team':
        return sample.team ?? '';
      default:
        return '';
    }
  }

  #slot(name: string, at: number | undefined): string {
    return `${at === undefined ? '' : Math.floor(at / stepMs[this.#query.step])} ${name}`;
  }

  #put(slot: string, sample: LatencySample): void {
    const there = this.#samples.get(slot);
    if (there === undefined) this.#samples.set(slot, [sample]);
    else there.push(sample);
  }
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((a, b) => a - b);
}

/** The nearest rank. */
function percentile(values: readonly number[], part: number): number | null {
  const value = values[Math.max(0, Math.ceil(values.length * part) - 1)];
  return value === undefined ? null : Math.round(value * 10) / 10;
}
