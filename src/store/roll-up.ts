/**
 * Sums of calls by hour and by day (UTC), kept beside the rows and moved in the same transaction. What
 * is asked of them is put together from whole days, whole hours, and the calls at the ragged ends.
 */
import {
  pieces,
  type CallRow,
  type UsageFilter,
  type UsageGrouping,
  type UsageQuery,
  type UsageRow,
} from './calls.ts';

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** What sums are kept apart by. A call has one group, whatever its tags: a set of tags is one value. */
export interface UsageGroup {
  readonly key: string;
  /** '' = has none. */
  readonly team: string;
  /** '' = one that is not known. */
  readonly model: string;
  readonly provider: string;
  /** Without repetition, sorted. */
  readonly tags: readonly string[];
}

export type Sums = { -readonly [K in Exclude<keyof UsageRow, 'group'>]: UsageRow[K] };

/** Names that no model has are summed together: a client can make up any number of them. */
export const unknownModelError = 'model_not_found';

/**
 * Sums by day stay for ever, and clients name tags: a key's calls are summed by their tags up to so many
 * groups, further sets of tags together.
 */
export const mostGroupsOfKey = 10_000;
export const furtherTags: readonly string[] = ['(others)'];

export function groupOf(row: CallRow): UsageGroup {
  return {
    key: row.keyId,
    team: row.team ?? '',
    model: row.error === unknownModelError ? '' : row.model,
    provider: row.provider ?? '',
    tags: row.tags.length < 2 ? row.tags : [...new Set(row.tags)].sort(),
  };
}

export function noSums(): Sums {
  return {
    calls: 0,
    failed: 0,
    inputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    pricedCalls: 0,
    unpricedCalls: 0,
    nanodollars: 0,
    audioInputTokens: 0,
    imageInputTokens: 0,
    videoInputTokens: 0,
    audioOutputTokens: 0,
    imageOutputTokens: 0,
    webSearches: 0,
    images: 0,
  };
}

/** The sums of one call. */
export function sumsOf(row: CallRow): Sums {
  const { freshInputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = row.charged;
  const inputTokens = freshInputTokens + cacheReadTokens + cacheWriteTokens;
  const outputTokens = row.charged.outputTokens ?? 0;
  const charged = inputTokens + outputTokens > 0;
  return {
    ...piecesOf(row),
    calls: 1,
    failed: row.outcome === 'failed' ? 1 : 0,
    inputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    outputTokens,
    pricedCalls: row.cost === undefined ? 0 : 1,
    unpricedCalls: row.cost === undefined && charged ? 1 : 0,
    nanodollars: row.cost?.total ?? 0,
  };
}

function piecesOf({ charged }: CallRow): Sums {
  const sums = noSums();
  for (const piece of pieces) sums[piece] = charged[piece] ?? 0;
  return sums;
}

export function addSums(to: Sums, more: Sums): void {
  to.calls += more.calls;
  to.failed += more.failed;
  to.inputTokens += more.inputTokens;
  to.cacheReadTokens += more.cacheReadTokens;
  to.cacheWriteTokens += more.cacheWriteTokens;
  to.outputTokens += more.outputTokens;
  to.pricedCalls += more.pricedCalls;
  to.unpricedCalls += more.unpricedCalls;
  to.nanodollars += more.nanodollars;
  for (const piece of pieces) to[piece] += more[piece];
}

export function isInGroup(filter: UsageFilter | undefined, group: UsageGroup): boolean {
  if (filter === undefined) return true;
  const { key, team, model, provider, tag } = filter;
  return (
    (key === undefined || key === group.key) &&
    (team === undefined || team === group.team) &&
    (model === undefined || model === group.model) &&
    (provider === undefined || provider === group.provider) &&
    (tag === undefined || (tag === '' ? group.tags.length === 0 : group.tags.includes(tag)))
  );
}

/** What the sums of a group count for; `time` is the beginning of their day or hour, or the call's. */
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
    case 'provider':
      return [group[by]];
    default:
      return by satisfies never;
  }
}

export interface UsageTime {
  readonly at: number;
  /** A whole day, of which the hours are no longer known. */
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
export interface KeptSince {
  readonly calls: number;
  readonly hours: number;
}

/**
 * Takes the coarsest sums that fit. An end of the period in a time of which only hours or days are
 * left moves outwards to the whole hour or day.
 */
export function planUsage(query: UsageQuery, kept: KeptSince): UsagePlan {
  const period = {
    from: outwards(query.since, kept, Math.floor),
    to: outwards(query.until ?? Number.MAX_SAFE_INTEGER, kept, Math.ceil),
  };
  const days: Period = query.by === 'hour' ? { from: period.from, to: kept.hours } : period;
  const [wholeDays, besideDays] = split(period, days, dayMs);
  const parts = besideDays.map((part) => split(part, part, hourMs));
  return {
    days: wholeDays,
    hours: parts.flatMap(([whole]) => whole),
    calls: parts.flatMap(([, beside]) => beside),
  };
}

function outwards(time: number, kept: KeptSince, round: (value: number) => number): number {
  if (time < kept.hours) return round(time / dayMs) * dayMs;
  return time < kept.calls ? round(time / hourMs) * hourMs : time;
}

/** The whole units of a period, as far as they may be taken, and what is left of it. */
function split(period: Period, within: Period, unit: number): [Period[], Period[]] {
  const from = Math.ceil(period.from / unit) * unit;
  const to = Math.floor(Math.min(period.to, within.to) / unit) * unit;
  if (from >= to) return [[], nonEmpty([period])];
  const beside = [
    { from: period.from, to: from },
    { from: to, to: period.to },
  ];
  return [[{ from, to }], nonEmpty(beside)];
}

function nonEmpty(periods: readonly Period[]): Period[] {
  return periods.filter(({ from, to }) => from < to);
}
