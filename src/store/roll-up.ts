/**
 * Sums of calls by hour and by day (UTC), updated in the same transaction as the rows. Queries combine whole
 * days, whole hours, and single calls at the ends.
 */
import { faultKinds } from '../core/faults.ts';
import { summedClasses } from '../core/token-classes.ts';
import {
  type CallRow,
  type UsageFilter,
  type UsageGrouping,
  type UsageQuery,
  type UsageRow,
  type SeriesQuery,
  type SeriesRow,
} from './calls.ts';
import { compareText, readTexts } from './columns.ts';

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** The maximum number of failed calls that one query groups. A partial index finds them. */
export const maxFailures = 50_000;

/** Names of settings: rows and hours before these times may be gone. */
export const callsRetainedSince = 'calls_kept_since';
export const hoursRetainedSince = 'hours_kept_since';

/** The members by which sums are grouped. A call has one group, whatever its tags: a set of tags is one value. */
export interface UsageGroup {
  readonly key: string;
  /** '' = has none. */
  readonly team: string;
  /** '' = one that is not known. */
  readonly model: string;
  readonly provider: string;
  /** `provider/model` of the target that answered, or of the last one tried; '' = none was tried. */
  readonly answered: string;
  /** Without repetition, sorted. */
  readonly tags: readonly string[];
}

export type Sums = { -readonly [K in Exclude<keyof UsageRow, 'group'>]: UsageRow[K] };

/** Unknown model names are summed together, since a client can invent any number of them. */
export const unknownModelError = 'model_not_found';

/**
 * Daily sums are kept for ever, and clients choose tags: the number of tag sets per key is limited, further
 * ones are summed together.
 */
export const maxGroupsOfKey = 10_000;
export const furtherTags: readonly string[] = ['(others)'];

export function groupOf(row: CallRow): UsageGroup {
  return {
    key: row.keyId,
    team: row.team ?? '',
    model: row.error === unknownModelError ? '' : row.model,
    provider: row.provider ?? '',
    answered: answeredBy(row),
    tags: row.tags.length < 2 ? row.tags : [...new Set(row.tags)].sort(),
  };
}

interface Answered {
  readonly provider?: string;
  readonly upstreamModel?: string;
  /** Of a failed call. */
  readonly error?: string;
}

/** The name of a target. Unknown models have none: clients can make up any number of names. */
export function answeredBy({ provider = '', upstreamModel = '', error }: Answered): string {
  return provider === '' || error === unknownModelError ? '' : `${provider}/${upstreamModel}`;
}

export function noSums(): Sums {
  return {
    calls: 0,
    failed: 0,
    failedLimit: 0,
    failedClient: 0,
    failedProvider: 0,
    failedGateway: 0,
    inputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    audioInputTokens: 0,
    imageInputTokens: 0,
    videoInputTokens: 0,
    audioOutputTokens: 0,
    imageOutputTokens: 0,
    webSearches: 0,
    images: 0,
    pricedCalls: 0,
    unpricedCalls: 0,
    nanodollars: 0,
    cacheSaved: 0,
  };
}

