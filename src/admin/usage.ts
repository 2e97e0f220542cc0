/** `/api/usage`: the ledger, summed. */
import { z } from 'zod';
import type { KeyRing } from '../access/keys/keys.ts';
import { csvText } from '../core/display.ts';
import { faultKinds, type FaultKind } from '../core/faults.ts';
import { dollarsNumber } from '../core/money.ts';
import type { Clock } from '../core/runtime.ts';
import { summedClasses } from '../core/token-classes.ts';
import type { JsonObject } from '../json/value.ts';
import type { UsageFilter } from '../store/calls.ts';
import { addSums, answeredBy, busiestOf, noSums, type Sums } from '../store/roll-up.ts';
import type {
  LatencySample,
  LatencySamples,
  SeriesQuery,
  SeriesRow,
  Store,
  UsageRow,
} from '../store/store.ts';
import { withinOf } from './people/part.ts';
import type { Member } from './people/roles.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRoute,
  dateHint,
  dateText,
  next,
  readDate,
  readInput,
  readSpan,
  spanHint,
  time,
} from './route.ts';
import { seriesByUser, usageByUser } from './usage-by-user.ts';

const name = z.string().max(800);

/** Empty text: calls that have none. */
export const groupFilter = {
  key: name.optional().describe('Only calls of this key, by id.'),
  team: name
    .optional()
    .describe('Only calls of this team; empty: calls without one. The same for provider and tag.'),
  model: name.optional().describe('Only calls of this model, by the name that the client used.'),
  provider: name.optional(),
  tag: name.optional(),
};

export const inPeriod = {
  since: z.string().optional().describe('90m, 24h, 7d, 2w, or a date: 2026-01-31.'),
  until: z.string().optional().describe('The same; calls that began before. Default: now.'),
};

export function readFilter(wanted: { readonly [N in keyof UsageFilter]: unknown }): UsageFilter {
  const filter: { -readonly [N in keyof UsageFilter]: UsageFilter[N] } = {};
  for (const member of ['key', 'team', 'model', 'provider', 'tag'] as const) {
    const value = wanted[member];
    if (typeof value === 'string') filter[member] = value;
  }
  return filter;
}

export interface When {
  readonly since?: number;
  readonly until?: number;
}

/** @throws AdminError 400 with the name of a time that is none; of `since` also when it is not before `until`. */
export function readWhen(
  wanted: { readonly since?: string | undefined; readonly until?: string | undefined },
  clock: Clock,
): When {
  const form = z.number(`${spanHint}, or ${dateHint}`).optional();
  const { since, until } = readInput(z.strictObject({ since: form, until: form }), {
    since: read(wanted.since, clock),
    until: read(wanted.until, clock),
  });
  if (since !== undefined && until !== undefined && since >= until) throw reversed();
  return {
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}

/**
 * The same with both ends, in ms: without them, from the first call until now.
 * @throws AdminError 400 also when the period is empty
 */
export function readPeriod(wanted: Parameters<typeof readWhen>[0], clock: Clock): Required<When> {
  const when = readWhen(wanted, clock);
  const until = Math.min(when.until ?? Infinity, clock.wall() + 1);
  const since = when.since ?? 0;
  if (since >= until) throw reversed();
  return { since, until };
}

function reversed(): AdminError {
  return new AdminError(400, 'must be before until', 'since');
}

/** Null: a text that is not a time. */
function read(text: string | undefined, clock: Clock): number | null | undefined {
  if (text === undefined) return undefined;
  const span = readSpan(text);
  return span === undefined ? (readDate(text) ?? null) : clock.wall() - span;
}

export interface UsageRouteDeps {
  readonly store: Store;
  readonly keys: KeyRing;
  readonly clock: Clock;
  /** Awaited before the ledger is read, so that calls that are over are in it. */
  readonly flushLedger?: () => Promise<void>;
}

const groupings = [
  'key',
  'model',
  'answered',
  'provider',
  'team',
  'tag',
  'user',
  'day',
  'hour',
] as const;

const aboutAnswered = 'answered: the target that answered, provider/model; model: as requested.';

const query = z.strictObject({
  by: z
    .enum(groupings, `must be one of ${groupings.join(', ')}`)
    .default('key')
    .describe(
      `${aboutAnswered} Days and hours are UTC. A call counts for each of its tags. Sums by user take a million calls at most.`,
    ),
  ...inPeriod,
  since: inPeriod.since.default('30d'),
  ...groupFilter,
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(10_000, 'must be at most 10000')
    .default(1000)
    .describe('Maximum number of groups.'),
  after: z.string().max(800).optional().describe('`next` of the previous page.'),
  format: z
    .enum(['json', 'csv'], 'must be json or csv')
    .default('json')
    .describe('csv: all rows with a header line, without pages.'),
});

const count = z.number().int();
const failedBy = Object.fromEntries(
  faultKinds.map(({ column, about }) => [column, count.describe(about)]),
);
const group = z.string().nullable().optional().describe('Null: the calls have none.');

const row = z.strictObject({
  key: group,
  key_name: z.string().nullable().optional().describe('Only with `by=key`.'),
  model: z.string().nullable().optional().describe('Null: calls to unknown models.'),
  answered: group,
  provider: group,
  team: group,
  tag: group,
  user: group,
  day: z.string().optional().describe('2026-11-21'),
  hour: z
    .string()
    .optional()
    .describe('2026-11-21T13:00Z; a whole day if its hourly sums have expired.'),
  calls: count,
  failed: count,
  ...failedBy,
  input_tokens: count.describe('Including cached tokens.'),
  ...Object.fromEntries(summedClasses.map(({ column, about }) => [column, count.describe(about)])),
  cost_usd: z
    .number()
    .nullable()
    .describe('Cost of the calls with a known price; null: no call has one.'),
  unpriced_calls: count.describe('Calls that used tokens without a known price; not in cost_usd.'),
});

export function usageRoutes(deps: UsageRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/usage',
      about: {
        summary:
          'Sum calls, tokens and costs by key, model, answering target, provider, team, tag, user, day or hour.',
        query,
        answer: z.strictObject({
          by: z.enum(groupings),
          since: time,
          until: time.nullable(),
          rows: z.array(row),
          expired_calls: count
            .optional()
            .describe('Only with `by=user`: calls that have expired; their users are not known.'),
          next,
        }),
        csv: true,
      },
      run: (request) => usage(deps, readInput(query, request.query), request.member),
    },
  ];
}

