/**
 * The writing half of the ledger in PostgreSQL. A batch of calls is one statement, and so one
 * transaction and one round trip: rows, attempts, roll-ups and spending move together, and only for
 * calls that were not there before (F81, F84).
 */
import { hash } from 'node:crypto';
import type { CallRow, OpenCall, Retention } from '../calls.ts';
import type { SeenInstance } from '../leases/lease-home.ts';
import { isEstimate } from '../lost-calls.ts';
import { callStatements, prunedByHour, settingStatements, type Statement } from '../statements.ts';
import { rowsText, type Sql } from './pool.ts';
import type { CallStore } from '../store.ts';
import type { PostgresServer } from './server.ts';
import { columnTypes } from './schema.ts';
import { PostgresCallReads } from './call-reads.ts';
import type { DeadLeases } from '../leases/lease-expiry.ts';
import { endLeases, giveBackLeases, reviveLeases } from './ended-leases.ts';
import {
  callsRetainedSince,
  dayMs,
  hourMs,
  hoursRetainedSince,
  furtherTags,
  groupOf,
  maxGroupsOfKey,
  sumsOf,
  totalKinds,
  type UsageGroup,
} from '../roll-up.ts';
import { isOfRow, type RefusedOrphan } from '../refused-rows.ts';
import {
  attemptColumns,
  attemptTable,
  callColumns,
  callTable,
  callText,
  readCallRow,
  readCallText,
  sumColumns,
  sumTable,
  callValues,
  type CallValues,
} from '../call-rows.ts';
import { text, number, valuesOf, type Value } from '../columns.ts';

// The parameters of one batch of calls, and the groups that their sums are stored in. The tags of clients can make a
// bounded number of groups (roll-up.ts). Only groups that are not known yet are requested, so that a batch whose groups
// were seen before costs no query.

const find: Statement = {
  name: 'tag_groups_find',
  text: `SELECT replace(id::text, '-', '') AS id FROM usage_groups
    WHERE id IN (SELECT (r->>0)::uuid FROM jsonb_array_elements($1::jsonb) r)`,
};
const count: Statement = {
  name: 'tag_groups_count',
  text: `SELECT key_id, count(*)::integer AS groups FROM usage_groups
    WHERE key_id IN (SELECT r->>0 FROM jsonb_array_elements($1::jsonb) r) AND tags <> '[]'
    GROUP BY key_id`,
};

/** Beyond this number of remembered groups or keys, the memory is cleared. */
const maxRemembered = 10_000;

class PostgresTagGroups {
  readonly #server: Pick<PostgresServer, 'data'>;
  /** Ids of groups that may be added to. */
  readonly #known = new Set<string>();
  /** Keys that have all groups that they may have. */
  readonly #full = new Set<string>();

  constructor(server: Pick<PostgresServer, 'data'>) {
    this.#server = server;
  }

