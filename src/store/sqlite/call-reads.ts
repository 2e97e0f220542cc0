/** The reading half of the ledger in SQLite. */
import { readCallRow, readSums, sampleOf } from '../call-rows.ts';
import type {
  CallCursor,
  CallPage,
  CallQuery,
  CallRow,
  UsageGrouping,
  SeriesQuery,
  SeriesRow,
  UsageQuery,
  UsageRow,
  UsageFilter,
} from '../calls.ts';
import { readTexts, number, text, compareText, type Columns, type Value } from '../columns.ts';
import {
  addSums,
  callsKeptSince,
  dayMs,
  hourMs,
  hoursKeptSince,
  labelsOf,
  noSums,
  planUsage,
  mostLooks,
  slicesOf,
  type LatencyQuery,
  type LatencySamples,
  type KeptSince,
  type Period,
  type Sums,
  type LatencySample,
  type Slice,
} from '../roll-up.ts';
import { callStatements, settingStatements } from '../statements.ts';
import type { Statements } from './database.ts';
import { SqliteSeries, groupFilter, inGroup, sources, usageSql, type Source } from './usage.ts';

/** Maximum number of rows that a page scans: a rare filter makes pages short, not slow. */
const mostScanned = 50_000;

const page = `SELECT calls.*, prices.price FROM calls
  LEFT JOIN prices ON prices.id = calls.price_id
  WHERE started_at >= $since AND started_at <= $top AND (started_at < $top OR calls.id < $belowId)
    AND ($key IS NULL OR key_id = $key) AND ($team IS NULL OR coalesce(team, '') = $team)
    AND ($model IS NULL OR model = $model)
    AND ($provider IS NULL OR coalesce(provider, '') = $provider)
    AND ($outcome IS NULL OR outcome = $outcome) AND ($endpoint IS NULL OR endpoint = $endpoint)
    AND ($user IS NULL OR user_name = $user) AND ($status IS NULL OR status = $status)
    AND ($mode IS NULL OR mode = $mode)
    AND ($notes IS NULL OR instr(lower(notes), lower($notes)) > 0)
    AND ($tag IS NULL OR CASE $tag WHEN '' THEN tags IS NULL
      ELSE EXISTS (SELECT 1 FROM json_each(tags) WHERE value = $tag) END)
  ORDER BY started_at DESC, calls.id DESC LIMIT $limit`;
const lastScanned = `SELECT started_at FROM calls WHERE started_at <= $top
  ORDER BY started_at DESC LIMIT 1 OFFSET ${mostScanned}`;
// An index by key would cost every call a page of its own to write; the sums know where to look.
const lastDay = `SELECT at FROM ${sources.days} WHERE at <= $to AND ${inGroup}
  ORDER BY at DESC LIMIT 1`;
const lastHour = `SELECT at FROM ${sources.hours} WHERE at >= $from AND at <= $to AND ${inGroup}
  ORDER BY at DESC LIMIT 1`;
const attemptsOf = 'SELECT * FROM attempts WHERE call_n = ? ORDER BY ordinal';

/** Above every id in the order of bytes. */
const aboveIds = '\u{10FFFF}';

export class SqliteCallReads {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  usage(query: UsageQuery): readonly UsageRow[] {
    const groups = this.#sql.read(() => this.#sums(query));
    return [...groups]
      .map(([group, sums]) => ({ group, ...sums }))
      .toSorted((a, b) => compareText(a.group, b.group));
  }

  series(query: SeriesQuery): readonly SeriesRow[] {
    return this.#sql.read(() => new SqliteSeries(this.#sql, query, this.#kept()).rows());
  }

  sampleLatency(query: LatencyQuery): LatencySamples {
    return sampleSqlite(this.#sql, query);
  }

  list(query: CallQuery): CallPage {
    return this.#sql.read(() => this.#page(query));
  }

  find(id: string): CallRow | undefined {
    const row = this.#sql.of(callStatements.find).get(id);
    if (row === undefined) return undefined;
    return readCallRow(row, this.#sql.of(attemptsOf).all(number(row, 'n')));
  }

  #sums(query: UsageQuery): ReadonlyMap<string, Sums> {
    const plan = planUsage(query, this.#kept());
    const groups = new Map<string, Sums>();
    for (const source of ['days', 'hours', 'calls'] as const) {
      for (const period of plan[source]) {
        for (const row of this.#sumsOf(source, query, period)) {
          for (const group of groupsOf(query.by, row, source === 'days')) {
            const sums = groups.get(group) ?? noSums();
            groups.set(group, sums);
            addSums(sums, readSums(row));
          }
        }
      }
    }
    return groups;
  }

  #sumsOf(source: Source, query: UsageQuery, period: Period): Columns[] {
    return this.#sql.of(usageSql(source, query.by)).all({
      ...groupFilter(query.filter ?? {}),
      from: period.from,
      to: period.to,
    });
  }

  #kept(): KeptSince {
    return {
      calls: this.#keptSince(callsKeptSince),
      hours: this.#keptSince(hoursKeptSince),
    };
  }

  #keptSince(name: string): number {
    const row = this.#sql.of(settingStatements.read).get(name);
    return row === undefined ? 0 : Number(text(row, 'value'));
  }

  #page(query: CallQuery): CallPage {
    const { limit } = query;
    const start = this.#start(query);
    if (start === undefined) return { calls: [] };
    const end = this.#sql.of(lastScanned).get({ top: start.startedAt });
    const scannedTo = end === undefined ? undefined : number(end, 'started_at');
    const rows = this.#sql.of(page).all({
      ...groupFilter(query),
      ...ownFilter(query),
      since: Math.max(query.since ?? 0, scannedTo ?? 0),
      top: start.startedAt,
      belowId: start.id,
      limit: limit + 1,
    });
    const calls = rows.slice(0, limit).map((row) => readCallRow(row, []));
    const next = rows.length > limit ? cursorOf(calls.at(-1)) : scanEnd(query, scannedTo);
    return { calls, ...(next === undefined ? {} : { next }) };
  }

  /** Where to begin; undefined = nothing older is in the wanted groups. */
  #start(query: CallQuery): CallCursor | undefined {
    const { key, team, provider, tag, before } = query;
    const latest = (query.until ?? Number.MAX_SAFE_INTEGER) - 1;
    const start =
      before !== undefined && before.startedAt <= latest
        ? before
        : { startedAt: latest, id: aboveIds };
    // Not filtered by model: unknown model names are summed as one.
    const filter = { ...groupFilter(query), model: null };
    if (key === undefined && team === undefined && provider === undefined && tag === undefined) {
      return start;
    }
    const day = this.#sql.of(lastDay).get({ ...filter, to: start.startedAt });
    if (day === undefined) return undefined;
    const from = number(day, 'at');
    const to = Math.min(start.startedAt, from + dayMs - 1);
    const hour = this.#sql.of(lastHour).get({ ...filter, from, to });
    // The rows may stay longer than the sums by hour.
    const top = hour === undefined ? to : Math.min(to, number(hour, 'at') + hourMs - 1);
    return top < start.startedAt ? { startedAt: top, id: aboveIds } : start;
  }
}

