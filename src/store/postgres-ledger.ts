/**
 * The writing half of the ledger in PostgreSQL. A batch of calls is one statement, and so one
 * transaction and one round trip: rows, attempts, roll-ups and spending move together, and only for
 * calls that were not there before (K5, F8).
 */
import {
  pieces,
  type CallRow,
  type OpenCall,
  type Retention,
  type Spent,
  type SpentPage,
} from './calls.ts';
import { keptCall, readKeptCall } from './kept-call.ts';
import { isEstimate } from './lost-calls.ts';
import { rowsText, type Sql, type Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import { readSpending, readSpendingPage } from './postgres-spending.ts';
import { groupId, idOf, PostgresTagGroups } from './postgres-tag-groups.ts';
import { dayMs, hourMs, sumsOf } from './roll-up.ts';
import { isOfRow, type RefusedOrphan } from './refused-rows.ts';
import {
  attemptColumns,
  callColumns,
  callValues,
  readCallRow,
  type CallValues,
} from './sqlite-call-rows.ts';
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
  if (bigints.has(column) || /_tokens$|web_searches$|images$|^cost/.test(column)) return 'bigint';
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

function addSums(
  table: 'usage_hours' | 'usage_days',
  { unit, sums }: { readonly unit: number; readonly sums: number },
): string {
  const added = sumColumns.map((name) => `${name} = ${table}.${name} + excluded.${name}`);
  // Sorted: instances that add to the same sums wait for each other in the same order.
  return `INSERT INTO ${table} (at, group_id, ${sumColumns.join(', ')})
    SELECT at / ${unit} * ${unit}, group_id, ${sumColumns.map((name) => `sum(${name})`).join(', ')}
    FROM ${rowsOf(sums, sumInput)} s JOIN added ON added.id = s.call_id GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (at, group_id) DO UPDATE SET ${added.join(', ')}`;
}

const addSpending = (
  spending: number,
): string => `INSERT INTO spending (counter, period, ends_at, nanodollars)
    SELECT counter, period, max(ends_at), sum(nanodollars)
    FROM ${rowsOf(spending, spendingInput)} s JOIN added ON added.id = s.call_id GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (counter, period)
    DO UPDATE SET nanodollars = spending.nanodollars + excluded.nanodollars`;

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
  hours AS (${addSums('usage_hours', { unit: hourMs, sums: 3 })}),
  days AS (${addSums('usage_days', { unit: dayMs, sums: 3 })}),
  spent AS (${addSpending(6)})
  SELECT id FROM added`,
};

/** Rows of calls that others recorded for a gateway that seemed dead (`isEstimate`). */
const findEstimates: Statement = {
  name: 'find_estimates',
  text: `SELECT calls.*, prices.price FROM calls LEFT JOIN prices ON prices.id = calls.price_id
    WHERE calls.id = ANY ($1::text[]) AND error = 'interrupted' AND usage_source = 'estimated'
    ORDER BY calls.id FOR UPDATE OF calls`,
};

/** The opposite of `record`, for sums below zero: 1 ids, 2 sums, 3 spending. */
const unrecord: Statement = {
  name: 'unrecord_calls',
  text: `WITH added AS (DELETE FROM calls WHERE id = ANY ($1::text[]) RETURNING id),
  tried AS (DELETE FROM attempts WHERE call_id = ANY ($1::text[])),
  hours AS (${addSums('usage_hours', { unit: hourMs, sums: 2 })}),
  days AS (${addSums('usage_days', { unit: dayMs, sums: 2 })}),
  spent AS (${addSpending(3)})
  SELECT id FROM added`,
};
/** A group that no call is in any more: nobody has heard of it. 1 sums. */
const emptyHours: Statement = {
  name: 'empty_sums',
  text: `WITH old AS (SELECT DISTINCT group_id FROM ${rowsOf(1, sumInput)} s),
    hours AS (DELETE FROM usage_hours USING old WHERE usage_hours.group_id = old.group_id AND calls = 0)
    DELETE FROM usage_days USING old WHERE usage_days.group_id = old.group_id AND calls = 0`,
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
  text: `SELECT id, call FROM open_calls WHERE seen_at < $1 ORDER BY id LIMIT $2
    FOR UPDATE SKIP LOCKED`,
};
const orphansAtOnce = 500;
const setAside: Statement = {
  name: 'set_orphan_aside',
  text: 'DELETE FROM open_calls WHERE id = $1',
};

const runningOf: Statement = {
  name: 'running_of',
  text: 'SELECT id FROM open_calls WHERE id = ANY ($1::text[])',
};
const costsOf: Statement = {
  name: 'costs_of',
  text: 'SELECT id, coalesce(cost, 0) AS cost FROM calls WHERE id = ANY ($1::text[])',
};
/** What calls held under further names (0004-lost-calls.ts); their own holds went with their rows. */
const forgetHolds: Statement = { name: 'forget_holds', text: 'SELECT counter_forget($1)' };

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
    const added = await this.#server.use(() => this.#recordIn(this.#server.data, rows));
    const own = rows.filter((row) => !added.has(row.id) && !isEstimate(row));
    if (own.length > 0) await this.#replaceEstimates(own);
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

  /**
   * An orphan that cannot be recorded is handed to `onRefused` and forgotten here: it must not hold up the
   * others. What it holds of budgets is booked like that of a call of which nothing is known.
   */
  async settleOrphans(
    seenBefore: number,
    onRefused: (orphan: RefusedOrphan) => Promise<void>,
  ): Promise<readonly CallRow[]> {
    // By the server's clock: those of the instances differ (F90).
    const limit = Math.min(seenBefore + this.#server.aheadMs, Number.MAX_SAFE_INTEGER);
    const settled: CallRow[] = [];
    for (let atOnce = orphansAtOnce; ;) {
      try {
        const rows = await this.#settleSome(limit, atOnce);
        settled.push(...rows);
        if (rows.length < atOnce) return settled;
      } catch (error) {
        if (!isOfRow(error)) throw error;
        // One of them: it is found by taking each alone.
        if (atOnce === 1) await this.#setAside(limit, { onRefused, reason: String(error) });
        atOnce = 1;
      }
    }
  }

  /**
   * Records calls of which nothing else is known, unless they run or have a row.
   * @returns what each of them that does not run has cost by its row, by id
   */
  async recordLost(rows: readonly CallRow[]): Promise<ReadonlyMap<string, number>> {
    const wanted = rows.map(({ id }) => id);
    return this.#server.use(() =>
      this.#server.data.transaction(async (sql) => {
        const running = (await sql.run(runningOf, [wanted])).rows.map((row) => text(row, 'id'));
        const lost = rows.filter(({ id }) => !running.includes(id));
        const ids = lost.map(({ id }) => id);
        await this.#recordIn(
          sql,
          lost.filter(({ budgets }) => budgets.length > 0),
        );
        const booked = (await sql.run(costsOf, [ids])).rows;
        await sql.run(forgetHolds, [booked.map((row) => text(row, 'id'))]);
        const costs = new Map(booked.map((row) => [text(row, 'id'), number(row, 'cost')]));
        return new Map(ids.map((id) => [id, costs.get(id) ?? 0]));
      }),
    );
  }

  #settleSome(limit: number, atOnce: number): Promise<readonly CallRow[]> {
    return this.#server.use(() =>
      this.#server.data.transaction(async (sql) => {
        const found = await sql.run(findOrphans, [limit, atOnce]);
        const orphans = found.rows.map((row) => readKeptCall(text(row, 'call')));
        if (orphans.length === 0) return orphans;
        await this.#recordIn(sql, orphans);
        await sql.run(forgetHolds, [orphans.map(({ id }) => id)]);
        return orphans;
      }),
    );
  }

  /** The first orphan, as `#settleSome` finds it. */
  #setAside(
    limit: number,
    { onRefused, reason }: { onRefused(orphan: RefusedOrphan): Promise<void>; reason: string },
  ): Promise<void> {
    return this.#server.use(() =>
      this.#server.data.transaction(async (sql) => {
        const [row] = (await sql.run(findOrphans, [limit, 1])).rows;
        if (row === undefined) return;
        const id = text(row, 'id');
        await onRefused({ id, call: text(row, 'call'), reason });
        await sql.run(setAside, [id]);
      }),
    );
  }

  spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]> {
    return readSpending(this.#server, endingAfter, counters);
  }

  spentPage(endingAfter: number, page: SpentPage): Promise<readonly Spent[]> {
    return readSpendingPage(this.#server, endingAfter, page);
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

  /** @returns the ids of those that were not there. */
  async #recordIn(sql: Sql, rows: readonly CallRow[]): Promise<ReadonlySet<string>> {
    if (rows.length === 0) return new Set();
    await this.#groups.learn(rows);
    const batch = new Batch(rows, { prices: this.#prices, groups: this.#groups });
    const added = await sql.run(record, batch.parameters());
    for (const id of batch.newPrices) this.#prices.add(id);
    if (this.#prices.size > mostPrices) this.#prices = new Set();
    return new Set(added.rows.map((row) => text(row, 'id')));
  }

  /** Rows of calls that others took for lost: the estimate goes, with all that was added up for it (Q3). */
  async #replaceEstimates(rows: readonly CallRow[]): Promise<void> {
    await this.#server.use(() =>
      this.#server.data.transaction(async (sql) => {
        const found = await sql.run(findEstimates, [rows.map(({ id }) => id)]);
        if (found.count === 0) return;
        const old = found.rows.map((row) => readCallRow(row, []));
        await this.#groups.learn(old);
        const batch = new Batch(old, { prices: this.#prices, groups: this.#groups, sign: -1 });
        await sql.run(unrecord, batch.takenBack());
        const ids = new Set(old.map(({ id }) => id));
        await this.#recordIn(
          sql,
          rows.filter(({ id }) => ids.has(id)),
        );
        await sql.run(emptyHours, [batch.takenBack()[1] ?? '']);
      }),
    );
  }
}

const mostPrices = 1000;

/** What need not be asked for again. */
interface Known {
  /** -1: what was added up is taken away again. */
  readonly sign?: -1;
  readonly prices: ReadonlySet<string>;
  readonly groups: Pick<PostgresTagGroups, 'of'>;
}

/** The parameters of `record`, made in one pass. */
class Batch {
  readonly newPrices = new Set<string>();
  readonly #known: Known;
  readonly #sign: number;
  readonly #ids: string[] = [];
  readonly #calls: CallValues[] = [];
  readonly #attempts: Value[][] = [];
  readonly #sums: Value[][] = [];
  readonly #groups = new Map<string, Value[]>();
  readonly #prices: Value[][] = [];
  readonly #spending: Value[][] = [];

  constructor(rows: readonly CallRow[], known: Known) {
    this.#known = known;
    this.#sign = known.sign ?? 1;
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

  /** The parameters of `unrecord`. */
  takenBack(): (string | readonly string[])[] {
    return [this.#ids, rowsText(this.#sums), rowsText(this.#spending)];
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
      this.#spending.push([
        row.id,
        counter,
        window,
        endsAt ?? null,
        this.#sign * (row.cost?.total ?? 0),
      ]);
    }
  }

  #addSums(row: CallRow): void {
    const group = this.#known.groups.of(row);
    const { key, team, model, provider, tags } = group;
    const id = groupId(group);
    this.#groups.set(id, [key, team, model, provider, JSON.stringify(tags)]);
    const s = sumsOf(row);
    const sign = this.#sign;
    this.#sums.push([
      row.id,
      Math.round(row.startedAt),
      id,
      sign * s.calls,
      sign * s.failed,
      sign * s.inputTokens,
      sign * s.cacheReadTokens,
      sign * s.cacheWriteTokens,
      sign * s.outputTokens,
      sign * s.pricedCalls,
      sign * s.unpricedCalls,
      sign * s.nanodollars,
      ...pieces.map((piece) => sign * s[piece]),
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