  /** Before `of`, for the same rows. @throws an error of the server */
  async learn(rows: readonly CallRow[]): Promise<void> {
    if (this.#known.size > maxRemembered) this.#known.clear();
    if (this.#full.size > maxRemembered) this.#full.clear();
    const unknown = new Map<string, string>();
    for (const row of rows) {
      if (row.tags.length === 0) continue;
      const group = groupOf(row);
      const id = groupId(group);
      if (!this.#known.has(id)) unknown.set(id, group.key);
    }
    if (unknown.size === 0) return;
    const found = await this.#server.data.run(find, [listOf(unknown.keys())]);
    for (const row of found.rows) {
      const id = text(row, 'id');
      this.#known.add(id);
      unknown.delete(id);
    }
    await this.#addNew(unknown);
  }

  /** The group that a call's sums are stored in. */
  of(row: CallRow): UsageGroup {
    const group = groupOf(row);
    const fits = group.tags.length === 0 || this.#known.has(groupId(group));
    return fits ? group : { ...group, tags: furtherTags };
  }

  /** By id: its key. */
  async #addNew(groups: ReadonlyMap<string, string>): Promise<void> {
    const keys = new Set([...groups.values()].filter((key) => !this.#full.has(key)));
    if (keys.size === 0) return;
    const counted = await this.#server.data.run(count, [listOf(keys)]);
    const counts = new Map(counted.rows.map((row) => [text(row, 'key_id'), number(row, 'groups')]));
    for (const [id, key] of groups) {
      const has = counts.get(key) ?? 0;
      if (has >= maxGroupsOfKey) this.#full.add(key);
      if (this.#full.has(key)) continue;
      counts.set(key, has + 1);
      this.#known.add(id);
    }
  }
}

/** The same in every instance. */
function groupId({ key, team, model, provider, answered, tags }: UsageGroup): string {
  return textId(JSON.stringify([key, team, model, provider, answered, JSON.stringify(tags)]));
}

/** The same id for the same text in every instance; 128 bits, so that no two texts share one. */
export function textId(value: string): string {
  return hash('sha256', value).slice(0, 32);
}

function listOf(texts: Iterable<string>): string {
  return rowsText([...texts].map((each) => [each]));
}

const priceAt = callColumns.indexOf('price_id');

/** Values that earlier statements returned, which need no query. */
interface Known {
  /** By call: what others took off the lease before, while the instance seemed dead. */
  readonly before?: ReadonlyMap<string, number>;
  /** -1: the sums are subtracted again. */
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
  /** Instances whose leases pay for the calls. */
  readonly #payers = new Set<string>();

  constructor(rows: readonly CallRow[], known: Known) {
    this.#known = known;
    this.#sign = known.sign ?? 1;
    // One statement cannot distinguish two rows with the same id.
    const byId = new Map<string, CallRow>();
    for (const row of rows) if (!byId.has(row.id)) byId.set(row.id, row);
    for (const row of byId.values()) this.#add(row);
  }

  parameters(): (string | readonly string[])[] {
    return [
      rowsText(this.#calls),
      rowsText(this.#attempts),
      rowsText(this.#sums),
      this.#groupRows(),
      rowsText(this.#prices),
      rowsText(this.#spending),
      this.#ids,
      [...this.#payers],
    ];
  }

  /** The parameters of `unrecord`. */
  takenBack(): (string | readonly string[])[] {
    return [this.#ids, rowsText(this.#sums), rowsText(this.#spending), this.#groupRows()];
  }

  #groupRows(): string {
    return rowsText([...this.#groups].map(([id, group]) => [id, ...group]));
  }

  #add(row: CallRow): void {
    const flat = callValues(row);
    const values = flat.slice(0, callColumns.length);
    const price = values[priceAt];
    if (typeof price === 'string') values[priceAt] = this.#priceId(price);
    this.#ids.push(row.id);
    this.#calls.push(values);
    for (let from = callColumns.length; from < flat.length; from += attemptColumns.length) {
      const ordinal = (from - callColumns.length) / attemptColumns.length;
      this.#attempts.push([row.id, ordinal, ...flat.slice(from, from + attemptColumns.length)]);
    }
    const group = this.#known.groups.of(row);
    const { key, team, model, provider, answered, tags } = group;
    const id = groupId(group);
    this.#groups.set(id, [key, team, model, provider, answered, JSON.stringify(tags)]);
    const sign = this.#sign;
    this.#sums.push([
      row.id,
      Math.round(row.startedAt),
      id,
      ...valuesOf(sumTable, sumsOf(row)).map((sum) => sign * Number(sum)),
    ]);
    const before = this.#known.before?.get(row.id) ?? 0;
    if (row.cost === undefined && before === 0) return;
    const total = row.cost?.total ?? 0;
    // What a row costs comes off the lease, and no more: what else the call held is held until the instance says
    // that it has ended.
    const freed = total - before;
    for (const { counter, window, endsAt, lease } of row.budgets) {
      if (lease !== undefined) this.#payers.add(lease);
      const name = [row.id, counter, window, endsAt ?? null];
      this.#spending.push([...name, this.#sign * total, lease ?? null, freed]);
    }
  }

  #priceId(price: string): string {
    const id = textId(price);
    if (!this.#known.prices.has(id) && !this.newPrices.has(id)) {
      this.newPrices.add(id);
      this.#prices.push([id, price]);
    }
    return id;
  }
}

/** Types of the columns that arrive as JSON; all others are texts. */
const inputTypes = new Map<string, string>([
  ['ordinal', 'integer'],
  ['at', 'bigint'],
  ['ends_at', 'bigint'],
  ['freed', 'bigint'],
  ['seen_at', 'bigint'],
  ['group_id', 'uuid'],
  ...[...callTable, ...attemptTable, ...sumTable].map(({ name, type }): [string, string] => [
    name,
    columnTypes[type],
  ]),
]);

/** Rows of a parameter (`rowsText`) as columns. */
function rowsOf(parameter: number, columns: readonly string[]): string {
  const values = columns.map(
    (column, i) => `(r->>${i})::${inputTypes.get(column) ?? 'text'} AS ${column}`,
  );
  return `(SELECT ${values.join(', ')} FROM jsonb_array_elements($${parameter}::jsonb) AS r)`;
}

const attemptInput = ['call_id', 'ordinal', ...attemptColumns];
const sumInput = ['call_id', 'at', 'group_id', ...sumColumns];
const groupInput = ['key_id', 'team', 'model', 'provider', 'answered', 'tags'];
const spendingInput = [
  'call_id',
  'counter',
  'period',
  'ends_at',
  'nanodollars',
  // Whose lease paid, and what comes off that lease.
  'lease',
  'freed',
];

const summed = sumColumns.map((name) => `sum(${name}) AS ${name}`).join(', ');

/** The sums that a batch adds to hours, days and totals, computed once. */
const summedByHour = (sums: number): string => `summed AS MATERIALIZED
    (SELECT at / ${hourMs} * ${hourMs} AS at, group_id, ${summed}
    FROM ${rowsOf(sums, sumInput)} s JOIN added ON added.id = s.call_id GROUP BY 1, 2)`;

const withSums = (table: string): string =>
  sumColumns.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');

// Sorted: instances that add to the same sums wait for each other in the same order.
const addSums = (
  table: 'usage_hours' | 'usage_days',
  unit: number,
): string => `INSERT INTO ${table} (at, group_id, ${sumColumns.join(', ')})
    SELECT at / ${unit} * ${unit}, group_id, ${summed} FROM summed GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (at, group_id) DO UPDATE SET ${withSums(table)}`;

const addTotals = (
  table: 'total_hours' | 'total_days',
  { unit, groups }: { readonly unit: number; readonly groups: number },
): string => `INSERT INTO ${table} (kind, at, name, ${sumColumns.join(', ')})
    SELECT kind, at / ${unit} * ${unit}, name, ${summed}
    FROM summed JOIN ${rowsOf(groups, ['group_id', ...groupInput])} g USING (group_id)
    CROSS JOIN LATERAL (VALUES ('all', ''), ('model', g.model), ('answered', g.answered),
      ('provider', g.provider), ('team', g.team))
      AS totals (kind, name)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (kind, at, name) DO UPDATE SET ${withSums(table)}`;

/** @param parameters of sums and of groups */
const addRollUps = (sums: number, groups: number): string => `${summedByHour(sums)},
  hours AS (${addSums('usage_hours', hourMs)}),
  days AS (${addSums('usage_days', dayMs)}),
  total_hour AS (${addTotals('total_hours', { unit: hourMs, groups })}),
  total_day AS (${addTotals('total_days', { unit: dayMs, groups })})`;

const addSpending = (
  spending: number,
): string => `INSERT INTO spending (counter, period, ends_at, nanodollars)
    SELECT counter, period, max(ends_at), sum(nanodollars)
    FROM ${rowsOf(spending, spendingInput)} s JOIN added ON added.id = s.call_id GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (counter, period)
    DO UPDATE SET nanodollars = spending.nanodollars + excluded.nanodollars`;

/**
 * What rows cost moves from the leases to `spending` in one statement, so their sum never changes (Q1). Leases
 * are locked in one order, as by `budget_state`.
 */
const takeOffLeases = (
  spending: number,
): string => `UPDATE budget_leases l SET amount = greatest(0, l.amount - p.freed), booked = l.booked + p.freed
    FROM (SELECT held.counter, held.period, held.instance, s.freed FROM budget_leases held
      JOIN (SELECT counter, period, lease, sum(freed) AS freed
        FROM ${rowsOf(spending, spendingInput)} s JOIN added ON added.id = s.call_id
        WHERE lease IS NOT NULL GROUP BY 1, 2, 3) s
      ON s.counter = held.counter AND s.period = held.period AND s.lease = held.instance
      ORDER BY 1, 2 FOR UPDATE OF held) p
    WHERE l.counter = p.counter AND l.period = p.period AND l.instance = p.instance`;

/** Leases that pay and that were ended: the rows wait for `reviveLeases`, and nothing is added. 8 instances. */
const arePaid = 'NOT EXISTS (SELECT FROM ended_leases WHERE instance = ANY ($8::text[]))';

/** 1 calls, 2 attempts, 3 sums, 4 groups, 5 prices, 6 spending, 7 ids, 8 instances whose leases pay. */
const record: Statement = {
  name: 'record_calls',
  text: `WITH added AS (INSERT INTO calls (${callColumns.join(', ')})
    SELECT * FROM ${rowsOf(1, callColumns)} c WHERE ${arePaid}
    ON CONFLICT (id) DO NOTHING RETURNING id),
  closed AS (DELETE FROM open_calls WHERE id = ANY ($7::text[]) AND ${arePaid}),
  tried AS (INSERT INTO attempts (${attemptInput.join(', ')})
    SELECT a.* FROM ${rowsOf(2, attemptInput)} a JOIN added ON added.id = a.call_id),
  priced AS (INSERT INTO prices (id, price)
    SELECT (r->>0)::uuid, r->>1 FROM jsonb_array_elements($5::jsonb) AS r ORDER BY 1
    ON CONFLICT (id) DO NOTHING),
  grouped AS (INSERT INTO usage_groups (id, ${groupInput.join(', ')})
    SELECT group_id, ${groupInput.join(', ')} FROM ${rowsOf(4, ['group_id', ...groupInput])} g
    ORDER BY 1 ON CONFLICT (id) DO NOTHING),
  ${addRollUps(3, 4)},
  spent AS (${addSpending(6)}),
  paid AS (${takeOffLeases(6)})
  SELECT id FROM added`,
};

/** Rows of calls that others recorded for a gateway that seemed dead (`isEstimate`). */
const findEstimates: Statement = {
  name: 'find_estimates',
  text: `SELECT calls.*, prices.price FROM calls LEFT JOIN prices ON prices.id = calls.price_id
    WHERE calls.id = ANY ($1::text[]) AND error = 'interrupted' AND usage_source = 'estimated'
    ORDER BY calls.id FOR UPDATE OF calls`,
};

/** The opposite of `record`, for sums below zero: 1 ids, 2 sums, 3 spending, 4 groups. */
const unrecord: Statement = {
  name: 'unrecord_calls',
  text: `WITH added AS (DELETE FROM calls WHERE id = ANY ($1::text[]) RETURNING id),
  tried AS (DELETE FROM attempts WHERE call_id = ANY ($1::text[])),
  ${addRollUps(2, 4)},
  spent AS (${addSpending(3)})
  SELECT id FROM added`,
};
/** Deletes the sums of groups that have no call left, and totals. 1 sums. */
const emptyHours: Statement = {
  name: 'empty_sums',
  text: `WITH old AS (SELECT DISTINCT group_id, at FROM ${rowsOf(1, sumInput)} s),
    hours AS (DELETE FROM usage_hours USING old WHERE usage_hours.group_id = old.group_id AND calls = 0),
    total_hour AS (DELETE FROM total_hours t USING old
      WHERE t.kind = ANY ($2::text[]) AND t.at = old.at / ${hourMs} * ${hourMs} AND calls = 0),
    total_day AS (DELETE FROM total_days t USING old
      WHERE t.kind = ANY ($2::text[]) AND t.at = old.at / ${dayMs} * ${dayMs} AND calls = 0)
    DELETE FROM usage_days USING old WHERE usage_days.group_id = old.group_id AND calls = 0`,
};

// A checkpoint that arrives after the end of its call must not open it again.
const open: Statement = {
  name: 'open_calls',
  text: `INSERT INTO open_calls (id, seen_at, call)
    SELECT id, seen_at, call FROM ${rowsOf(1, ['id', 'seen_at', 'call'])} o
    WHERE NOT EXISTS (SELECT 1 FROM calls WHERE calls.id = o.id) ORDER BY id
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, call = excluded.call RETURNING id`,
};

/** The instance that locks an orphan first settles it; the others pass on (Q2). */
const findOrphans: Statement = {
  name: 'find_orphans',
  text: `SELECT id, call FROM open_calls WHERE seen_at < $1 ORDER BY id LIMIT $2
    FOR UPDATE SKIP LOCKED`,
};
const orphansAtOnce = 500;

const pruneCalls: Statement = {
  name: 'prune_calls',
  text: `WITH gone AS (DELETE FROM calls WHERE id IN
      (SELECT id FROM calls WHERE started_at < $1 ORDER BY started_at, id LIMIT $2)
      RETURNING id),
    tries AS (DELETE FROM attempts WHERE call_id IN (SELECT id FROM gone))
    SELECT id FROM gone`,
};
/** Calls on their way into the ledger wait for nothing but the server: `PostgresStore` spools them. */
export class PostgresCalls extends PostgresCallReads implements CallStore {
  readonly #server: PostgresServer;
  readonly #setAside: (orphan: RefusedOrphan) => Promise<void>;
  /** Prices that the database is known to have. */
  #prices = new Set<string>();
  readonly #groups: PostgresTagGroups;

  /**
   * @param setAside takes an orphan that cannot be recorded. It is forgotten then, and holds up no other; what it
   * holds of budgets is recorded like that of a call of which nothing is known.
   */
  constructor(server: PostgresServer, setAside: (orphan: RefusedOrphan) => Promise<void>) {
    super(server);
    this.#server = server;
    this.#setAside = setAside;
    this.#groups = new PostgresTagGroups(server);
  }

  async record(rows: readonly CallRow[]): Promise<void> {
    if (rows.length === 0) return;
    const added = await this.#server.use(() => this.#recordIn(this.#server.data, rows));
    const rest = rows.filter(({ id }) => !added.has(id));
    if (rest.length > 0) await this.#server.transaction((sql) => this.#recordLate(sql, rest));
  }

  /** Rows of an instance whose leases were ended, or of calls that others took for lost. */
  async #recordLate(sql: Sql, rows: readonly CallRow[]): Promise<void> {
    const isBack = await this.#reviveIn(sql, payersOf(rows));
    const added = isBack ? await this.#recordIn(sql, rows) : new Set();
    await this.#replaceEstimates(
      sql,
      rows.filter((row) => !added.has(row.id) && !isEstimate(row)),
    );
  }

  /** @returns the ids of calls that have their final row. */
  async open(calls: readonly OpenCall[]): Promise<readonly string[]> {
    if (calls.length === 0) return [];
    const rows = calls.map((call) => [call.row.id, Math.round(call.seenAt), callText(call.row)]);
    const noted = await this.#server.run(open, [rowsText(rows)]);
    if (noted.count === calls.length) return [];
    const ids = new Set(noted.rows.map((row) => text(row, 'id')));
    return calls.map(({ row }) => row.id).filter((id) => !ids.has(id));
  }

  async settleOrphans(seenBefore: number): Promise<readonly CallRow[]> {
    // By the server's clock: those of the instances differ (F90).
    const limit = Math.min(seenBefore + this.#server.aheadMs, Number.MAX_SAFE_INTEGER);
    const settled: CallRow[] = [];
    for (let atOnce = orphansAtOnce; ;) {
      try {
        const rows = await this.#server.transaction(async (sql) => {
          const found = await sql.run(findOrphans, [limit, atOnce]);
          const orphans = found.rows.map((row) => readCallText(text(row, 'call')));
          if (orphans.length === 0) return orphans;
          await this.#reviveIn(sql, payersOf(orphans));
          await this.#recordIn(sql, orphans);
          return orphans;
        });
        settled.push(...rows);
        if (rows.length < atOnce) return settled;
      } catch (error) {
        if (!isOfRow(error)) throw error;
        // One of them: it is found by taking each alone.
        if (atOnce === 1) await this.#removeOrphan(limit, String(error));
        atOnce = 1;
      }
    }
  }

  /**
   * Ends the leases of an instance that stated nothing since, and books them as spent (Q1).
   * @returns nanodollars that were booked; undefined when it lives, or another instance was faster
   * @throws StoreError
   */
  async expire(seen: SeenInstance): Promise<number | undefined> {
    return this.#server.transaction(async (sql) => {
      const lost = await endLeases(sql, seen, Date.now() + this.#server.aheadMs);
      if (lost === undefined) return undefined;
      await this.#recordIn(sql, lost);
      return lost.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0);
    });
  }

  /**
   * Gives back what a dead instance is proved not to have spent, also where its leases were ended.
   * @returns nanodollars
   * @throws StoreError
   */
  giveBack(dead: DeadLeases): Promise<number> {
    return this.#server.transaction(async (sql) => {
      await this.#reviveIn(sql, [dead.instance]);
      return giveBackLeases(sql, dead);
    });
  }

  /** Turns that back. @throws StoreError */
  async revive(instance: string): Promise<void> {
    await this.#server.transaction((sql) => this.#reviveIn(sql, [instance]));
  }

  /** @returns whether there was something to turn back. */
  #reviveIn(sql: Sql, instances: readonly string[]): Promise<boolean> {
    return reviveLeases(sql, instances, (lost) => this.#takeBack(sql, lost));
  }

  /** The first orphan, as `#settleSome` finds it. */
  #removeOrphan(limit: number, reason: string): Promise<void> {
    return this.#server.transaction(async (sql) => {
      const [row] = (await sql.run(findOrphans, [limit, 1])).rows;
      if (row === undefined) return;
      const id = text(row, 'id');
      await this.#setAside({ id, call: text(row, 'call'), reason });
      await sql.run(callStatements.close, [id]);
    });
  }

  /** The new boundary is stored before rows are deleted, so that no query sums a partly deleted hour. */
  async prune({ callsBefore, hoursBefore }: Retention, most: number): Promise<number> {
    const calls = Math.floor(callsBefore / hourMs) * hourMs;
    const hours = Math.floor(hoursBefore / dayMs) * dayMs;
    const { admin } = this.#server;
    return this.#server.use(() =>
      admin.transaction(async (sql) => {
        await sql.run(settingStatements.raise, [callsRetainedSince, String(calls)]);
        await sql.run(settingStatements.raise, [hoursRetainedSince, String(hours)]);
        let { count } = await sql.run(pruneCalls, [calls, most]);
        for (const statement of prunedByHour) {
          if (count < most) count += (await sql.run(statement, [hours, most - count])).count;
        }
        return count;
      }),
    );
  }

  /** @returns the ids of those that were not there. */
  async #recordIn(
    sql: Sql,
    rows: readonly CallRow[],
    before?: ReadonlyMap<string, number>,
  ): Promise<ReadonlySet<string>> {
    if (rows.length === 0) return new Set();
    await this.#groups.learn(rows);
    const batch = new Batch(rows, {
      prices: this.#prices,
      groups: this.#groups,
      ...(before === undefined ? {} : { before }),
    });
    const added = await sql.run(record, batch.parameters());
    for (const id of batch.newPrices) this.#prices.add(id);
    if (this.#prices.size > maxPrices) this.#prices = new Set();
    return new Set(added.rows.map((row) => text(row, 'id')));
  }

  /** Rows of calls that others took for lost: the estimate goes, with all that was added up for it (Q3). */
  async #replaceEstimates(sql: Sql, rows: readonly CallRow[]): Promise<void> {
    if (rows.length === 0) return;
    const old = await this.#takeBack(
      sql,
      rows.map(({ id }) => id),
    );
    const late = rows.filter(({ id }) => old.has(id));
    await this.#recordIn(sql, late, old);
  }

  /**
   * Estimates among these rows go, with all that was added up for them.
   * @returns what each of them cost
   */
  async #takeBack(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = await sql.run(findEstimates, [ids]);
    if (found.count === 0) return new Map();
    const old = found.rows.map((row) => readCallRow(row, []));
    await this.#groups.learn(old);
    const batch = new Batch(old, { prices: this.#prices, groups: this.#groups, sign: -1 });
    await sql.run(unrecord, batch.takenBack());
    await sql.run(emptyHours, [batch.takenBack()[1] ?? '', totalKinds]);
    return new Map(old.map(({ id, cost }) => [id, cost?.total ?? 0]));
  }
}

/** Instances whose leases pay for these calls. */
function payersOf(rows: readonly CallRow[]): readonly string[] {
  const leases = rows.flatMap(({ budgets }) => budgets.map(({ lease }) => lease));
  return [...new Set(leases.filter((lease) => lease !== undefined))];
}

const maxPrices = 1000;