async function usage(
  deps: UsageRouteDeps,
  wanted: z.output<typeof query>,
  member: Member | undefined,
): Promise<AdminAnswer> {
  const { by, limit, after } = wanted;
  const { since, until } = readWhen(wanted, deps.clock);
  // A store that is down says nothing of a name: the query itself reports the failure.
  await deps.flushLedger?.().catch(() => undefined);
  const filter = { ...readFilter(wanted), ...withinOf(member, deps.keys) };
  const { rows, expired } = await usageRows(deps, { by, since, until, filter });
  const shown = (each: UsageRow): JsonObject => ({
    ...groupJson(each, by, deps.keys),
    ...sumsJson(each),
  });
  if (wanted.format === 'csv') {
    const groups = by === 'key' ? ['key', 'key_name'] : [by];
    const csv = csvText([...groups, ...sumNames], rows.map(shown));
    const day = new Date(deps.clock.wall()).toISOString().slice(0, 10);
    return { status: 200, body: {}, csv, fileName: `usage-by-${by}-${day}.csv` };
  }
  const start = after === undefined ? 0 : rows.findIndex(({ group: name }) => name === after) + 1;
  const page = rows.slice(start, start + limit);
  const more = start + limit < rows.length;
  const body = {
    by,
    since: dateText(since ?? 0),
    until: until === undefined ? null : dateText(until),
    rows: page.map(shown),
    ...(expired === undefined ? {} : { expired_calls: expired }),
    next: more ? (page.at(-1)?.group ?? null) : null,
  };
  return { status: 200, body };
}

interface WantedUsage {
  readonly by: (typeof groupings)[number];
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly filter: UsageFilter;
}

async function usageRows(
  { store, clock }: UsageRouteDeps,
  { by, since = 0, until, filter }: WantedUsage,
): Promise<{ readonly rows: readonly UsageRow[]; readonly expired?: number }> {
  if (by === 'user') {
    return usageByUser(store, { since, until: until ?? clock.wall() + 1, filter });
  }
  const end = until === undefined ? {} : { until };
  return { rows: await store.calls.usage({ by, since, ...end, filter }) };
}

/** The grouping column; a key's name goes with its id. */
function groupJson({ group: name }: UsageRow, by: string, keys: KeyRing): JsonObject {
  const shown = name === '' ? null : name;
  if (by !== 'key') return { [by]: shown };
  return { key: shown, key_name: keys.find(name)?.record.name ?? null };
}

const mainSums: readonly string[] = [
  'calls',
  'failed',
  ...faultKinds.map(({ column }) => column),
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'cost_usd',
  'unpriced_calls',
];
const summedColumns: readonly string[] = summedClasses.map(({ column }) => column);
/** Columns of the CSV. */
const sumNames = [...mainSums, ...summedColumns.filter((name) => !mainSums.includes(name))];