/** What only calls have, and no group. */
function ownFilter(query: CallQuery): Record<string, Value> {
  const { outcome, endpoint, user, status, mode, notes } = query;
  return {
    outcome: outcome ?? null,
    endpoint: endpoint ?? null,
    user: user ?? null,
    status: status ?? null,
    mode: mode ?? null,
    notes: notes ?? null,
  };
}

function cursorOf(call: CallRow | undefined): CallCursor | undefined {
  return call === undefined ? undefined : { startedAt: call.startedAt, id: call.id };
}

/** All calls of that very millisecond were looked at: the next page begins below it. */
function scanEnd({ since = 0 }: CallQuery, end: number | undefined): CallCursor | undefined {
  return end === undefined || end <= since ? undefined : { startedAt: end, id: '' };
}

function groupsOf(by: UsageGrouping, row: Columns, day: boolean): readonly string[] {
  const label = row['label'];
  if (typeof label === 'number') return labelsOf(by, noGroup, { at: label, day });
  const value = text(row, 'label');
  if (by !== 'tag') return [value];
  const tags = [...new Set(readTexts(value))];
  return tags.length === 0 ? [''] : tags;
}

const noGroup = { key: '', team: '', model: '', provider: '', tags: [] };

const first = `SELECT n FROM calls WHERE started_at >= $from AND started_at < $to
  ORDER BY started_at LIMIT 1`;
const last = `SELECT n FROM calls WHERE started_at >= $from AND started_at < $to
  ORDER BY started_at DESC LIMIT 1`;
const columns = `started_at, key_id, team, tags, model, provider, outcome, total_ms,
  CASE stream WHEN 1 THEN first_event_ms END AS first_event_ms`;
const from = `SELECT ${columns} FROM calls WHERE n >= ? ORDER BY n LIMIT 1`;
const fewCalls = `SELECT count(*) AS calls FROM (SELECT 1 FROM calls
  WHERE started_at >= $from AND started_at < $to LIMIT ${mostLooks + 1})`;
const all = `SELECT ${columns} FROM calls WHERE started_at >= $from AND started_at < $to`;

export function sampleSqlite(sql: Statements, query: LatencyQuery): LatencySamples {
  const { filter = {} } = query;
  const period = { from: Math.round(query.since), to: Math.round(query.until) };
  return sql.read(() => {
    const isAll = number(sql.of(fewCalls).get(period) ?? {}, 'calls') <= mostLooks;
    const calls = isAll
      ? sql
          .of(all)
          .all(period)
          .filter((row) => row['outcome'] === 'ok' && isWanted(row, filter))
          .map(sampleOf)
      : slicesOf(query).flatMap((slice) => sampleSlice(sql, slice, filter));
    return { calls, isAll };
  });
}

function sampleSlice(sql: Statements, slice: Slice, filter: UsageFilter): readonly LatencySample[] {
  const period = { from: slice.from, to: slice.to };
  const begins = sql.of(first).get(period);
  const ends = sql.of(last).get(period);
  if (begins === undefined || ends === undefined) return [];
  // A long call is written behind shorter ones that began later.
  const [low = 0, high = 0] = [number(begins, 'n'), number(ends, 'n')].toSorted((a, b) => a - b);
  const span = high - low + 1;
  const looks = Math.min(slice.looks, span);
  const found: LatencySample[] = [];
  for (let i = 0; i < looks; i++) {
    const row = sql.of(from).get(low + Math.floor((i * span) / looks));
    if (row === undefined) break;
    const startedAt = number(row, 'started_at');
    const isInSlice = startedAt >= slice.from && startedAt < slice.to;
    if (isInSlice && row['outcome'] === 'ok' && isWanted(row, filter)) found.push(sampleOf(row));
  }
  return found;
}

function isWanted(row: Columns, { key, team, model, provider, tag }: UsageFilter): boolean {
  return (
    (key === undefined || row['key_id'] === key) &&
    (team === undefined || (row['team'] ?? '') === team) &&
    (model === undefined || row['model'] === model) &&
    (provider === undefined || (row['provider'] ?? '') === provider) &&
    (tag === undefined || hasTag(row, tag))
  );
}

function hasTag(row: Columns, tag: string): boolean {
  const tags = row['tags'] === null ? [] : readTexts(text(row, 'tags'));
  return tag === '' ? tags.length === 0 : tags.includes(tag);
}
