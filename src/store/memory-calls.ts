/** The ledger in memory, with the same sums beside the rows as on disk: pruning takes the rows only. */
import type {
  CallPage,
  CallQuery,
  CallRow,
  OpenCall,
  Retention,
  Spent,
  SpentPage,
  SeriesQuery,
  SeriesRow,
  UsageQuery,
  UsageRow,
} from './calls.ts';
import {
  mostLooks,
  slicesOf,
  type LatencyQuery,
  type LatencySample,
  type LatencySamples,
} from './latency.ts';
import {
  addSums,
  dayMs,
  furtherTags,
  groupOf,
  hourMs,
  isInGroup,
  labelsOf,
  mostGroupsOfKey,
  noSums,
  planUsage,
  sumsOf,
  type Period,
  type Sums,
  type UsageGroup,
  type UsageTime,
} from './roll-up.ts';
import { planSeries, SeriesSums } from './series.ts';
import { compareText } from './text-order.ts';

interface Bucket {
  readonly group: UsageGroup;
  readonly sums: Sums;
}

/** Buckets by the beginning of their time, and there by group. */
type Buckets = Map<number, Map<string, Bucket>>;

interface Spending {
  readonly counter: string;
  readonly window: string;
  readonly endsAt: number | undefined;
  nanodollars: number;
}

interface Grouped {
  readonly row: CallRow;
  readonly group: UsageGroup;
}

export class MemoryCalls {
  readonly #calls = new Map<string, CallRow>();
  readonly #open = new Map<string, OpenCall>();
  readonly #days: Buckets = new Map();
  readonly #hours: Buckets = new Map();
  readonly #spending = new Map<string, Spending>();
  /** By key, those with tags. */
  readonly #groups = new Map<string, Set<string>>();
  #kept = { calls: 0, hours: 0 };