/** The sums of one call. */
export function sumsOf({ charged, outcome, failure, cost, cacheSaved = 0 }: CallRow): Sums {
  const { freshInputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = charged;
  const sums = noSums();
  for (const { member } of summedClasses) sums[member] = charged[member] ?? 0;
  sums.calls = 1;
  sums.failed = outcome === 'failed' ? 1 : 0;
  for (const { fault, member } of faultKinds) sums[member] = failure?.fault === fault ? 1 : 0;
  sums.inputTokens = freshInputTokens + cacheReadTokens + cacheWriteTokens;
  sums.cacheSaved = cacheSaved;
  if (cost === undefined) sums.unpricedCalls = sums.inputTokens + sums.outputTokens > 0 ? 1 : 0;
  else {
    sums.pricedCalls = 1;
    sums.nanodollars = cost.total;
  }
  return sums;
}

export function addSums(to: Sums, more: Sums): void {
  to.calls += more.calls;
  to.failed += more.failed;
  to.inputTokens += more.inputTokens;
  to.pricedCalls += more.pricedCalls;
  to.unpricedCalls += more.unpricedCalls;
  to.nanodollars += more.nanodollars;
  to.cacheSaved += more.cacheSaved;
  for (const { member } of summedClasses) to[member] += more[member];
  for (const { member } of faultKinds) to[member] += more[member];
}

/** The labels that the sums of a group count for; `time` is the beginning of their day or hour, or the call's. */
export function labelsOf(by: UsageGrouping, group: UsageGroup, time: UsageTime): readonly string[] {
  switch (by) {
    case 'day':
      return [new Date(time.at).toISOString().slice(0, 10)];
    case 'hour':
      return [hourLabel(time)];
    case 'tag':
      return group.tags.length === 0 ? [''] : group.tags;
    case 'key':
    case 'team':
    case 'model':
    case 'answered':
    case 'provider':
      return [group[by]];
    case 'user':
      // No sum is stored by user: there may be as many as calls.
      return [];
    default:
      return by satisfies never;
  }
}

/** The groups of what a store calls `label`: a set of tags, as JSON, stands for each of them. */
export function namesOfLabel(by: UsageGrouping | undefined, label: string): readonly string[] {
  if (by !== 'tag') return [label];
  const tags = new Set(readTexts(label));
  return tags.size === 0 ? [''] : [...tags];
}

/** The labels with one of the groups that have the most calls. */
export function labelsOfBusiest(
  { by, groups }: Pick<SeriesQuery, 'by' | 'groups'>,
  calls: ReadonlyMap<string, number>,
  labels: Iterable<string>,
): readonly string[] {
  const chosen = new Set(busiestOf(calls, groups));
  return [...labels].filter((label) => namesOfLabel(by, label).some((name) => chosen.has(name)));
}

/**
 * The totals of whole hours and days besides groups: for a week with a thousand groups, a chart of all calls would
 * have to add up 168,000 rows.
 */
export const totalKinds = ['all', 'model', 'answered', 'provider', 'team'] as const;
export type TotalKind = (typeof totalKinds)[number];

/** The total of a kind that a group's sums belong to. */
export function totalName(kind: TotalKind, group: Omit<UsageGroup, 'key' | 'tags'>): string {
  return kind === 'all' ? '' : group[kind];
}

/** The totals that sums can be read from; undefined: only their groups have them. */
export function totalKindOf({
  by,
  filter = {},
}: {
  readonly by?: UsageGrouping;
  readonly filter?: UsageFilter;
}): TotalKind | undefined {
  if (Object.values(filter).some((value) => value !== undefined)) return undefined;
  if (by === undefined || by === 'day' || by === 'hour') return 'all';
  return totalKinds.find((kind) => kind === by);
}

export interface UsageTime {
  readonly at: number;
  /** A whole day whose hourly sums have expired. */
  readonly day: boolean;
}

function hourLabel({ at, day }: UsageTime): string {
  const text = new Date(at).toISOString();
  return day ? text.slice(0, 10) : `${text.slice(0, 13)}:00Z`;
}

/** From `from` on, before `to`. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

/** Where the parts of a period are read. */
export interface UsagePlan {
  readonly days: readonly Period[];
  readonly hours: readonly Period[];
  readonly calls: readonly Period[];
}

/** Calls and hours before these times may be pruned; whole hours, whole days. */
export interface RetainedSince {
  readonly calls: number;
  readonly hours: number;
}

/**
 * Uses the coarsest sums that fit. If an end of the period lies in a time with only hourly or daily sums, it
 * moves outwards to the whole hour or day.
 */
export function planUsage(query: UsageQuery, retained: RetainedSince): UsagePlan {
  if (query.by === 'user') return callsOnly(query);
  const period = {
    from: outwards(query.since, retained, Math.floor),
    to: outwards(query.until ?? Number.MAX_SAFE_INTEGER, retained, Math.ceil),
  };
  const days: Period = query.by === 'hour' ? { from: period.from, to: retained.hours } : period;
  const [wholeDays, partDays] = split(period, days, dayMs);
  const parts = partDays.map((part) => split(part, part, hourMs));
  return {
    days: wholeDays,
    hours: parts.flatMap(([whole]) => whole),
    calls: parts.flatMap(([, edges]) => edges),
  };
}

function callsOnly({ since, until = Number.MAX_SAFE_INTEGER }: Omit<UsageQuery, 'by'>): UsagePlan {
  return { days: [], hours: [], calls: [{ from: since, to: until }] };
}

function outwards(time: number, retained: RetainedSince, round: (value: number) => number): number {
  if (time < retained.hours) return round(time / dayMs) * dayMs;
  return time < retained.calls ? round(time / hourMs) * hourMs : time;
}

/** The whole units of a period within the allowed range, and the rest of the period. */
function split(period: Period, within: Period, unit: number): [Period[], Period[]] {
  const from = Math.ceil(period.from / unit) * unit;
  const to = Math.floor(Math.min(period.to, within.to) / unit) * unit;
  if (from >= to) return [[], nonEmpty([period])];
  const edges = [
    { from: period.from, to: from },
    { from: to, to: period.to },
  ];
  return [[{ from, to }], nonEmpty(edges)];
}

function nonEmpty(periods: readonly Period[]): Period[] {
  return periods.filter(({ from, to }) => from < to);
}

const minuteMs = 60_000;

export const stepMs: { readonly [S in SeriesQuery['step']]: number } = {
  minute: minuteMs,
  hour: hourMs,
  day: dayMs,
};

export const sourcesInOrder = ['days', 'hours', 'calls'] as const;

/** Where the sums for a step are read: minutes and users are in the calls only. */
export function planSeries(
  { step, by, since, until }: SeriesQuery,
  retained: RetainedSince,
): UsagePlan {
  return step === 'minute' || by === 'user'
    ? callsOnly({ since, until })
    : planUsage({ by: step, since, until }, retained);
}

/**
 * Where the calls of each group in the same time are counted: of a week of hours, in its days. Of minutes the calls
 * alone are asked, as `planSeries` does, so that no group is chosen for calls that are gone.
 */
export function planCounts(query: SeriesQuery, retained: RetainedSince): UsagePlan {
  const { step, by, since, until } = query;
  return step === 'minute' || by === 'user'
    ? planSeries(query, retained)
    : planUsage({ by: 'day', since, until }, retained);
}

/** The groups with the most calls, in that order. */
export function busiestOf(calls: ReadonlyMap<string, number>, groups: number): readonly string[] {
  return [...calls]
    .toSorted(([a, x], [b, y]) => y - x || compareText(a, b))
    .slice(0, groups)
    .map(([name]) => name);
}

export class SeriesSums {
  readonly #query: SeriesQuery;
  readonly #groups = new Map<string, { calls: number; readonly steps: Map<number, Sums> }>();

  constructor(query: SeriesQuery) {
    this.#query = query;
  }

  /** @param at a time in the step, or in a day whose hours are gone. */
  add(at: number, label: string, sums: Sums): void {
    for (const name of namesOfLabel(this.#query.by, label)) this.#addTo(name, at, sums);
  }

  #addTo(name: string, at: number, sums: Sums): void {
    const unit = stepMs[this.#query.step];
    const step = Math.floor(at / unit) * unit;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { calls: 0, steps: new Map() };
      this.#groups.set(name, group);
    }
    group.calls += sums.calls;
    const there = group.steps.get(step) ?? noSums();
    group.steps.set(step, there);
    addSums(there, sums);
  }

  /** What was added so far, by group. */
  calls(): Map<string, number> {
    return new Map([...this.#groups].map(([name, { calls }]) => [name, calls]));
  }

  /** By group, the one with the most calls first, and by time. */
  rows(): readonly SeriesRow[] {
    return busiestOf(this.calls(), this.#query.groups).flatMap((group) =>
      [...(this.#groups.get(group)?.steps ?? [])]
        .toSorted(([a], [b]) => a - b)
        .map(([at, sums]): SeriesRow => ({ group, at, ...sums })),
    );
  }
}

export interface LatencyQuery {
  readonly since: number;
  readonly until: number;
  /** The period is divided into this many equal parts; at most `maxSlices`. */
  readonly slices: number;
  readonly filter?: UsageFilter;
}

/** One call that ended well. */
export interface LatencySample {
  readonly startedAt: number;
  readonly keyId: string;
  readonly team?: string;
  readonly user?: string;
  readonly tags: readonly string[];
  readonly model: string;
  readonly provider?: string;
  readonly upstreamModel?: string;
  readonly totalMs: number;
  /** Of streams alone: the first part of a document comes when all of it is there. */
  readonly firstEventMs?: number;
  readonly outputTokens?: number;
}

export interface LatencySamples {
  readonly calls: readonly LatencySample[];
  /** These are all calls of the period and filter that ended well: what is made of them is exact. */
  readonly isAll: boolean;
}

const maxSlices = 200;
/** A period with no more calls is read as a whole; else of all slices together, each takes its part. */
export const maxLooks = 6_000;

export interface Slice {
  readonly from: number;
  readonly to: number;
  /** Rows that may be examined in it. */
  readonly looks: number;
}

export function slicesOf({ since, until, slices }: LatencyQuery): readonly Slice[] {
  const count = Math.max(1, Math.min(maxSlices, Math.floor(slices)));
  const width = (until - since) / count;
  const looks = Math.floor(maxLooks / count);
  return Array.from({ length: count }, (_, i) => ({
    from: Math.round(since + i * width),
    to: Math.round(since + (i + 1) * width),
    looks,
  })).filter(({ from, to }) => from < to);
}
