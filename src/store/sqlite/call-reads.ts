/** The reading half of the ledger in SQLite. */
import { faultKinds } from '../../core/faults.ts';
import { summedClasses } from '../../core/token-classes.ts';
import { readCallRow, readFailureGroup, readSums, sampleOf, sumColumns } from '../call-rows.ts';
import {
  type CallCursor,
  type CallPage,
  type CallQuery,
  type CallRow,
  type FailureGroups,
  type FailureQuery,
  type UsageGrouping,
  type SeriesQuery,
  type SeriesRow,
  type UsageQuery,
  type UsageRow,
  type CallsWithin,
  type UsageFilter,
} from '../calls.ts';
import { readTexts, number, text, compareText, type Columns, type Value } from '../columns.ts';
import {
  addSums,
  callsRetainedSince,
  dayMs,
  hourMs,
  hoursRetainedSince,
  labelsOf,
  labelsOfBusiest,
  namesOfLabel,
  noSums,
  planUsage,
  maxFailures,
  maxLooks,
  slicesOf,
  type LatencyQuery,
  type LatencySamples,
  type RetainedSince,
  type Period,
  type Sums,
  type LatencySample,
  type Slice,
  unknownModelError,
  planCounts,
  planSeries,
  SeriesSums,
  stepMs,
  sourcesInOrder,
  totalKindOf,
  type TotalKind,
  type UsagePlan,
} from '../roll-up.ts';
import { callStatements, settingStatements } from '../statements.ts';
import type { Statements } from './database.ts';

// Sums over time on SQLite. The groups to show are selected first, by their number of calls: 500 keys over 90
// days are 45,000 sums, and a chart shows those of eight. Roll-ups are then read one period after the other, so
// that little has to be sorted by name: three times as fast as one query.

/** As `answeredBy` (roll-up.ts) of a row. */
const answered = `CASE WHEN provider IS NULL OR error = '${unknownModelError}' THEN ''
    ELSE provider || '/' || coalesce(upstream_model, '') END`;

