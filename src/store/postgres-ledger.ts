/**
 * The writing half of the ledger in PostgreSQL. A batch of calls is one statement, and so one
 * transaction and one round trip: rows, attempts, roll-ups and spending move together, and only for
 * calls that were not there before (K5, F8).
 */
import type { CallRow, OpenCall, Retention, Spent } from './calls.ts';
import { keptCall, readKeptCall } from './kept-call.ts';
import { rowsText, type Sql, type Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import { groupId, idOf, PostgresTagGroups } from './postgres-tag-groups.ts';
import { dayMs, hourMs, sumsOf } from './roll-up.ts';
import { attemptColumns, callColumns, callValues, type CallValues } from './sqlite-call-rows.ts';
import { number, text, type Value } from './sqlite-columns.ts';
import { callsKeptSince, hoursKeptSince } from './sqlite-ledger.ts';
import { sumColumns } from './sqlite-sums.ts';

const integers = new Set(['stream', 'status', 'attempts', 'overrun', 'place', 'maybe_billed']);
const bigints = new Set([
  'started_at',
  'at',
  'ends_at',
  'seen_at',
  'reserved',
  'nanodollars',
  ...sumColumns,
]);
const doubles = new Set(['first_event_ms', 'total_ms', 'ms']);
const uuids = new Set(['price_id', 'group_id']);

function typeOf(column: string): string {
  if (integers.has(column)) return 'integer';
  if (bigints.has(column) || /_tokens$|^cost/.test(column)) return 'bigint';
  if (doubles.has(column)) return 'double precision';
  return uuids.has(column) ? 'uuid' : 'text';
}

/** Rows of a parameter (`rowsText`) as columns. */
function rowsOf(parameter: number, columns: readonly string[]): string {
  const values = columns.map((column, i) => `(r->>${i})::${typeOf(column)} AS ${column}`);
  return `(SELECT ${values.join(', ')} FROM jsonb_array_elements($${parameter}::jsonb) AS r)`;
}

const attemptInput = ['call_id', 'place', ...attemptColumns];
const sumInput = ['call_id', 'at', 'group_id', ...sumColumns];
const groupInput = ['key_id', 'team', 'model', 'provider', 'tags'];
const spendingInput = ['call_id', 'counter', 'period', 'ends_at', 'nanodollars'];

function addSums(table: 'usage_hours' | 'usage_days', unit: number): string {
  const added = sumColumns.map((name) => `${name} = ${table}.${name} + excluded.${name}`);
  // Sorted: instances that add to the same sums wait for each other in the same order.
  return `INSERT INTO ${table} (at, group_id, ${sumColumns.join(', ')})
    SELECT at / ${unit} * ${unit}, group_id, ${sumColumns.map((name) => `sum(${name})`).join(', ')}
    FROM ${rowsOf(3, sumInput)} s JOIN added ON added.id = s.call_id GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (at, group_id) DO UPDATE SET ${added.join(', ')}`;
}

/** 1 calls, 2 attempts, 3 sums, 4 groups, 5 prices, 6 spending, 7 ids. */
const record: Statement = {
  name: 'record_calls',
  text: `WITH added AS (INSERT INTO calls (${callColumns.join(', ')})
    SELECT * FROM ${rowsOf(1, callColumns)} c ON CONFLICT (id) DO NOTHING RETURNING id),
  closed AS (DELETE FROM open_calls WHERE id = ANY ($7::text[])),
  tried AS (INSERT INTO attempts (${attemptInput.join(', ')})
    SELECT a.* FROM ${rowsOf(2, attemptInput)} a JOIN added ON added.id = a.call_id),
  priced AS (INSERT INTO prices (id, price)
    SELECT (r->>0)::uuid, r->>1 FROM jsonb_array_elements($5::jsonb) AS r ORDER BY 1
    ON CONFLICT (id) DO NOTHING),
  grouped AS (INSERT INTO usage_groups (id, ${groupInput.join(', ')})
    SELECT group_id, ${groupInput.join(', ')} FROM ${rowsOf(4, ['group_id', ...groupInput])} g
    ORDER BY 1 ON CONFLICT (id) DO NOTHING),
  hours AS (${addSums('usage_hours', hourMs)}),
  days AS (${addSums('usage_days', dayMs)}),
  spent AS (INSERT INTO spending (counter, period, ends_at, nanodollars)
    SELECT counter, period, max(ends_at), sum(nanodollars)
    FROM ${rowsOf(6, spendingInput)} s JOIN added ON added.id = s.call_id GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (counter, period)
    DO UPDATE SET nanodollars = spending.nanodollars + excluded.nanodollars)
  SELECT id FROM added`,
};

// A checkpoint that comes behind the end of its call must not open it again.
const open: Statement = {
  name: 'open_calls',
  text: `INSERT INTO open_calls (id, seen_at, call)
    SELECT id, seen_at, call FROM ${rowsOf(1, ['id', 'seen_at', 'call'])} o
    WHERE NOT EXISTS (SELECT 1 FROM calls WHERE calls.id = o.id) ORDER BY id
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, call = excluded.call RETURNING id`,
};

/** Whoever locks an orphan first settles it; the others pass on (Q2). */
const findOrphans: Statement = {
  name: 'find_orphans',
  text: `SELECT call FROM open_calls WHERE seen_at < $1 ORDER BY id LIMIT $2
    FOR UPDATE SKIP LOCKED`,
};
const orphansAtOnce = 500;

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

const raiseSetting: Statement = {
  name: 'raise_setting',
  text: `INSERT INTO settings (name, value) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE excluded.value::bigint > settings.value::bigint`,
};
const pruneCalls: Statement = {
  name: 'prune_calls',
  text: `WITH gone AS (DELETE FROM calls WHERE id IN
      (SELECT id FROM calls WHERE started_at < $1 ORDER BY started_at, id LIMIT $2)
      RETURNING id),
    tries AS (DELETE FROM attempts WHERE call_id IN (SELECT id FROM gone))
    SELECT id FROM gone`,
};
const pruneHours: Statement = {
  name: 'prune_hours',
  text: `DELETE FROM usage_hours WHERE (at, group_id) IN
    (SELECT at, group_id FROM usage_hours WHERE at < $1 LIMIT $2)`,
};
const pruneSpending: Statement = {
  name: 'prune_spending',
  text: `DELETE FROM spending WHERE (counter, period) IN
    (SELECT counter, period FROM spending WHERE ends_at <= $1 LIMIT $2)`,
};

const priceAt = callColumns.indexOf('price_id');

export class PostgresLedger {
  readonly #server: PostgresServer;
  /** Prices that the book is known to have. */
  #prices = new Set<string>();
  readonly #groups: PostgresTagGroups;

  constructor(server: PostgresServer) {
    this.#server = server;
    this.#groups = new PostgresTagGroups(server);
  }

  async record(rows: readonly CallRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#server.use(() => this.#recordIn(this.#server.data, rows));
  }

  /** @returns the ids of calls that have their final row. */
  async open(calls: readonly OpenCall[]): Promise<readonly string[]> {
    if (calls.length === 0) return [];
    const rows = calls.map((call) => [call.row.id, Math.round(call.seenAt), keptCall(call.row)]);
    const noted = await this.#server.use(() => this.#server.data.run(open, [rowsText(rows)]));
    if (noted.count === calls.length) return [];
    const ids = new Set(noted.rows.map((row) => text(row, 'id')));
    return calls.map(({ row }) => row.id).filter((id) => !ids.has(id));
  }

  async settleOrphans(seenBefore: number): Promise<readonly CallRow[]> {
    // By the server's clock: those of the instances differ (F90).
    const limit = Math.min(seenBefore + this.#server.aheadMs, Number.MAX_SAFE_INTEGER);
    const settled: CallRow[] = [];
    for (;;) {
      const rows = await this.#server.use(() =>
        this.#server.data.transaction(async (sql) => {
          const found = await sql.run(findOrphans, [limit, orphansAtOnce]);
          const orphans = found.rows.map((row) => readKeptCall(text(row, 'call')));
          if (orphans.length > 0) await this.#recordIn(sql, orphans);
          return orphans;
        }),
      );
      settled.push(...rows);
      if (rows.length < orphansAtOnce) return settled;
    }
  }

  async spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]> {
    const { data } = this.#server;
    const { rows } = await this.#server.use(() =>
      counters === undefined
        ? data.run(spent, [endingAfter])
        : data.run(spentOf, [endingAfter, counters]),
    );
    return rows.map((row) => ({
      counter: text(row, 'counter'),
      window: text(row, 'period'),
      nanodollars: number(row, 'nanodollars'),
    }));
  }

  /** What may be gone is said before it goes: no query counts on half of an hour. */
  async prune({ callsBefore, hoursBefore }: Retention, most: number): Promise<number> {
    const calls = Math.floor(callsBefore / hourMs) * hourMs;
    const hours = Math.floor(hoursBefore / dayMs) * dayMs;
    const { admin } = this.#server;
    return this.#server.use(() =>
      admin.transaction(async (sql) => {
        await sql.run(raiseSetting, [callsKeptSince, String(calls)]);
        await sql.run(raiseSetting, [hoursKeptSince, String(hours)]);
        let { count } = await sql.run(pruneCalls, [calls, most]);
        for (const statement of [pruneHours, pruneSpending]) {
          if (count < most) count += (await sql.run(statement, [hours, most - count])).count;
        }
        return count;
      }),
    );
  }

  async #recordIn(sql: Sql, rows: readonly CallRow[]): Promise<void> {
    await this.#groups.learn(rows);
    const batch = new Batch(rows, { prices: this.#prices, groups: this.#groups });
    await sql.run(record, batch.parameters());
    for (const id of batch.newPrices) this.#prices.add(id);
    if (this.#prices.size > mostPrices) this.#prices = new Set();
  }
}

const mostPrices = 1000;

/** What need not be asked for again. */
interface Known {
  readonly prices: ReadonlySet<string>;
  readonly groups: Pick<PostgresTagGroups, 'of'>;
}

/** The parameters of `record`, made in one pass. */
class Batch {
  readonly newPrices = new Set<string>();
  readonly #known: Known;
  readonly #ids: string[] = [];
  readonly #calls: CallValues[] = [];
  readonly #attempts: Value[][] = [];
  readonly #sums: Value[][] = [];
  readonly #groups = new Map<string, Value[]>();
  readonly #prices: Value[][] = [];
  readonly #spending: Value[][] = [];

  constructor(rows: readonly CallRow[], known: Known) {
    this.#known = known;
    // One statement cannot tell two rows with the same id apart.
    const byId = new Map<string, CallRow>();
    for (const row of rows) if (!byId.has(row.id)) byId.set(row.id, row);
    for (const row of byId.values()) this.#add(row);
  }

  parameters(): (string | readonly string[])[] {
    return [
      rowsText(this.#calls),
      rowsText(this.#attempts),
      rowsText(this.#sums),
      rowsText([...this.#groups].map(([id, group]) => [id, ...group])),
      rowsText(this.#prices),
      rowsText(this.#spending),
      this.#ids,
    ];
  }

  #add(row: CallRow): void {
    const flat = callValues(row);
    const values = flat.slice(0, callColumns.length);
    const price = values[priceAt];
    if (typeof price === 'string') values[priceAt] = this.#priceId(price);
    this.#ids.push(row.id);
    this.#calls.push(values);
    for (let from = callColumns.length; from < flat.length; from += attemptColumns.length) {
      const place = (from - callColumns.length) / attemptColumns.length;
      this.#attempts.push([row.id, place, ...flat.slice(from, from + attemptColumns.length)]);
    }
    this.#addSums(row);
    for (const { counter, window, endsAt } of row.cost === undefined ? [] : row.budgets) {
      this.#spending.push([row.id, counter, window, endsAt ?? null, row.cost?.total ?? 0]);
    }
  }

  #addSums(row: CallRow): void {
    const group = this.#known.groups.of(row);
    const { key, team, model, provider, tags } = group;
    const id = groupId(group);
    this.#groups.set(id, [key, team, model, provider, JSON.stringify(tags)]);
    const s = sumsOf(row);
    this.#sums.push([
      row.id,
      Math.round(row.startedAt),
      id,
      s.calls,
      s.failed,
      s.inputTokens,
      s.cacheReadTokens,
      s.cacheWriteTokens,
      s.outputTokens,
      s.pricedCalls,
      s.unpricedCalls,
      s.nanodollars,
    ]);
  }

  #priceId(price: string): string {
    const id = idOf(price);
    if (!this.#known.prices.has(id) && !this.newPrices.has(id)) {
      this.newPrices.add(id);
      this.#prices.push([id, price]);
    }
    return id;
  }
}
