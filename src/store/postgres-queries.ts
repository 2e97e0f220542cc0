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
import type { LatencyQuery, LatencySamples } from './latency.ts';
import { sampleOfPostgres } from './postgres-latency.ts';
import type { Row, Sql, SqlValue, Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import { addSums, labelsOf, noSums, planUsage, type KeptSince, type Sums } from './roll-up.ts';
import { readCallRow, readSums } from './sqlite-call-rows.ts';
import { number, text } from './sqlite-columns.ts';
import { callsKeptSince, hoursKeptSince } from './sqlite-ledger.ts';
import { seriesPostgres } from './postgres-series.ts';
import { usageStatement, usageValues } from './postgres-usage-sql.ts';
import { compareText } from './text-order.ts';

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
    return this.#read(async (sql) => seriesPostgres(sql, query, await keptSinceOf(sql)));
  }

  sampleLatency(query: LatencyQuery): Promise<LatencySamples> {
    return this.#read((sql) => sampleOfPostgres(sql, query));
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

async function sumsOf(sql: Sql, query: UsageQuery): Promise<ReadonlyMap<string, Sums>> {
  const plan = planUsage(query, await keptSinceOf(sql));
  const groups = new Map<string, Sums>();
  for (const source of ['days', 'hours', 'calls'] as const) {
    for (const period of plan[source]) {
      const { rows } = await sql.run(
        usageStatement(source, query.by),
        usageValues(query.filter, period),
      );
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
