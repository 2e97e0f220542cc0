/** The reading half of the ledger in PostgreSQL, on the connections of the admin pages (L5). */
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
} from './calls.ts';
import { readTexts } from './kept-json.ts';
import { slicesOf, type LatencyQuery, type LatencySample } from './latency.ts';
import type { Row, Sql, SqlValue, Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import {
  addSums,
  dayMs,
  labelsOf,
  noSums,
  planUsage,
  unknownModelError,
  type KeptSince,
  type Period,
  type Sums,
} from './roll-up.ts';
import { readCallRow, readSums } from './sqlite-call-rows.ts';
import { number, text } from './sqlite-columns.ts';
import { callsKeptSince, hoursKeptSince } from './sqlite-ledger.ts';
import { sumColumns } from './sqlite-sums.ts';
import { groupingOf, SeriesSums, stepMs } from './series.ts';
import { sampleOf } from './sqlite-latency.ts';
import { compareText } from './text-order.ts';

/** With columns as in the roll-ups. */
const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, coalesce(tags, '[]') AS tags,
    1 AS calls, (outcome = 'failed')::integer AS failed,
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    charged_cache_read_tokens AS cache_read_tokens,
    charged_cache_write_tokens AS cache_write_tokens,
    charged_output_tokens AS output_tokens,
    (cost IS NOT NULL)::integer AS priced_calls,
    (cost IS NULL AND coalesce(charged_fresh_input_tokens, 0)
      + coalesce(charged_cache_read_tokens, 0) + coalesce(charged_cache_write_tokens, 0)
      + coalesce(charged_output_tokens, 0) > 0)::integer AS unpriced_calls,
    cost AS nanodollars
  FROM calls) rows`;

const sources = {
  days: 'usage_days JOIN usage_groups ON usage_groups.id = group_id',
  hours: 'usage_hours JOIN usage_groups ON usage_groups.id = group_id',
  calls: callSums,
} as const;

type Source = keyof typeof sources;

/** What a group is made of; times and sets of tags become groups in `labelsOf`. */
const labels: { readonly [G in UsageGrouping]: string } = {
  key: 'key_id',
  team: 'team',
  model: 'model',
  provider: 'provider',
  tag: 'tags',
  day: 'at / 86400000 * 86400000',
  hour: 'at / 3600000 * 3600000',
};

// Doubles: exact up to 2^53, and never a number that cannot be read.
const totals = sumColumns
  .map((name) => `coalesce(sum(${name}), 0)::double precision AS ${name}`)
  .join(', ');

const inGroup = `($3::text IS NULL OR key_id = $3) AND ($4::text IS NULL OR team = $4)
  AND ($5::text IS NULL OR model = $5) AND ($6::text IS NULL OR provider = $6)
  AND ($7::text IS NULL OR CASE $7 WHEN '' THEN tags = '[]' ELSE tags::jsonb ? $7 END)`;

function usageStatement(source: Source, by: UsageGrouping): Statement {
  return {
    name: `usage_${source}_${by}`,
    text: `SELECT ${labels[by]} AS label, ${totals} FROM ${sources[source]}
      WHERE at >= $1 AND at < $2 AND ${inGroup} GROUP BY label`,
  };
}

function seriesStatement(source: Source, { by, step }: SeriesQuery): Statement {
  const unit = source === 'days' ? dayMs : stepMs[step];
  return {
    name: `series_${source}_${step}_${by ?? 'all'}`,
    text: `SELECT at / ${unit} * ${unit} AS step, ${by === undefined ? "''" : labels[by]} AS label, ${totals}
      FROM ${sources[source]} WHERE at >= $1 AND at < $2 AND ${inGroup} GROUP BY 1, 2`,
  };
}

/**
 * Rows have no number here: of each short piece of time a few calls are taken, found by the index. A burst
 * within one piece counts as little as the quiet around it.
 */
const callsOfPiece = 4;
const sample: Statement = {
  name: 'sample_latency',
  text: `SELECT c.started_at, c.key_id, c.team, c.model, c.provider, c.first_event_ms, c.total_ms
    FROM generate_series($1::bigint, $2::bigint - 1, $8::bigint) AS piece(begins)
    CROSS JOIN LATERAL (SELECT * FROM calls WHERE started_at >= begins
      AND started_at < least(begins + $8::bigint, $2::bigint)
      ORDER BY started_at, id LIMIT ${callsOfPiece}) c
    WHERE c.outcome = 'ok' AND ($3::text IS NULL OR c.key_id = $3)
      AND ($4::text IS NULL OR coalesce(c.team, '') = $4) AND ($5::text IS NULL OR c.model = $5)
      AND ($6::text IS NULL OR coalesce(c.provider, '') = $6)
      AND ($7::text IS NULL OR CASE $7 WHEN '' THEN c.tags IS NULL ELSE c.tags::jsonb ? $7 END)`,
};

/** So many rows are looked at for a page at most: a rare filter makes pages short, not slow (L5). */
const mostScanned = 20_000;

const inPage = `started_at >= $1 AND (started_at, id) < ($2, $3)`;
const wanted = `($5::text IS NULL OR coalesce(team, '') = $5) AND ($6::text IS NULL OR model = $6)
  AND ($7::text IS NULL OR coalesce(provider, '') = $7) AND ($8::text IS NULL OR outcome = $8)
  AND ($9::text IS NULL OR endpoint = $9) AND ($10::text IS NULL OR user_name = $10)
  AND ($11::text IS NULL OR CASE $11 WHEN '' THEN tags IS NULL ELSE tags::jsonb ? $11 END)
  AND ($12::integer IS NULL OR status = $12) AND ($13::text IS NULL OR mode = $13)
  AND ($14::text IS NULL OR position(lower($14) IN lower(notes)) > 0)`;

function pageStatement(name: string, place: string): Statement {
  return {
    name,
    text: `SELECT c.*, prices.price FROM (SELECT * FROM calls WHERE ${place} AND ${inPage} AND ${wanted}
      ORDER BY started_at DESC, id DESC LIMIT $4) c
      LEFT JOIN prices ON prices.id = c.price_id ORDER BY c.started_at DESC, c.id DESC`,
  };
}

const pageOfAll = pageStatement('page_of_all', 'true');
const pageOfKey = pageStatement('page_of_key', 'key_id = $15');
const lastScanned: Statement = {
  name: 'last_scanned',
  text: `SELECT started_at FROM calls WHERE started_at <= $1
    ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${mostScanned}`,
};
const lastScannedOfKey: Statement = {
  name: 'last_scanned_of_key',
  text: `SELECT started_at FROM calls WHERE key_id = $2 AND started_at <= $1
    ORDER BY started_at DESC, id DESC LIMIT 1 OFFSET ${mostScanned}`,
};

const findCall: Statement = {
  name: 'find_call',
  text: `SELECT calls.*, prices.price FROM calls LEFT JOIN prices ON prices.id = calls.price_id
    WHERE calls.id = $1`,
};
const attemptsOf: Statement = {
  name: 'attempts_of',
  text: 'SELECT * FROM attempts WHERE call_id = $1 ORDER BY place',
};
const keptSince: Statement = {
  name: 'kept_since',
  text: 'SELECT name, value FROM settings WHERE name IN ($1, $2)',
};

/** Above every id in the order of bytes. */
const aboveIds = '\u{10FFFF}';

export class PostgresQueries {
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
    return this.#read((sql) => seriesOf(sql, query));
  }

  sampleLatency(query: LatencyQuery): Promise<readonly LatencySample[]> {
    const [slice] = slicesOf(query);
    if (slice === undefined) return Promise.resolve([]);
    const pieces = Math.max(1, Math.floor(slice.looks / callsOfPiece));
    const piece = Math.max(1, Math.ceil((slice.to - slice.from) / pieces));
    const period = { from: Math.round(query.since), to: Math.round(query.until) };
    const wish = { by: 'key', since: 0, filter: query.filter ?? {} } as const;
    return this.#read(async (sql) => {
      const { rows } = await sql.run(sample, [...usageValues(wish, period), piece]);
      return rows.map(sampleOf);
    });
  }

  list(query: CallQuery): Promise<CallPage> {
    return this.#read((sql) => page(sql, query));
  }

  find(id: string): Promise<CallRow | undefined> {
    return this.#read(async (sql) => {
      const [row] = (await sql.run(findCall, [id])).rows;
      if (row === undefined) return undefined;
      return readCallRow(row, (await sql.run(attemptsOf, [id])).rows);
    });
  }

  #read<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#server.use(() => this.#server.admin.snapshot(work));
  }
}

async function keptSinceOf(sql: Sql): Promise<KeptSince> {
  const settings = (await sql.run(keptSince, [callsKeptSince, hoursKeptSince])).rows;
  const kept = (name: string): number => {
    const row = settings.find((each) => text(each, 'name') === name);
    return row === undefined ? 0 : Number(text(row, 'value'));
  };
  return { calls: kept(callsKeptSince), hours: kept(hoursKeptSince) };
}

async function seriesOf(sql: Sql, query: SeriesQuery): Promise<readonly SeriesRow[]> {
  const { since, until, filter = {} } = query;
  const plan =
    query.step === 'minute'
      ? { days: [], hours: [], calls: [{ from: since, to: until }] }
      : planUsage({ by: groupingOf(query), since, until }, await keptSinceOf(sql));
  const series = new SeriesSums(query);
  for (const source of ['days', 'hours', 'calls'] as const) {
    for (const period of plan[source]) {
      const values = usageValues({ by: 'key', since, filter }, period);
      const { rows } = await sql.run(seriesStatement(source, query), values);
      for (const row of rows) series.add(number(row, 'step'), text(row, 'label'), readSums(row));
    }
  }
  return series.rows();
}

async function sumsOf(sql: Sql, query: UsageQuery): Promise<ReadonlyMap<string, Sums>> {
  const plan = planUsage(query, await keptSinceOf(sql));
  const groups = new Map<string, Sums>();
  for (const source of ['days', 'hours', 'calls'] as const) {
    for (const period of plan[source]) {
      const { rows } = await sql.run(usageStatement(source, query.by), usageValues(query, period));
      for (const row of rows) addRow(groups, row, { by: query.by, day: source === 'days' });
    }
  }
  return groups;
}

function usageValues({ filter = {} }: UsageQuery, period: Period): SqlValue[] {
  const { key, team, model, provider, tag } = filter;
  const wish = [key, team, model, provider, tag].map((value) => value ?? null);
  return [period.from, period.to, ...wish];
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
  const value = text(row, 'label');
  if (by !== 'tag') return [value];
  const tags = [...new Set(readTexts(value))];
  return tags.length === 0 ? [''] : tags;
}

const noGroup = { key: '', team: '', model: '', provider: '', tags: [] };

async function page(sql: Sql, query: CallQuery): Promise<CallPage> {
  const { key, limit, before } = query;
  const latest = (query.until ?? Number.MAX_SAFE_INTEGER) - 1;
  const start =
    before !== undefined && before.startedAt <= latest
      ? before
      : { startedAt: latest, id: aboveIds };
  const end = await scannedTo(sql, key, start.startedAt);
  const since = Math.max(query.since ?? 0, end ?? 0);
  const values: SqlValue[] = [since, start.startedAt, start.id, limit + 1, ...wishes(query)];
  const { rows } =
    key === undefined
      ? await sql.run(pageOfAll, values)
      : await sql.run(pageOfKey, [...values, key]);
  const calls = rows.slice(0, limit).map((row) => readCallRow(row, []));
  const next = rows.length > limit ? cursorOf(calls.at(-1)) : scanEnd(query, end);
  return { calls, ...(next === undefined ? {} : { next }) };
}

function wishes(query: CallQuery): SqlValue[] {
  const { team, model, provider, outcome, endpoint, user, tag, status, mode, notes } = query;
  const asked = [team, model, provider, outcome, endpoint, user, tag, status, mode, notes];
  return asked.map((value) => value ?? null);
}

/** Where the look for a page ends; undefined = at the oldest call. */
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

/** All calls of that very millisecond were looked at: the next page begins below it. */
function scanEnd({ since = 0 }: CallQuery, end: number | undefined): CallCursor | undefined {
  return end === undefined || end <= since ? undefined : { startedAt: end, id: '' };
}