/**
 * The known cost of calls: null, not 0, if unknown. Refused calls cost nothing and do not
 * make other calls' unknown prices known.
 */
export function knownCost({
  pricedCalls,
  unpricedCalls,
  nanodollars,
}: Pick<UsageRow, 'pricedCalls' | 'unpricedCalls' | 'nanodollars'>): number | null {
  const unknown = pricedCalls === 0 || (nanodollars === 0 && unpricedCalls > 0);
  return unknown ? null : dollarsNumber(nanodollars);
}

function sumsJson(sums: UsageRow): JsonObject {
  return {
    calls: sums.calls,
    failed: sums.failed,
    ...failedByJson(sums),
    input_tokens: sums.inputTokens,
    ...Object.fromEntries(summedClasses.map(({ member, column }) => [column, sums[member]])),
    cost_usd: knownCost(sums),
    unpriced_calls: sums.unpricedCalls,
  };
}

function failedByJson(sums: Pick<UsageRow, FaultKind['member']>): JsonObject {
  return Object.fromEntries(faultKinds.map(({ member, column }) => [column, sums[member]]));
}

// Code that the routes over the ledger share: the filter of calls.

// `/api/series`: sums over time by model, provider, key, team, tag or user, for charts.

const groupingsSeries = ['model', 'answered', 'provider', 'key', 'team', 'tag', 'user'] as const;
const steps = ['minute', 'hour', '6h', 'day'] as const;

const stepMs = { minute: 60_000, hour: 3_600_000, '6h': 21_600_000, day: 86_400_000 } as const;
/** The maximum number of points. Minutes are counted call by call. */
const maxPoints = 1000;
const minutesUpToMs = 3 * stepMs.hour;
const hoursUpToMs = 2 * stepMs.day;
const sixHoursUpToMs = 8 * stepMs.day;

const querySeries = z.strictObject({
  ...inPeriod,
  since: inPeriod.since.default('24h'),
  ...groupFilter,
  by: z
    .enum(groupingsSeries, `must be one of ${groupingsSeries.join(', ')}`)
    .optional()
    .describe(
      `${aboutAnswered} A call counts for each of its tags. Sums by user take a million calls at most.`,
    ),
  step: z
    .enum(steps, `must be one of ${steps.join(', ')}`)
    .optional()
    .describe('Default: minutes up to 3 h, hours up to 2 d, 6 h up to 8 d, then days (UTC).'),
  groups: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(50, 'must be at most 50')
    .default(8)
    .describe('Maximum number of groups; those with the most calls.'),
  points: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(0, 'must not be negative')
    .max(50, 'must be at most 50')
    .default(50)
    .describe(
      'Groups that have points: this many with the most calls, and this many with the highest cost; the others have sums only.',
    ),
  with: z
    .enum(['total'], 'must be total')
    .optional()
    .describe('total: also all calls, in `total`. Both have the same sample of latencies.'),
});

const countSeries = z.number().int();
const ms = z.number().nullable();
const sums = {
  calls: countSeries,
  failed: countSeries,
  ...failedBy,
  input_tokens: countSeries,
  output_tokens: countSeries,
  cache_read_tokens: countSeries,
  cost_usd: z
    .number()
    .nullable()
    .describe('Cost of the calls with a known price; null: no call has one.'),
  unpriced_calls: countSeries.describe('Calls that used tokens without a known price.'),
  cache_saved_usd: z
    .number()
    .nullable()
    .describe(
      'What caches saved of it, by the price of each call; negative: writing cost more than reading saved.',
    ),
};
const latency = {
  p50_ms: ms.describe('Of successful calls; null: there was none.'),
  p95_ms: ms,
  first_p50_ms: ms.describe(
    'Time to the first part of the answer, for streams; null: there was none.',
  ),
  first_p95_ms: ms,
  speed_p50: ms.describe(
    'Output tokens a second of streams, from the first part on; null: there was none.',
  ),
  speed_p5: ms.describe('95 % of the streams were faster.'),
};

const seriesGroup = z.strictObject({
  name: z.string().nullable().describe('Null: all calls, or calls without this property.'),
  key_name: z.string().nullable().optional().describe('Only with by=key.'),
  ...sums,
  ...latency,
  points: z.array(z.strictObject({ at: time, ...sums, ...latency })),
});

const answer = z.strictObject({
  since: time,
  until: time,
  step: z.enum(steps),
  sampled: countSeries.describe('Number of calls that the percentiles are computed from.'),
  percentiles: z
    .enum(['exact', 'sampled'])
    .describe('Of successful calls; above 6,000 calls of an evenly spread sample.'),
  groups: z.array(seriesGroup),
  total: seriesGroup.optional().describe('Of all calls; only with `with=total`.'),
});

