/** The reading half of the ledger in PostgreSQL, on the connections of the admin pages. */
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
  type Spent,
  type SpentPage,
  type UsageFilter,
} from '../calls.ts';
import { number, text, compareText } from '../columns.ts';
import {
  addSums,
  callsRetainedSince,
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
  type Sums,
  unknownModelError,
  planCounts,
  planSeries,
  SeriesSums,
  sourcesInOrder,
  stepMs,
  totalKindOf,
  type Period,
  type UsagePlan,
} from '../roll-up.ts';
import type { Row, Sql, SqlValue } from './pool.ts';
import { type Statement, callStatements } from '../statements.ts';
import type { PostgresServer } from './server.ts';

// Sums over time in PostgreSQL, in two passes as on SQLite: `sqlite/call-reads.ts` says why.

/** As `answeredBy` (roll-up.ts) of a row. */
const answered = `CASE WHEN provider IS NULL OR error = '${unknownModelError}' THEN ''
    ELSE provider || '/' || coalesce(upstream_model, '') END`;

/** With columns as in the roll-ups. */
const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, ${answered} AS answered, coalesce(tags, '[]') AS tags,
    coalesce(user_name, '') AS user_name,
    1 AS calls, (outcome = 'failed')::integer AS failed,
    ${faultKinds.map(({ fault, column }) => `(fault = '${fault}')::integer AS ${column}`).join(', ')},
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    (cost IS NOT NULL)::integer AS priced_calls,
    (cost IS NULL AND coalesce(charged_fresh_input_tokens, 0)
      + coalesce(charged_cache_read_tokens, 0) + coalesce(charged_cache_write_tokens, 0)
      + coalesce(charged_output_tokens, 0) > 0)::integer AS unpriced_calls,
    cost AS nanodollars, cache_saved,
    ${summedClasses.map(({ column }) => `charged_${column} AS ${column}`).join(', ')}
  FROM calls) rows`;

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

// Doubles: exact up to 2^53, and never a number that cannot be read.
const totals = sumColumns
  .map((name) => `coalesce(sum(${name}), 0)::double precision AS ${name}`)
  .join(', ');

/** Of the values of `usageValues`. */
const inGroup = `($3::text IS NULL OR key_id = $3) AND ($4::text IS NULL OR team = $4)
  AND ($5::text IS NULL OR model = $5) AND ($6::text IS NULL OR provider = $6)
  AND ($7::text IS NULL OR CASE $7 WHEN '' THEN tags = '[]' ELSE tags::jsonb ? $7 END)
  AND ($8::text[] IS NULL OR key_id = ANY($8) OR team = ANY($9::text[]))`;

/** Sums by group of a part of a period. */
function usageStatement(source: Source, by: UsageGrouping): Statement {
  return {
    name: `usage_${source}_${by}`,
    text: `SELECT ${labels[by]} AS label, ${totals} FROM ${sources[source]}
      WHERE at >= $1 AND at < $2 AND ${inGroup} GROUP BY label`,
  };
}

/** The same sums as `usageStatement`, where there are totals. */
function totalUsageStatement(source: Exclude<Source, 'calls'>, by: UsageGrouping): Statement {
  const label = by === 'day' || by === 'hour' ? labels[by] : 'name';
  return {
    name: `total_usage_${source}_${by}`,
    text: `SELECT ${label} AS label, ${totals} FROM total_${source}
      WHERE ${inPeriod} AND kind = $3 GROUP BY label`,
  };
}

/** The period, the filter's five names, and the keys and teams that it is within. */
function usageValues(filter: UsageFilter | undefined, period: Period): SqlValue[] {
  const { key, team, model, provider, tag, within } = filter ?? {};
  const filters = [key, team, model, provider, tag].map((value) => value ?? null);
  return [period.from, period.to, ...filters, within?.keys ?? null, within?.teams ?? null];
}

interface Part {
  readonly source: Source;
  readonly period: Period;
}

type Label = NonNullable<SeriesQuery['by']>;

const inPeriod = 'at >= $1 AND at < $2';

function where(source: Source, own: string): string {
  return source === 'calls'
    ? `${inPeriod} AND ${own}`
    : `${inPeriod} AND group_id IN (SELECT id FROM usage_groups WHERE ${own})`;
}

const counted = (table: string): string =>
  `(SELECT group_id, sum(calls) AS calls FROM ${table} WHERE ${inPeriod} GROUP BY 1) counted
    JOIN usage_groups ON usage_groups.id = group_id WHERE ${inGroup}`;

/** Sums of roll-ups are put together by the ids of their groups before these get names: a week has 168 of each. */
const callsOf: { readonly [S in Source]: string } = {
  days: counted('usage_days'),
  hours: counted('usage_hours'),
  calls: `${callSums} WHERE ${inPeriod} AND ${inGroup}`,
};

function busiestStatement(source: Source, by: Label): Statement {
  return {
    name: `busiest_${source}_${by}`,
    text: `SELECT ${labels[by]} AS label, sum(calls)::double precision AS calls
      FROM ${callsOf[source]} GROUP BY 1`,
  };
}

/** @param isChosen only of the names in the last parameter */
function seriesStatement(source: Source, { by, step }: SeriesQuery, isChosen: boolean): Statement {
  const unit = stepMs[step];
  const at = source === 'calls' ? `at / ${unit} * ${unit}` : 'at';
  const label = by === undefined ? "''" : labels[by];
  return {
    name: `series_${source}_${step}_${by ?? 'all'}${isChosen ? '_chosen' : ''}`,
    text: `SELECT ${at} AS step, ${label} AS label, ${totals} FROM ${sources[source]}
      WHERE ${where(source, isChosen ? `${inGroup} AND ${label} = ANY($10::text[])` : inGroup)}
      GROUP BY 1, 2`,
  };
}

const totalsStatement = (source: Exclude<Source, 'calls'>): Statement => ({
  name: `totals_${source}`,
  text: `SELECT at AS step, name AS label,
      ${sumColumns.map((name) => `${name}::double precision AS ${name}`).join(', ')}
    FROM total_${source} WHERE ${inPeriod} AND kind = $3`,
});

function partsOf(plan: UsagePlan): readonly Part[] {
  return sourcesInOrder.flatMap((source) => plan[source].map((period) => ({ source, period })));
}

/** @param retained since when calls and hours are there; in the same snapshot. */
async function seriesPostgres(
  sql: Sql,
  query: SeriesQuery,
  retained: RetainedSince,
): Promise<readonly SeriesRow[]> {
  const kind = totalKindOf(query);
  // Totals have no minutes: those come from the calls, of the busiest names only.
  const isChosen = query.by !== undefined && (kind === undefined || query.step === 'minute');
  const labels = isChosen ? [await busiestLabels(sql, query, retained)] : [];
  const series = new SeriesSums(query);
  for (const { source, period } of partsOf(planSeries(query, retained))) {
    const { rows } =
      kind === undefined || source === 'calls'
        ? await sql.run(seriesStatement(source, query, isChosen), [
            ...usageValues(query.filter, period),
            ...labels,
          ])
        : await sql.run(totalsStatement(source), [period.from, period.to, kind]);
    for (const row of rows) series.add(number(row, 'step'), text(row, 'label'), readSums(row));
  }
  return series.rows();
}

async function busiestLabels(
  sql: Sql,
  query: SeriesQuery,
  retained: RetainedSince,
): Promise<readonly string[]> {
  const { by, filter } = query;
  if (by === undefined) return [];
  const calls = new Map<string, number>();
  const labels = new Set<string>();
  for (const { source, period } of partsOf(planCounts(query, retained))) {
    const { rows } = await sql.run(busiestStatement(source, by), usageValues(filter, period));
    for (const row of rows) {
      const label = text(row, 'label');
      labels.add(label);
      for (const name of namesOfLabel(by, label)) {
        calls.set(name, (calls.get(name) ?? 0) + number(row, 'calls'));
      }
    }
  }
  return labelsOfBusiest(query, calls, labels);
}

/** Maximum number of rows that a page scans: a rare filter makes pages short, not slow. */
const maxScanned = 20_000;

const inPage = `started_at >= $1 AND (started_at, id) < ($2, $3)`;
const wanted = `($5::text IS NULL OR coalesce(team, '') = $5) AND ($6::text IS NULL OR model = $6)
  AND ($7::text IS NULL OR coalesce(provider, '') = $7) AND ($8::text IS NULL OR outcome = $8)
  AND ($9::text IS NULL OR endpoint = $9) AND ($10::text IS NULL OR user_name = $10)
  AND ($11::text IS NULL OR CASE $11 WHEN '' THEN tags IS NULL ELSE tags::jsonb ? $11 END)
  AND ($12::integer IS NULL OR status = $12) AND ($13::text IS NULL OR mode = $13)
  AND ($14::text IS NULL OR position(lower($14) IN lower(notes)) > 0)
  AND ($15::text IS NULL OR fault = $15) AND ($16::text IS NULL OR error = $16)
  AND ($17::text IS NULL OR reason = $17) AND ($18::text IS NULL OR upstream_model = $18)
  AND ($19::bigint IS NULL OR cost >= $19)
  AND ($20::double precision IS NULL OR total_ms >= $20)
  AND ($21::text[] IS NULL OR key_id = ANY($21) OR team = ANY($22::text[]))`;

function pageStatement(name: string, place: string): Statement {
  return {
    name,
    text: `SELECT c.*, prices.price FROM (SELECT * FROM calls WHERE ${place} AND ${inPage} AND ${wanted}
      ORDER BY started_at DESC, id DESC LIMIT $4) c
      LEFT JOIN prices ON prices.id = c.price_id ORDER BY c.started_at DESC, c.id DESC`,
  };
}

const pageOfAll = pageStatement('page_of_all', 'true');
const pageOfKey = pageStatement('page_of_key', 'key_id = $23');
const lastScanned: Statement = {
  name: 'last_scanned',
  text: `SELECT started_at FROM calls WHERE started_at <= $1
    ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${maxScanned}`,
};
const lastScannedOfKey: Statement = {
  name: 'last_scanned_of_key',
  text: `SELECT started_at FROM calls WHERE key_id = $2 AND started_at <= $1
    ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${maxScanned}`,
};

const failures: Statement = {
  name: 'failures',
  text: `SELECT fault, error, reason, refused_by, status, key_id, team, model, provider, answered,
      count(*)::double precision AS calls, max(started_at)::double precision AS last_at,
      (array_agg(id ORDER BY started_at DESC, id))[1] AS last_id,
      (array_agg(message ORDER BY started_at DESC, id))[1] AS message
    FROM (SELECT started_at, id, fault, error, reason, refused_by, status, key_id, message,
        coalesce(team, '') AS team, coalesce(provider, '') AS provider, ${answered} AS answered,
        coalesce(tags, '[]') AS tags,
        CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model
      FROM calls WHERE outcome = 'failed' AND started_at >= $1 AND started_at < $2
      ORDER BY started_at DESC LIMIT ${maxFailures}) newest
    WHERE ($10::text IS NULL OR fault = $10) AND ${inGroup}
    GROUP BY fault, error, reason, refused_by, status, key_id, team, model, provider, answered`,
};
const manyFailures: Statement = {
  name: 'many_failures',
  text: `SELECT count(*)::double precision AS calls FROM (SELECT 1 FROM calls
    WHERE outcome = 'failed' AND started_at >= $1 AND started_at < $2
    LIMIT ${maxFailures + 1}) many`,
};

const attemptsOf: Statement = {
  name: 'attempts_of',
  text: 'SELECT * FROM attempts WHERE call_id = $1 ORDER BY ordinal',
};
const retainedSince: Statement = {
  name: 'kept_since',
  text: 'SELECT name, value FROM settings WHERE name IN ($1, $2)',
};

/** Above every id in the order of bytes. */
const aboveIds = '\u{10FFFF}';

export class PostgresCallReads {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    const groups = await this.#read((sql) => sumsOf(sql, query));
    return [...groups]
      .map(([group, sums]) => ({ group, ...sums }))
      .toSorted((a, b) => compareText(a.group, b.group));
  }

  series(query: SeriesQuery): Promise<readonly SeriesRow[]> {
    return this.#read(async (sql) => seriesPostgres(sql, query, await retainedSinceOf(sql)));
  }

  sampleLatency(query: LatencyQuery): Promise<LatencySamples> {
    return this.#read((sql) => sampleOfPostgres(sql, query));
  }

  failures({ since, until, filter, fault }: FailureQuery): Promise<FailureGroups> {
    const values = [...usageValues(filter, { from: since, to: until }), fault ?? null];
    return this.#read(async (sql) => {
      const { rows } = await sql.run(failures, values);
      const [many] = (await sql.run(manyFailures, [since, until])).rows;
      const found = many === undefined ? 0 : number(many, 'calls');
      return { groups: rows.map(readFailureGroup), isCut: found > maxFailures };
    });
  }

  list(query: CallQuery): Promise<CallPage> {
    return this.#read((sql) => page(sql, query));
  }

  find(id: string): Promise<CallRow | undefined> {
    return this.#read(async (sql) => {
      const [row] = (await sql.run(callStatements.find, [id])).rows;
      if (row === undefined) return undefined;
      return readCallRow(row, (await sql.run(attemptsOf, [id])).rows);
    });
  }

  async spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]> {
    const { rows } =
      counters === undefined
        ? await this.#server.run(spent, [endingAfter])
        : await this.#server.run(spentOf, [endingAfter, counters]);
    return rows.map(readSpent);
  }

  async spentPage(endingAfter: number, { limit, after }: SpentPage): Promise<readonly Spent[]> {
    const { counter, window } = after ?? { counter: '', window: '' };
    const { rows } = await this.#server.run(spentPage, [endingAfter, counter, window, limit]);
    return rows.map(readSpent);
  }

  #read<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#server.use(() => this.#server.admin.snapshot(work));
  }
}

async function retainedSinceOf(sql: Sql): Promise<RetainedSince> {
  const settings = (await sql.run(retainedSince, [callsRetainedSince, hoursRetainedSince])).rows;
  const retained = (name: string): number => {
    const row = settings.find((each) => text(each, 'name') === name);
    return row === undefined ? 0 : Number(text(row, 'value'));
  };
  return { calls: retained(callsRetainedSince), hours: retained(hoursRetainedSince) };
}

async function sumsOf(sql: Sql, query: UsageQuery): Promise<ReadonlyMap<string, Sums>> {
  const plan = planUsage(query, await retainedSinceOf(sql));
  const groups = new Map<string, Sums>();
  const kind = totalKindOf(query);
  for (const source of sourcesInOrder) {
    for (const period of plan[source]) {
      const { rows } =
        kind === undefined || source === 'calls'
          ? await sql.run(usageStatement(source, query.by), usageValues(query.filter, period))
          : await sql.run(totalUsageStatement(source, query.by), [period.from, period.to, kind]);
      for (const row of rows) addRow(groups, row, { by: query.by, day: source === 'days' });
    }
  }
  return groups;
}

function addRow(
  groups: Map<string, Sums>,
  row: Row,
  { by, day }: { readonly by: UsageGrouping; readonly day: boolean },
): void {
  for (const group of groupsOf(by, row, day)) {
    const sums = groups.get(group) ?? noSums();
    groups.set(group, sums);
    addSums(sums, readSums(row));
  }
}

function groupsOf(by: UsageGrouping, row: Row, day: boolean): readonly string[] {
  const label = row['label'];
  if (typeof label === 'number') return labelsOf(by, noGroup, { at: label, day });
  return namesOfLabel(by, text(row, 'label'));
}

const noGroup = { key: '', team: '', model: '', provider: '', answered: '', tags: [] };

async function page(sql: Sql, query: CallQuery): Promise<CallPage> {
  const { key, limit, before } = query;
  const latest = (query.until ?? Number.MAX_SAFE_INTEGER) - 1;
  const start =
    before !== undefined && before.startedAt <= latest
      ? before
      : { startedAt: latest, id: aboveIds };
  const end = await scannedTo(sql, key, start.startedAt);
  const since = Math.max(query.since ?? 0, end ?? 0);
  const values: SqlValue[] = [since, start.startedAt, start.id, limit + 1, ...filterValues(query)];
  const { rows } =
    key === undefined
      ? await sql.run(pageOfAll, values)
      : await sql.run(pageOfKey, [...values, key]);
  const calls = rows.slice(0, limit).map((row) => readCallRow(row, []));
  const next = rows.length > limit ? cursorOf(calls.at(-1)) : scanEnd(query, end);
  return { calls, ...(next === undefined ? {} : { next }) };
}

function filterValues(query: CallQuery): SqlValue[] {
  const { team, model, provider, outcome, endpoint, user, tag, status, mode, notes } = query;
  const { fault, error, reason, upstreamModel, minNanodollars, minMs, within } = query;
  const asked = [team, model, provider, outcome, endpoint, user, tag, status, mode, notes];
  const more = [fault, error, reason, upstreamModel, minNanodollars, minMs];
  return [...asked, ...more, within?.keys, within?.teams].map((value) => value ?? null);
}

/** The end of the scan for a page; undefined = the oldest call. */
async function scannedTo(
  sql: Sql,
  key: string | undefined,
  top: number,
): Promise<number | undefined> {
  const { rows } =
    key === undefined
      ? await sql.run(lastScanned, [top])
      : await sql.run(lastScannedOfKey, [top, key]);
  const [row] = rows;
  return row === undefined ? undefined : number(row, 'started_at');
}

function cursorOf(call: CallRow | undefined): CallCursor | undefined {
  return call === undefined ? undefined : { startedAt: call.startedAt, id: call.id };
}

/** All calls of that very millisecond were examined: the next page begins below it. */
function scanEnd({ since = 0 }: CallQuery, end: number | undefined): CallCursor | undefined {
  return end === undefined || end <= since ? undefined : { startedAt: end, id: '' };
}

const columns = `c.started_at, c.key_id, c.team, c.user_name, c.tags, c.model, c.provider, c.upstream_model, c.total_ms,
  c.charged_output_tokens, CASE c.stream WHEN 1 THEN c.first_event_ms END AS first_event_ms`;

const isWanted = `c.outcome = 'ok' AND ($3::text IS NULL OR c.key_id = $3)
  AND ($4::text IS NULL OR coalesce(c.team, '') = $4) AND ($5::text IS NULL OR c.model = $5)
  AND ($6::text IS NULL OR coalesce(c.provider, '') = $6)
  AND ($7::text IS NULL OR CASE $7 WHEN '' THEN c.tags IS NULL ELSE c.tags::jsonb ? $7 END)
  AND ($8::text[] IS NULL OR c.key_id = ANY($8) OR c.team = ANY($9::text[]))`;

/**
 * Rows have no number here: of each short piece of time a few calls are taken, found by the index. A burst
 * within one piece counts as little as the quiet around it.
 */
const callsOfPiece = 4;
const sample: Statement = {
  name: 'sample_latency',
  text: `SELECT ${columns}
    FROM generate_series($1::bigint, $2::bigint - 1, $10::bigint) AS piece(begins)
    CROSS JOIN LATERAL (SELECT * FROM calls WHERE started_at >= begins
      AND started_at < least(begins + $10::bigint, $2::bigint)
      ORDER BY started_at, id LIMIT ${callsOfPiece}) c
    WHERE ${isWanted}`,
};
const fewCalls: Statement = {
  name: 'few_calls',
  text: `SELECT count(*)::double precision AS calls FROM (SELECT 1 FROM calls
    WHERE started_at >= $1 AND started_at < $2 LIMIT ${maxLooks + 1}) few`,
};
const all: Statement = {
  name: 'all_latencies',
  text: `SELECT ${columns} FROM calls c WHERE started_at >= $1 AND started_at < $2 AND ${isWanted}`,
};

async function sampleOfPostgres(sql: Sql, query: LatencyQuery): Promise<LatencySamples> {
  const period = { from: Math.round(query.since), to: Math.round(query.until) };
  const values = usageValues(query.filter, period);
  const [few] = (await sql.run(fewCalls, [period.from, period.to])).rows;
  if (few !== undefined && number(few, 'calls') <= maxLooks) {
    const { rows } = await sql.run(all, values);
    return { calls: rows.map(sampleOf), isAll: true };
  }
  const looks = slicesOf(query)[0]?.looks ?? 1;
  const slices = slicesOf(query).length;
  const pieces = Math.max(1, Math.floor(looks / callsOfPiece)) * slices;
  const piece = Math.max(1, Math.ceil((period.to - period.from) / pieces));
  const { rows } = await sql.run(sample, [...values, piece]);
  return { calls: rows.map(sampleOf), isAll: false };
}

const spent: Statement = {
  name: 'spent',
  text: `SELECT counter, period, nanodollars FROM spending
    WHERE ends_at IS NULL OR ends_at > $1`,
};
const spentOf: Statement = {
  name: 'spent_of',
  text: `SELECT counter, period, nanodollars FROM spending
    WHERE counter = ANY ($2) AND (ends_at IS NULL OR ends_at > $1)`,
};

const spentPage: Statement = {
  name: 'spent_page',
  text: `SELECT counter, period, nanodollars FROM spending
    WHERE (counter, period) > ($2, $3) AND (ends_at IS NULL OR ends_at > $1)
    ORDER BY counter, period LIMIT $4`,
};

function readSpent(row: Row): Spent {
  return {
    counter: text(row, 'counter'),
    window: text(row, 'period'),
    nanodollars: number(row, 'nanodollars'),
  };
}