  record(rows: readonly CallRow[]): void {
    for (const row of rows) {
      this.#open.delete(row.id);
      if (this.#calls.has(row.id)) continue;
      this.#calls.set(row.id, row);
      const group = this.#groupOf(row);
      addTo(this.#days, { row, group }, dayMs);
      addTo(this.#hours, { row, group }, hourMs);
      this.#spend(row);
    }
  }

  open(calls: readonly OpenCall[]): void {
    for (const call of calls) if (!this.#calls.has(call.row.id)) this.#open.set(call.row.id, call);
  }

  #groupOf(row: CallRow): UsageGroup {
    const group = groupOf(row);
    if (group.tags.length === 0) return group;
    const known = this.#groups.get(group.key) ?? new Set();
    this.#groups.set(group.key, known);
    const name = JSON.stringify(group);
    if (known.size >= mostGroupsOfKey && !known.has(name)) return { ...group, tags: furtherTags };
    known.add(name);
    return group;
  }

  settleOrphans(seenBefore: number): readonly CallRow[] {
    const orphans = [...this.#open.values()]
      .filter(({ seenAt }) => seenAt < seenBefore)
      .map(({ row }) => row);
    this.record(orphans);
    return orphans;
  }

  spent(endingAfter: number): readonly Spent[] {
    return [...this.#spending.values()]
      .filter(({ endsAt }) => endsAt === undefined || endsAt > endingAfter)
      .map(({ counter, window, nanodollars }) => ({ counter, window, nanodollars }));
  }

  spentPage(endingAfter: number, { limit, after }: SpentPage): readonly Spent[] {
    return [...this.spent(endingAfter)]
      .sort((a, b) => compareText(a.counter, b.counter) || compareText(a.window, b.window))
      .filter(({ counter, window }) => {
        if (after === undefined) return true;
        const order = compareText(counter, after.counter);
        return order > 0 || (order === 0 && compareText(window, after.window) > 0);
      })
      .slice(0, limit);
  }

  usage(query: UsageQuery): readonly UsageRow[] {
    const plan = planUsage(query, this.#kept);
    const groups = new Map<string, Sums>();
    const add = ({ group, sums }: Bucket, time: UsageTime): void => {
      if (!isInGroup(query.filter, group)) return;
      for (const label of labelsOf(query.by, group, time)) addSums(sumsIn(groups, label), sums);
    };
    for (const [bucket, at] of within(this.#days, plan.days)) add(bucket, { at, day: true });
    for (const [bucket, at] of within(this.#hours, plan.hours)) add(bucket, { at, day: false });
    for (const row of this.#calls.values()) {
      if (!isWithin(plan.calls, row.startedAt)) continue;
      add({ group: groupOf(row), sums: sumsOf(row) }, { at: row.startedAt, day: false });
    }
    return [...groups]
      .map(([group, sums]) => ({ group, ...sums }))
      .sort((a, b) => compareText(a.group, b.group));
  }

  series(query: SeriesQuery): readonly SeriesRow[] {
    const { by, filter } = query;
    const plan = planSeries(query, this.#kept);
    const series = new SeriesSums(query);
    const add = ({ group, sums }: Bucket, at: number): void => {
      if (isInGroup(filter, group)) series.add(at, by === undefined ? '' : group[by], sums);
    };
    for (const [bucket, at] of within(this.#days, plan.days)) add(bucket, at);
    for (const [bucket, at] of within(this.#hours, plan.hours)) add(bucket, at);
    for (const row of this.#calls.values()) {
      if (!isWithin(plan.calls, row.startedAt)) continue;
      add({ group: groupOf(row), sums: sumsOf(row) }, row.startedAt);
    }
    return series.rows();
  }

  sampleLatency(query: LatencyQuery): LatencySamples {
    const rows = [...this.#calls.values()].filter(
      (row) => row.outcome === 'ok' && isInGroup(query.filter, groupOf(row)),
    );
    const within = rows.filter(
      ({ startedAt }) => startedAt >= query.since && startedAt < query.until,
    );
    if (within.length <= mostLooks) return { calls: within.map(sampleOf), isAll: true };
    const calls = slicesOf(query).flatMap(({ from, to, looks }) =>
      within
        .filter((row) => row.startedAt >= from && row.startedAt < to)
        .slice(0, looks)
        .map(sampleOf),
    );
    return { calls, isAll: false };
  }

  list(query: CallQuery): CallPage {
    const found = [...this.#calls.values()]
      .filter((row) => isWanted(query, row) && isAfter(query.before, row))
      .filter((row) => isInGroup(query, { ...groupOf(row), model: row.model }))
      .sort((a, b) => b.startedAt - a.startedAt || compareText(b.id, a.id));
    const calls = found.slice(0, query.limit).map((row) => ({ ...row, attemptRows: [] }));
    const last = calls.at(-1);
    if (last === undefined || found.length <= query.limit) return { calls };
    return { calls, next: { startedAt: last.startedAt, id: last.id } };
  }

  find(id: string): CallRow | undefined {
    return this.#calls.get(id);
  }

  prune(retention: Retention, most: number): number {
    const calls = Math.floor(retention.callsBefore / hourMs) * hourMs;
    const hours = Math.floor(retention.hoursBefore / dayMs) * dayMs;
    this.#kept = {
      calls: Math.max(this.#kept.calls, calls),
      hours: Math.max(this.#kept.hours, hours),
    };
    let pruned = 0;
    for (const row of this.#calls.values()) {
      if (pruned === most) return pruned;
      if (row.startedAt >= this.#kept.calls) continue;
      this.#calls.delete(row.id);
      pruned += 1;
    }
    for (const at of this.#hours.keys()) if (at < this.#kept.hours) this.#hours.delete(at);
    for (const [name, { endsAt }] of this.#spending) {
      if (endsAt !== undefined && endsAt <= this.#kept.hours) this.#spending.delete(name);
    }
    return pruned;
  }

  #spend(row: CallRow): void {
    if (row.cost === undefined) return;
    for (const { counter, window, endsAt } of row.budgets) {
      const name = `${counter}\n${window}`;
      const spending = this.#spending.get(name);
      if (spending !== undefined) spending.nanodollars += row.cost.total;
      else this.#spending.set(name, { counter, window, endsAt, nanodollars: row.cost.total });
    }
  }
}

function addTo(buckets: Buckets, { row, group }: Grouped, unit: number): void {
  const at = Math.floor(row.startedAt / unit) * unit;
  let groups = buckets.get(at);
  if (groups === undefined) {
    groups = new Map();
    buckets.set(at, groups);
  }
  const name = JSON.stringify(group);
  const bucket = groups.get(name) ?? { group, sums: noSums() };
  groups.set(name, bucket);
  addSums(bucket.sums, sumsOf(row));
}

function* within(buckets: Buckets, periods: readonly Period[]): Generator<[Bucket, number]> {
  for (const [at, groups] of buckets) {
    if (!isWithin(periods, at)) continue;
    for (const bucket of groups.values()) yield [bucket, at];
  }
}

function isWithin(periods: readonly Period[], at: number): boolean {
  return periods.some(({ from, to }) => from <= at && at < to);
}

function sumsIn(groups: Map<string, Sums>, label: string): Sums {
  const sums = groups.get(label) ?? noSums();
  groups.set(label, sums);
  return sums;
}

function sampleOf({ firstEventMs, ...row }: CallRow): LatencySample {
  return { ...row, ...(row.stream && firstEventMs !== undefined ? { firstEventMs } : {}) };
}

function isWanted(query: CallQuery, row: CallRow): boolean {
  const { since = -Infinity, until = Infinity, outcome, endpoint, user } = query;
  return (
    row.startedAt >= since &&
    row.startedAt < until &&
    (outcome === undefined || row.outcome === outcome) &&
    (endpoint === undefined || row.endpoint === endpoint) &&
    (user === undefined || row.user === user) &&
    isServedAs(query, row)
  );
}

function isServedAs({ status, mode, notes }: CallQuery, row: CallRow): boolean {
  return (
    (status === undefined || row.status === status) &&
    (mode === undefined || row.mode === mode) &&
    (notes === undefined || (row.notes ?? '').toLowerCase().includes(notes.toLowerCase()))
  );
}

/** In the order newest first. */
function isAfter(cursor: CallQuery['before'], row: CallRow): boolean {
  if (cursor === undefined || row.startedAt < cursor.startedAt) return true;
  return row.startedAt === cursor.startedAt && compareText(row.id, cursor.id) < 0;
}