export function seriesRoutes(deps: UsageRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/series',
      about: {
        summary: 'Calls, tokens, cost, errors and latency over time.',
        query: querySeries,
        answer,
      },
      run: (request) => series(deps, readInput(querySeries, request.query), request.member),
    },
  ];
}

async function series(
  deps: UsageRouteDeps,
  wanted: z.output<typeof querySeries>,
  member: Member | undefined,
): Promise<AdminAnswer> {
  const { store, clock, flushLedger } = deps;
  const { since, until } = readPeriod(wanted, clock);
  const step = wanted.step ?? stepFor(until - since);
  const points = Math.ceil((until - since) / stepMs[step]);
  if (points > maxPoints || (step === 'minute' && until - since > minutesUpToMs)) {
    throw new AdminError(400, 'is too short for this period', 'step');
  }
  await flushLedger?.().catch(() => undefined);
  const { by, groups } = wanted;
  const filter = { ...readFilter(wanted), ...withinOf(member, deps.keys) };
  const all = { since, until, filter, groups, step };
  const asked = { ...all, ...(by === undefined ? {} : { by }) };
  const rows = inSteps(await seriesRows(store, asked), stepMs[step]);
  const { calls, isAll } = await sampleOf(store, asked);
  const names = busiest(rows, groups);
  const drawn = drawnOf(names, rows, wanted.points);
  const ofGroup = new Latencies(calls, asked);
  const shown = names.map((name) => ({
    name: name === '' ? null : name,
    ...(by === 'key' ? { key_name: deps.keys.find(name)?.record.name ?? null } : {}),
    ...groupJsonSeries(
      rows.filter(({ group }) => group === name),
      { latencyAt: (at) => ofGroup.of(name, at), hasPoints: drawn.has(name) },
    ),
  }));
  const body = {
    since: dateText(since),
    until: dateText(until),
    step,
    sampled: calls.length,
    percentiles: isAll ? 'exact' : 'sampled',
    groups: shown,
    ...(wanted.with === undefined ? {} : { total: await totalJson(store, all, calls) }),
  };
  return { status: 200, body };
}

/** @param samples of the same period and filter */
async function totalJson(
  store: Store,
  asked: AskedSeries,
  samples: readonly LatencySample[],
): Promise<JsonObject> {
  const rows = inSteps(await seriesRows(store, asked), stepMs[asked.step]);
  const latencies = new Latencies(samples, asked);
  const latencyAt = (at: number | undefined): JsonObject => latencies.of('', at);
  return { name: null, ...groupJsonSeries(rows, { latencyAt, hasPoints: true }) };
}

type Step = (typeof steps)[number];

/** A series of the store, or one of joined hours. */
interface AskedSeries extends Omit<SeriesQuery, 'step' | 'by'> {
  readonly step: Step;
  readonly by?: (typeof groupingsSeries)[number];
  readonly filter: UsageFilter;
}

/** Rows in the steps of the store, at least of the groups with the most calls. */
async function seriesRows(store: Store, asked: AskedSeries): Promise<readonly SeriesRow[]> {
  const { by, step, since, until, filter, groups } = asked;
  const kept = step === '6h' ? 'hour' : step;
  if (by === 'user') return seriesByUser(store, { step: kept, since, until, filter });
  if (by === 'tag' && filter.tag !== undefined) {
    throw new AdminError(400, 'cannot be combined with by=tag', 'tag');
  }
  const ofGroups = by === undefined ? {} : { by };
  return store.calls.series({ step: kept, since, until, filter, groups, ...ofGroups });
}

/** Names of the groups with the most calls, in this order. */
function busiest(rows: readonly UsageRow[], groups: number): readonly string[] {
  const calls = new Map<string, number>();
  for (const row of rows) calls.set(row.group, (calls.get(row.group) ?? 0) + row.calls);
  return busiestOf(calls, groups);
}

/** The names that charts show: those with the most calls, which come first, and those with the highest cost. */
function drawnOf(
  names: readonly string[],
  rows: readonly SeriesRow[],
  most: number,
): ReadonlySet<string> {
  if (most >= names.length) return new Set(names);
  const costs = new Map<string, number>();
  for (const { group, nanodollars } of rows) {
    costs.set(group, (costs.get(group) ?? 0) + nanodollars);
  }
  const costOf = (name: string): number => costs.get(name) ?? 0;
  const dearest = names.toSorted((a, b) => costOf(b) - costOf(a));
  return new Set([...names.slice(0, most), ...dearest.slice(0, most)]);
}