/** With columns as in the roll-ups. */
const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, ${answered} AS answered, coalesce(tags, '[]') AS tags,
    coalesce(user_name, '') AS user_name,
    1 AS calls, outcome = 'failed' AS failed,
    ${faultKinds.map(({ fault, column }) => `fault IS '${fault}' AS ${column}`).join(', ')},
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    cost IS NOT NULL AS priced_calls,
    cost IS NULL AND coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) + coalesce(charged_output_tokens, 0) > 0
      AS unpriced_calls,
    cost AS nanodollars, cache_saved,
    ${summedClasses.map(({ column }) => `charged_${column} AS ${column}`).join(', ')}
  FROM calls)`;

const sources = {
  days: 'usage_days JOIN usage_groups ON usage_groups.id = group_id',
  hours: 'usage_hours JOIN usage_groups ON usage_groups.id = group_id',
  calls: callSums,
} as const;

type Source = keyof typeof sources;

/** The columns of a group; times become groups in `labelsOf`, sets of tags in `namesOfLabel`. */
const labels: { readonly [G in UsageGrouping]: string } = {
  key: 'key_id',
  team: 'team',
  model: 'model',
  answered: 'answered',
  provider: 'provider',
  tag: 'tags',
  user: 'user_name',
  day: 'at / 86400000 * 86400000',
  hour: 'at / 3600000 * 3600000',
};

// total(), not sum(): it is exact up to 2^53 and never fails beyond.
const totals = sumColumns.map((name) => `total(${name}) AS ${name}`).join(', ');

const isWithin = `($withinKeys IS NULL OR key_id IN (SELECT value FROM json_each($withinKeys))
  OR team IN (SELECT value FROM json_each($withinTeams)))`;

const inGroup = `${isWithin} AND ($key IS NULL OR key_id = $key) AND ($team IS NULL OR team = $team)
  AND ($model IS NULL OR model = $model) AND ($provider IS NULL OR provider = $provider)
  AND ($tag IS NULL OR CASE $tag WHEN '' THEN tags = '[]'
    ELSE EXISTS (SELECT 1 FROM json_each(tags) WHERE value = $tag) END)`;

/** Sums by group of a part of a period: `$from`, `$to`, and the filter's five names. */
function usageSql(source: Source, by: UsageGrouping): string {
  return `SELECT ${labels[by]} AS label, ${totals} FROM ${sources[source]}
    WHERE at >= $from AND at < $to AND ${inGroup} GROUP BY label`;
}

/** The values of `inGroup`. */
function groupFilter(filter: UsageFilter): Record<string, Value> {
  const { key, team, model, provider, tag, within } = filter;
  return {
    withinKeys: within === undefined ? null : JSON.stringify(within.keys),
    withinTeams: JSON.stringify(within?.teams ?? []),
    key: key ?? null,
    team: team ?? null,
    model: model ?? null,
    provider: provider ?? null,
    tag: tag ?? null,
  };
}

const tables = { days: 'usage_days', hours: 'usage_hours' } as const;
const rollUps = ['days', 'hours'] as const;
type RollUp = (typeof rollUps)[number];

/** In the memory of the connection: the file is not written. */
const makeWanted = `CREATE TEMP TABLE IF NOT EXISTS wanted_groups
  (id INTEGER PRIMARY KEY, label TEXT NOT NULL) STRICT`;
const forget = 'DELETE FROM wanted_groups';
const wantedLabels = 'SELECT DISTINCT label FROM wanted_groups';
const dropOthers =
  'DELETE FROM wanted_groups WHERE label NOT IN (SELECT value FROM json_each($labels))';

const labelOf = ({ by }: SeriesQuery): string => (by === undefined ? "''" : labels[by]);

const wantedSql = (query: SeriesQuery): string => `INSERT INTO wanted_groups
  SELECT id, ${labelOf(query)} FROM usage_groups WHERE ${inGroup}`;

const callsOfGroups = (source: RollUp): string => `SELECT label, total(calls) AS calls
  FROM (SELECT group_id, sum(calls) AS calls FROM ${tables[source]}
    WHERE at >= $from AND at < $to GROUP BY group_id)
  JOIN wanted_groups ON id = group_id GROUP BY label`;

const nextTime = (source: RollUp): string =>
  `SELECT min(at) AS at FROM ${tables[source]} WHERE at >= $from AND at < $to`;

const sumsAt = (source: RollUp): string => `SELECT label, ${totals}
  FROM ${tables[source]} CROSS JOIN wanted_groups ON id = group_id WHERE at = $at GROUP BY label`;
/** The same where few of the groups are wanted: they are looked up, and the others not read. */
const fewSumsAt = (source: RollUp): string => `SELECT label, ${totals}
  FROM wanted_groups CROSS JOIN ${tables[source]} ON group_id = id AND at = $at GROUP BY label`;
const shareWanted = `SELECT (SELECT count(*) FROM wanted_groups) * 1.0
  / (SELECT count(*) FROM usage_groups) AS share`;
/** Looking up one row takes as long as reading some five in order. */
const fewShare = 0.2;

const totalTables = { days: 'total_days', hours: 'total_hours' } as const;
/** The same sums as `usageSql`, where there are totals. */
function totalUsageSql(source: RollUp, by: UsageGrouping): string {
  const label = by === 'day' || by === 'hour' ? labels[by] : 'name';
  return `SELECT ${label} AS label, ${totals} FROM ${totalTables[source]}
    WHERE kind = $kind AND at >= $from AND at < $to GROUP BY label`;
}
// As floats, as total() gives them: an integer beyond 2^53 could not be read.
const asFloats = sumColumns.map((name) => `${name} * 1.0 AS ${name}`).join(', ');
const totalsOf = (source: RollUp): string => `SELECT at, name, ${asFloats}
  FROM ${totalTables[source]} WHERE kind = $kind AND at >= $from AND at < $to`;

function sumsOfCalls(query: SeriesQuery): string {
  const unit = stepMs[query.step];
  return `SELECT at / ${unit} * ${unit} AS at, ${labelOf(query)} AS label, ${totals} FROM ${callSums}
    WHERE at >= $from AND at < $to AND ${inGroup} GROUP BY 1, 2`;
}

interface RollUpPart {
  readonly source: RollUp;
  readonly period: Period;
}

function partsOf(plan: UsagePlan): readonly RollUpPart[] {
  return rollUps.flatMap((source) => plan[source].map((period) => ({ source, period })));
}

/** Reads one series; inside a reading transaction. */
class SqliteSeries {
  readonly #sql: Statements;
  readonly #query: SeriesQuery;
  readonly #plan: UsagePlan;
  /** Its single calls are those of the plan. */
  readonly #counts: UsagePlan;
  readonly #filter: Record<string, Value>;
  readonly #series: SeriesSums;

  /** @param retained since when calls and hours are there. */
  constructor(sql: Statements, query: SeriesQuery, retained: RetainedSince) {
    this.#sql = sql;
    this.#query = query;
    this.#plan = planSeries(query, retained);
    this.#counts = planCounts(query, retained);
    this.#filter = groupFilter(query.filter ?? {});
    this.#series = new SeriesSums(query);
  }

  rows(): readonly SeriesRow[] {
    const kind = totalKindOf(this.#query);
    this.#readCalls();
    if (this.#query.by === 'user') return this.#series.rows();
    if (kind === undefined) this.#readGroups();
    else this.#readTotals(kind);
    return this.#series.rows();
  }

  /** Of the ragged ends: few enough to be read for every group. */
  #readCalls(): void {
    const statement = this.#sql.of(sumsOfCalls(this.#query));
    for (const period of this.#plan.calls) {
      for (const row of statement.iterate({ ...this.#filter, ...period })) {
        this.#series.add(number(row, 'at'), text(row, 'label'), readSums(row));
      }
    }
  }

  #readTotals(kind: TotalKind): void {
    for (const { source, period } of partsOf(this.#plan)) {
      for (const row of this.#sql.of(totalsOf(source)).iterate({ kind, ...period })) {
        this.#series.add(number(row, 'at'), text(row, 'name'), readSums(row));
      }
    }
  }

  #readGroups(): void {
    this.#choose();
    const share = this.#sql.of(shareWanted).get()?.['share'];
    const at = typeof share === 'number' && share < fewShare ? fewSumsAt : sumsAt;
    for (const { source, period } of partsOf(this.#plan)) {
      const sums = this.#sql.of(at(source));
      for (const at of this.#times(source, period)) {
        for (const row of sums.iterate({ at })) {
          this.#series.add(at, text(row, 'label'), readSums(row));
        }
      }
    }
    this.#sql.of(forget).run();
  }

  /** Leaves those groups in `wanted_groups` that are shown. */
  #choose(): void {
    this.#sql.of(makeWanted).run();
    this.#sql.of(forget).run();
    this.#sql.of(wantedSql(this.#query)).run(this.#filter);
    const calls = this.#series.calls();
    const count = (label: string, more: number): void => {
      for (const name of namesOfLabel(this.#query.by, label)) {
        calls.set(name, (calls.get(name) ?? 0) + more);
      }
    };
    const wanted = this.#sql.of(wantedLabels).all();
    for (const row of wanted) count(text(row, 'label'), 0);
    if (calls.size <= this.#query.groups) return;
    for (const { source, period } of partsOf(this.#counts)) {
      for (const row of this.#sql.of(callsOfGroups(source)).iterate({ ...period })) {
        count(text(row, 'label'), number(row, 'calls'));
      }
    }
    const found = wanted.map((row) => text(row, 'label'));
    const labels = JSON.stringify(labelsOfBusiest(this.#query, calls, found));
    this.#sql.of(dropOthers).run({ labels });
  }

  *#times(source: RollUp, { from, to }: Period): Generator<number> {
    const next = this.#sql.of(nextTime(source));
    for (let begin = from; ;) {
      const at = next.get({ from: begin, to })?.['at'];
      if (typeof at !== 'number') return;
      yield at;
      begin = at + 1;
    }
  }
}

/** Maximum number of rows that a page scans: a rare filter makes pages short, not slow. */
const maxScanned = 50_000;

const page = `SELECT calls.*, prices.price FROM calls
  LEFT JOIN prices ON prices.id = calls.price_id
  WHERE started_at >= $since AND started_at <= $top AND (started_at < $top OR calls.id < $belowId)
    AND ${isWithin}
    AND ($key IS NULL OR key_id = $key) AND ($team IS NULL OR coalesce(team, '') = $team)
    AND ($model IS NULL OR model = $model)
    AND ($provider IS NULL OR coalesce(provider, '') = $provider)
    AND ($outcome IS NULL OR outcome = $outcome) AND ($endpoint IS NULL OR endpoint = $endpoint)
    AND ($user IS NULL OR user_name = $user) AND ($status IS NULL OR status = $status)
    AND ($mode IS NULL OR mode = $mode)
    AND ($fault IS NULL OR fault = $fault) AND ($error IS NULL OR error = $error)
    AND ($reason IS NULL OR reason = $reason)
    AND ($upstreamModel IS NULL OR upstream_model = $upstreamModel)
    AND ($minCost IS NULL OR cost >= $minCost) AND ($minMs IS NULL OR total_ms >= $minMs)
    AND ($notes IS NULL OR instr(lower(notes), lower($notes)) > 0)
    AND ($tag IS NULL OR CASE $tag WHEN '' THEN tags IS NULL
      ELSE EXISTS (SELECT 1 FROM json_each(tags) WHERE value = $tag) END)
  ORDER BY started_at DESC, calls.id DESC LIMIT $limit`;
const lastScanned = `SELECT started_at FROM calls WHERE started_at <= $top
  ORDER BY started_at DESC LIMIT 1 OFFSET ${maxScanned}`;
// An index by key would cost every call a page of its own to write; the sums know where to look.
const lastDay = `SELECT at FROM ${sources.days} WHERE at <= $to AND ${inGroup}
  ORDER BY at DESC LIMIT 1`;
const lastHour = `SELECT at FROM ${sources.hours} WHERE at >= $from AND at <= $to AND ${inGroup}
  ORDER BY at DESC LIMIT 1`;
// A bare column beside max() is of the row with the maximum.
const failures = `SELECT fault, error, reason, refused_by, status, key_id, team, model, provider, answered,
    count(*) AS calls, max(started_at) AS last_at, id AS last_id, message
  FROM (SELECT started_at, id, fault, error, reason, refused_by, status, key_id, message,
      coalesce(team, '') AS team, coalesce(provider, '') AS provider, ${answered} AS answered,
      coalesce(tags, '[]') AS tags,
      CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model
    FROM calls WHERE outcome = 'failed' AND started_at >= $from AND started_at < $to
    ORDER BY started_at DESC LIMIT ${maxFailures})
  WHERE ($fault IS NULL OR fault = $fault) AND ${inGroup}
  GROUP BY fault, error, reason, refused_by, status, key_id, team, model, provider, answered`;
const manyFailures = `SELECT count(*) AS calls FROM (SELECT 1 FROM calls
  WHERE outcome = 'failed' AND started_at >= $from AND started_at < $to LIMIT ${maxFailures + 1})`;
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
    return this.#sql.read(() => new SqliteSeries(this.#sql, query, this.#retained()).rows());
  }

  sampleLatency(query: LatencyQuery): LatencySamples {
    return sampleSqlite(this.#sql, query);
  }

  failures({ since, until, filter, fault }: FailureQuery): FailureGroups {
    const period = { from: since, to: until };
    const filters = { ...groupFilter(filter ?? {}), fault: fault ?? null };
    return this.#sql.read(() => {
      const rows = this.#sql.of(failures).all({ ...period, ...filters });
      const found = number(this.#sql.of(manyFailures).get(period) ?? {}, 'calls');
      return { groups: rows.map(readFailureGroup), isCut: found > maxFailures };
    });
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
    const plan = planUsage(query, this.#retained());
    const groups = new Map<string, Sums>();
    for (const source of sourcesInOrder) {
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
    const kind = totalKindOf(query);
    if (kind !== undefined && source !== 'calls') {
      return this.#sql.of(totalUsageSql(source, query.by)).all({ kind, ...period });
    }
    return this.#sql.of(usageSql(source, query.by)).all({
      ...groupFilter(query.filter ?? {}),
      from: period.from,
      to: period.to,
    });
  }

  #retained(): RetainedSince {
    return {
      calls: this.#retainedSince(callsRetainedSince),
      hours: this.#retainedSince(hoursRetainedSince),
    };
  }

  #retainedSince(name: string): number {
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
    const { key, team, provider, tag, within, before } = query;
    const latest = (query.until ?? Number.MAX_SAFE_INTEGER) - 1;
    const start =
      before !== undefined && before.startedAt <= latest
        ? before
        : { startedAt: latest, id: aboveIds };
    // Not filtered by model: unknown model names are summed as one.
    const filter = { ...groupFilter(query), model: null };
    if ([key, team, provider, tag, within].every((each) => each === undefined)) {
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

/** Filters on members that only calls have, and no group. */
function ownFilter(query: CallQuery): Record<string, Value> {
  const { outcome, endpoint, user, status, mode, notes } = query;
  const { fault, error, reason, upstreamModel, minNanodollars, minMs } = query;
  return {
    fault: fault ?? null,
    error: error ?? null,
    reason: reason ?? null,
    upstreamModel: upstreamModel ?? null,
    minCost: minNanodollars ?? null,
    minMs: minMs ?? null,
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

/** All calls of that very millisecond were examined: the next page begins below it. */
function scanEnd({ since = 0 }: CallQuery, end: number | undefined): CallCursor | undefined {
  return end === undefined || end <= since ? undefined : { startedAt: end, id: '' };
}

function groupsOf(by: UsageGrouping, row: Columns, day: boolean): readonly string[] {
  const label = row['label'];
  if (typeof label === 'number') return labelsOf(by, noGroup, { at: label, day });
  return namesOfLabel(by, text(row, 'label'));
}

const noGroup = { key: '', team: '', model: '', provider: '', answered: '', tags: [] };

const first = `SELECT n FROM calls WHERE started_at >= $from AND started_at < $to
  ORDER BY started_at LIMIT 1`;
const last = `SELECT n FROM calls WHERE started_at >= $from AND started_at < $to
  ORDER BY started_at DESC LIMIT 1`;
const columns = `started_at, key_id, team, user_name, tags, model, provider, upstream_model, outcome, total_ms,
  charged_output_tokens, CASE stream WHEN 1 THEN first_event_ms END AS first_event_ms`;
const piece = `SELECT ${columns} FROM calls WHERE n >= ? AND n < ?`;
/** Calls that lie on one page of the file: reading one from the disk reads all of them. */
const callsOfPiece = 4;
const fewCalls = `SELECT count(*) AS calls FROM (SELECT 1 FROM calls
  WHERE started_at >= $from AND started_at < $to LIMIT ${maxLooks + 1})`;
const all = `SELECT ${columns} FROM calls WHERE started_at >= $from AND started_at < $to`;

function sampleSqlite(sql: Statements, query: LatencyQuery): LatencySamples {
  const { filter = {} } = query;
  const period = { from: Math.round(query.since), to: Math.round(query.until) };
  return sql.read(() => {
    const isAll = number(sql.of(fewCalls).get(period) ?? {}, 'calls') <= maxLooks;
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
  // A long call is written after shorter ones that began later.
  const [low = 0, high = 0] = [number(begins, 'n'), number(ends, 'n')].toSorted((a, b) => a - b);
  const span = high - low + 1;
  const looks = Math.min(slice.looks, span);
  const pieces = Math.ceil(looks / callsOfPiece);
  const beginOf = (i: number): number => low + Math.floor((i * span) / pieces);
  return Array.from({ length: pieces }, (_, i) => {
    const begin = beginOf(i);
    return sql.of(piece).all(begin, Math.min(begin + callsOfPiece, beginOf(i + 1)));
  })
    .flat()
    .filter((row) => isInSlice(row, slice) && row['outcome'] === 'ok' && isWanted(row, filter))
    .map(sampleOf);
}

function isInSlice(row: Columns, slice: Slice): boolean {
  const startedAt = number(row, 'started_at');
  return startedAt >= slice.from && startedAt < slice.to;
}

function isWanted(row: Columns, filter: UsageFilter): boolean {
  const { key, team, model, provider, tag, within } = filter;
  return (
    (within === undefined || isWithinRow(row, within)) &&
    (key === undefined || row['key_id'] === key) &&
    (team === undefined || (row['team'] ?? '') === team) &&
    (model === undefined || row['model'] === model) &&
    (provider === undefined || (row['provider'] ?? '') === provider) &&
    (tag === undefined || hasTag(row, tag))
  );
}

function isWithinRow(row: Columns, { keys, teams }: CallsWithin): boolean {
  return keys.includes(text(row, 'key_id')) || teams.includes(text(row, 'team'));
}

function hasTag(row: Columns, tag: string): boolean {
  const tags = row['tags'] === null ? [] : readTexts(text(row, 'tags'));
  return tag === '' ? tags.length === 0 : tags.includes(tag);
}