function stepFor(periodMs: number): Step {
  if (periodMs <= minutesUpToMs) return 'minute';
  if (periodMs <= hoursUpToMs) return 'hour';
  return periodMs <= sixHoursUpToMs ? '6h' : 'day';
}

/** The rows of each group in steps of this size, in UTC. */
function inSteps(rows: readonly SeriesRow[], size: number): readonly SeriesRow[] {
  const steps = new Map<string, SeriesRow>();
  for (const { group, at, ...sums } of rows) {
    const begin = Math.floor(at / size) * size;
    const slot = `${begin} ${group}`;
    const there = { ...(steps.get(slot) ?? { group, at: begin, ...noSums() }) };
    addSums(there, sums);
    steps.set(slot, there);
  }
  return [...steps.values()];
}

/** Slices are the chart's own steps, up to the maximum number. A period without end has few. */
function sampleOf(store: Store, asked: AskedSeries): Promise<LatencySamples> {
  const { since, until, step, filter } = asked;
  const slices = Math.ceil((until - since) / stepMs[step]);
  return store.calls.sampleLatency({
    since,
    until,
    slices,
    ...(filter === undefined ? {} : { filter }),
  });
}

interface GroupForm {
  /** Percentiles of a step, or of the period. */
  readonly latencyAt: (at: number | undefined) => JsonObject;
  readonly hasPoints: boolean;
}

function groupJsonSeries(
  rows: readonly SeriesRow[],
  { latencyAt, hasPoints }: GroupForm,
): JsonObject {
  const total = noSums();
  for (const row of rows) addSums(total, row);
  const points = hasPoints ? rows : [];
  return {
    ...sumsJsonSeries(total),
    ...latencyAt(undefined),
    points: points.map((row) => ({
      at: dateText(row.at),
      ...sumsJsonSeries(row),
      ...latencyAt(row.at),
    })),
  };
}

function sumsJsonSeries(row: Sums): JsonObject {
  return {
    calls: row.calls,
    failed: row.failed,
    ...failedByJson(row),
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    cache_read_tokens: row.cacheReadTokens,
    cost_usd: knownCost(row),
    unpriced_calls: row.unpricedCalls,
    cache_saved_usd: knownCost(row) === null ? null : dollarsNumber(row.cacheSaved),
  };
}

/** Percentiles of a sample by group and step. */
class Latencies {
  readonly #samples = new Map<string, LatencySample[]>();
  readonly #query: AskedSeries;

  constructor(samples: readonly LatencySample[], asked: AskedSeries) {
    this.#query = asked;
    for (const sample of samples) {
      for (const name of this.#namesOf(sample)) {
        this.#put(this.#slot(name, undefined), sample);
        this.#put(this.#slot(name, sample.startedAt), sample);
      }
    }
  }

  of(name: string, at: number | undefined): JsonObject {
    const samples = this.#samples.get(this.#slot(name, at)) ?? [];
    const totals = sorted(samples.map(({ totalMs }) => totalMs));
    const firsts = sorted(samples.flatMap(({ firstEventMs }) => firstEventMs ?? []));
    const speeds = sorted(samples.flatMap((sample) => outputSpeed(sample) ?? []));
    return {
      p50_ms: percentile(totals, 0.5),
      p95_ms: percentile(totals, 0.95),
      first_p50_ms: percentile(firsts, 0.5),
      first_p95_ms: percentile(firsts, 0.95),
      speed_p50: percentile(speeds, 0.5),
      speed_p5: percentile(speeds, 0.05),
    };
  }

  #namesOf(sample: LatencySample): readonly string[] {
    const { keyId, model, provider = '', team = '', user = '', tags } = sample;
    switch (this.#query.by) {
      case 'key':
        return [keyId];
      case 'model':
        return [model];
      case 'answered':
        return [answeredBy(sample)];
      case 'provider':
        return [provider];
      case 'team':
        return [team];
      case 'user':
        return [user];
      case 'tag':
        return tags.length === 0 ? [''] : [...new Set(tags)];
      default:
        return [''];
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

/** Tokens a second from the first part to the last; undefined where there is no such time. */
function outputSpeed({ firstEventMs: first, totalMs, outputTokens }: LatencySample) {
  if (first === undefined || outputTokens === undefined || totalMs <= first) return undefined;
  return (outputTokens * 1000) / (totalMs - first);
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((a, b) => a - b);
}

/** The nearest rank. */
function percentile(values: readonly number[], part: number): number | null {
  const value = values[Math.max(0, Math.ceil(values.length * part) - 1)];
  return value === undefined ? null : Math.round(value * 10) / 10;
}
