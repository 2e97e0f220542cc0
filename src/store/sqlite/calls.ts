/** The ledger in SQLite. */
import { faultKinds } from '../../core/faults.ts';
import { summedClasses } from '../../core/token-classes.ts';
import {
  type CallRow,
  type Retention,
  type Spent,
  type SpentPage,
  type BudgetWindow,
} from '../calls.ts';
import {
  valuesText,
  readValuesText,
  attemptColumns,
  callColumns,
  type CallValues,
  sumColumns,
  sumTable,
} from '../call-rows.ts';
import type { RefusedOrphan } from '../refused-rows.ts';
import {
  callsRetainedSince,
  dayMs,
  hourMs,
  hoursRetainedSince,
  addSums,
  answeredBy,
  furtherTags,
  maxGroupsOfKey,
  noSums,
  totalKinds,
  totalName,
  type Sums,
  type UsageGroup,
  unknownModelError,
} from '../roll-up.ts';
import {
  insertInto,
  number,
  text,
  type Columns,
  readBudgets,
  readTexts,
  valuesOf,
} from '../columns.ts';
import type { Statements } from './database.ts';
import { asStoreError } from './thread.ts';
import type { Synchronous } from '../remote.ts';
import type { CallStore } from '../store.ts';
import { SqliteCallReads } from './call-reads.ts';
import { callStatements, prunedByHour, settingStatements } from '../statements.ts';
import { StoreError } from '../store-error.ts';

// Roll-ups and spending of one batch of calls: added up in memory first, so that a batch writes one
// row an hour, a day, a group and a budget, and not one for each of its calls.

const added = sumColumns.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
const addHour = `${insertInto('usage_hours', ['at', 'group_id', ...sumColumns])}
  ON CONFLICT (at, group_id) DO UPDATE SET ${added}`;
const addDay = `${insertInto('usage_days', ['at', 'group_id', ...sumColumns])}
  ON CONFLICT (at, group_id) DO UPDATE SET ${added}`;
const addTotal = (table: 'total_hours' | 'total_days'): string =>
  `${insertInto(table, ['kind', 'at', 'name', ...sumColumns])}
  ON CONFLICT (kind, at, name) DO UPDATE SET ${added}`;
const addTotalHour = addTotal('total_hours');
const addTotalDay = addTotal('total_days');
const addSpending = `INSERT INTO spending (counter, period, ends_at, nanodollars) VALUES (?, ?, ?, ?)
  ON CONFLICT (counter, period) DO UPDATE SET nanodollars = nanodollars + excluded.nanodollars`;
const groupColumns = ['key_id', 'team', 'model', 'provider', 'answered', 'tags'];
const insertGroup = `${insertInto('usage_groups', groupColumns)} ON CONFLICT DO NOTHING`;
const findGroup = `SELECT id FROM usage_groups
  WHERE key_id = ? AND team = ? AND model = ? AND provider = ? AND answered = ? AND tags = ?`;
const countGroups = 'SELECT count(*) AS groups FROM usage_groups WHERE key_id = ?';

const at = {
  startedAt: callColumns.indexOf('started_at'),
  key: callColumns.indexOf('key_id'),
  team: callColumns.indexOf('team'),
  tags: callColumns.indexOf('tags'),
  model: callColumns.indexOf('model'),
  provider: callColumns.indexOf('provider'),
  upstreamModel: callColumns.indexOf('upstream_model'),
  outcome: callColumns.indexOf('outcome'),
  error: callColumns.indexOf('error'),
  fault: callColumns.indexOf('fault'),
  freshInput: callColumns.indexOf('charged_fresh_input_tokens'),
  cacheRead: callColumns.indexOf('charged_cache_read_tokens'),
  cacheWrite: callColumns.indexOf('charged_cache_write_tokens'),
  output: callColumns.indexOf('charged_output_tokens'),
  cost: callColumns.indexOf('cost'),
  cacheSaved: callColumns.indexOf('cache_saved'),
  budgets: callColumns.indexOf('budgets'),
} as const;
const classAt = summedClasses.map(({ member, column }) => ({
  member,
  at: callColumns.indexOf(`charged_${column}`),
}));

/** Caches are cleared beyond this number of groups or budgets. */
const maxRemembered = 10_000;

interface Group extends Omit<UsageGroup, 'key' | 'tags'> {
  readonly id: number;
}

type ByGroup = Map<Group, Sums>;

interface Spending extends BudgetWindow {
  nanodollars: number;
}

class SqliteSums {
  readonly #sql: Statements;
  readonly #groups = new Map<string, Group>();
  readonly #budgets = new Map<string, readonly BudgetWindow[]>();
  #hours = new Map<number, ByGroup>();
  #spending = new Map<string, Spending>();

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Adds a call that was not there before; inside the batch's transaction. */
  add(call: CallValues): void {
    const hour = Math.floor(numberAt(call, at.startedAt) / hourMs) * hourMs;
    const groups = entry(this.#hours, hour, newByGroup);
    addCall(entry(groups, this.#group(call), noSums), call);
    const cost = call[at.cost];
    const budgets = call[at.budgets];
    if (typeof cost !== 'number' || typeof budgets !== 'string') return;
    for (const budget of this.#budgetsOf(budgets)) {
      const name = `${budget.counter}\n${budget.window}`;
      entry(this.#spending, name, () => ({ ...budget, nanodollars: 0 })).nanodollars += cost;
    }
  }

  /** Writes what was added; inside the same transaction. */
  write(): void {
    const days = new Map<number, ByGroup>();
    for (const [hour, groups] of this.#hours) {
      const day = entry(days, Math.floor(hour / dayMs) * dayMs, newByGroup);
      for (const [group, sums] of groups) addSums(entry(day, group, noSums), sums);
    }
    this.#writeSums(addHour, this.#hours);
    this.#writeSums(addDay, days);
    this.#writeTotals(addTotalHour, this.#hours);
    this.#writeTotals(addTotalDay, days);
    const spend = this.#sql.of(addSpending);
    for (const { counter, window, endsAt, nanodollars } of this.#spending.values()) {
      spend.run(counter, window, endsAt ?? null, nanodollars);
    }
    this.#begin();
  }

  /** Forgets a batch that failed, and ids that it may have made. */
  drop(): void {
    this.#begin();
    this.#groups.clear();
  }

  #begin(): void {
    this.#hours = new Map();
    this.#spending = new Map();
  }

  #writeSums(sql: string, sums: ReadonlyMap<number, ByGroup>): void {
    const add = this.#sql.of(sql);
    for (const [time, groups] of sums) {
      for (const [group, s] of groups) {
        add.run(time, group.id, ...valuesOf(sumTable, s));
      }
    }
  }

  #writeTotals(sql: string, sums: ReadonlyMap<number, ByGroup>): void {
    const add = this.#sql.of(sql);
    for (const [time, groups] of sums) {
      for (const kind of totalKinds) {
        const totals = new Map<string, Sums>();
        for (const [group, s] of groups) addSums(entry(totals, totalName(kind, group), noSums), s);
        for (const [name, s] of totals) add.run(kind, time, name, ...valuesOf(sumTable, s));
      }
    }
  }

  #group(call: CallValues): Group {
    const known = call[at.error] !== unknownModelError;
    const team = textAt(call, at.team);
    const model = known ? textAt(call, at.model) : '';
    const provider = textAt(call, at.provider);
    const answered = answeredBy({
      provider,
      upstreamModel: textAt(call, at.upstreamModel),
      error: textAt(call, at.error),
    });
    const values = [textAt(call, at.key), team, model, provider, answered, textAt(call, at.tags)];
    const name = values.join('\n');
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { id: this.#storedGroupId(values), team, model, provider, answered };
      remember(this.#groups, name, group);
    }
    return group;
  }

  #storedGroupId(values: readonly string[]): number {
    const group = [...values.slice(0, -1), canonicalTags(values.at(-1) ?? '')];
    const find = this.#sql.of(findGroup);
    const found = find.get(...group);
    if (found !== undefined) return number(found, 'id');
    const [key = ''] = group;
    if (group.at(-1) !== '[]' && this.#groupsOf(key) >= maxGroupsOfKey) {
      group.splice(-1, 1, JSON.stringify(furtherTags));
    }
    this.#sql.of(insertGroup).run(...group);
    return number(find.get(...group) ?? {}, 'id');
  }

  #groupsOf(key: string): number {
    return number(this.#sql.of(countGroups).get(key) ?? {}, 'groups');
  }

  #budgetsOf(text: string): readonly BudgetWindow[] {
    let budgets = this.#budgets.get(text);
    if (budgets === undefined) {
      budgets = readBudgets(text);
      remember(this.#budgets, text, budgets);
    }
    return budgets;
  }
}

/** As `groupOf` (roll-up.ts) does for a row. */
function canonicalTags(tags: string): string {
  return tags === '' ? '[]' : JSON.stringify([...new Set(readTexts(tags))].toSorted());
}

/** As `sumsOf` (roll-up.ts) does for a row. */
function addCall(sums: Sums, call: CallValues): void {
  const inputTokens =
    numberAt(call, at.freshInput) + numberAt(call, at.cacheRead) + numberAt(call, at.cacheWrite);
  const cost = call[at.cost];
  sums.calls += 1;
  if (call[at.outcome] === 'failed') {
    sums.failed += 1;
    const fault = faultKinds.find((kind) => kind.fault === call[at.fault]);
    if (fault !== undefined) sums[fault.member] += 1;
  }
  sums.inputTokens += inputTokens;
  sums.cacheSaved += numberAt(call, at.cacheSaved);
  for (const { member, at: index } of classAt) sums[member] += numberAt(call, index);
  if (typeof cost === 'number') {
    sums.pricedCalls += 1;
    sums.nanodollars += cost;
  } else if (inputTokens + numberAt(call, at.output) > 0) sums.unpricedCalls += 1;
}

function numberAt(call: CallValues, index: number): number {
  const value = call[index];
  return typeof value === 'number' ? value : 0;
}

function textAt(call: CallValues, index: number): string {
  const value = call[index];
  return typeof value === 'string' ? value : '';
}

function newByGroup(): ByGroup {
  return new Map();
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function remember<V>(map: Map<string, V>, name: string, value: V): void {
  if (map.size >= maxRemembered) map.clear();
  map.set(name, value);
}

// A retried batch may hold rows that are already there: the id makes it count once, and an
// existing row is never overwritten.
const insertCall = `${insertInto('calls', callColumns)} ON CONFLICT (id) DO NOTHING`;
const insertAttempt = insertInto('attempts', ['call_n', 'ordinal', ...attemptColumns]);
const insertPrice = 'INSERT INTO prices (price) VALUES (?) ON CONFLICT DO NOTHING';
const findPrice = 'SELECT id FROM prices WHERE price = ?';
// A checkpoint that arrives after the end of its call must not open it again.
const openCall = `INSERT INTO open_calls (id, seen_at, call)
  SELECT $id, $seenAt, $call WHERE NOT EXISTS (SELECT 1 FROM calls WHERE id = $id)
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, call = excluded.call`;
const findOrphans = 'SELECT id, call FROM open_calls WHERE seen_at < ? ORDER BY id';
// As a float: an integer beyond 2^53 could not be read, and no budget is so large.
const spent = `SELECT counter, period, nanodollars * 1.0 AS nanodollars FROM spending
  WHERE ends_at IS NULL OR ends_at > ?`;
const spentOf = `SELECT counter, period, nanodollars * 1.0 AS nanodollars FROM spending
  WHERE counter = ? AND (ends_at IS NULL OR ends_at > ?)`;
const spentPage = `SELECT counter, period, nanodollars * 1.0 AS nanodollars FROM spending
  WHERE (counter, period) > (?, ?) AND (ends_at IS NULL OR ends_at > ?)
  ORDER BY counter, period LIMIT ?`;
const findOld = 'SELECT n FROM calls WHERE started_at < ? ORDER BY started_at LIMIT ?';
const idAt = callColumns.indexOf('id');
const priceAt = callColumns.indexOf('price_id');

/** A running call as it comes from the other thread. */
export interface OpenValues {
  readonly values: CallValues;
  readonly seenAt: number;
}

export interface SettledOrphans {
  readonly rows: readonly CallRow[];
  /** Those that cannot be recorded; they are still there. */
  readonly refused: readonly RefusedOrphan[];
}

type Plain = Omit<Synchronous<CallStore>, 'record' | 'open' | 'settleOrphans'>;

/** Records arrive as flat values. */
export class SqliteCalls extends SqliteCallReads implements Plain {
  readonly #sql: Statements;
  readonly #sums: SqliteSums;
  readonly #prices = new Map<string, number>();
  /** Ids in `open_calls`: most calls end before they get there, and need no look. */
  #open: Set<string> | undefined;

  constructor(sql: Statements) {
    super(sql);
    this.#sql = sql;
    this.#sums = new SqliteSums(sql);
  }

  /** One transaction for the batch: one sync of the log for all its rows. */
  record(rows: readonly CallValues[]): void {
    this.#write(() => {
      for (const row of rows) this.#recordOne(row);
      this.#sums.write();
    });
  }

  open(calls: readonly OpenValues[]): readonly string[] {
    return this.#write(() => {
      const open = this.#openIds();
      const insert = this.#sql.of(openCall);
      for (const { values, seenAt } of calls) {
        const id = String(values[idAt]);
        insert.run({ id, seenAt, call: valuesText(values) });
        open.add(id);
      }
      return [];
    });
  }

  settleOrphans(seenBefore: number): SettledOrphans {
    const limit = Math.min(seenBefore, Number.MAX_SAFE_INTEGER);
    const orphans = this.#sql.of(findOrphans).all(limit);
    try {
      return { rows: this.#settle(orphans), refused: [] };
    } catch (error) {
      if (!isRefused(error)) throw error;
    }
    // One of them must not hold up the others: each for itself.
    const rows: CallRow[] = [];
    const refused: RefusedOrphan[] = [];
    for (const orphan of orphans) {
      try {
        rows.push(...this.#settle([orphan]));
      } catch (error) {
        if (!isRefused(error)) throw error;
        const [id, call] = [text(orphan, 'id'), text(orphan, 'call')];
        refused.push({ id, call, reason: String(error) });
      }
    }
    return { rows, refused };
  }

  /** A running call that cannot be recorded. */
  forgetOrphan(id: string): void {
    this.#write(() => this.#close(id));
  }

  #settle(orphans: readonly Columns[]): readonly CallRow[] {
    const ids = this.#write(() => {
      const rows = orphans.map(readOpenCall);
      for (const row of rows) this.#recordOne(row);
      this.#sums.write();
      return rows.map((row) => String(row[idAt]));
    });
    return ids.map((id) => this.find(id)).filter((row) => row !== undefined);
  }

  spent(endingAfter: number, counters?: readonly string[]): readonly Spent[] {
    const rows =
      counters === undefined
        ? this.#sql.of(spent).all(endingAfter)
        : counters.flatMap((counter) => this.#sql.of(spentOf).all(counter, endingAfter));
    return rows.map(readSpent);
  }

  spentPage(endingAfter: number, { limit, after }: SpentPage): readonly Spent[] {
    const { counter, window } = after ?? { counter: '', window: '' };
    return this.#sql.of(spentPage).all(counter, window, endingAfter, limit).map(readSpent);
  }

  /** The new boundary is stored before rows are deleted, so that no query sums a partly deleted hour. */
  prune({ callsBefore, hoursBefore }: Retention, most: number): number {
    const calls = Math.floor(callsBefore / hourMs) * hourMs;
    const hours = Math.floor(hoursBefore / dayMs) * dayMs;
    return this.#write(() => {
      const raise = this.#sql.of(settingStatements.raise);
      raise.run(callsRetainedSince, String(calls));
      raise.run(hoursRetainedSince, String(hours));
      let pruned = this.#pruneCalls(calls, most);
      for (const sql of prunedByHour) {
        if (pruned < most) pruned += Number(this.#sql.of(sql).run(hours, most - pruned).changes);
      }
      return pruned;
    });
  }

  #pruneCalls(before: number, most: number): number {
    const old = this.#sql.of(findOld).all(before, most);
    for (const row of old) {
      const n = number(row, 'n');
      this.#sql.of('DELETE FROM attempts WHERE call_n = ?').run(n);
      this.#sql.of('DELETE FROM calls WHERE n = ?').run(n);
    }
    return old.length;
  }

  #recordOne(row: CallValues): void {
    const values = row.slice(0, callColumns.length);
    const price = values[priceAt];
    if (typeof price === 'string') values[priceAt] = this.#priceId(price);
    const { changes, lastInsertRowid } = this.#sql.of(insertCall).run(...values);
    this.#close(String(row[idAt]));
    if (changes === 0) return;
    for (let from = callColumns.length; from < row.length; from += attemptColumns.length) {
      const ordinal = (from - callColumns.length) / attemptColumns.length;
      const attempt = row.slice(from, from + attemptColumns.length);
      this.#sql.of(insertAttempt).run(lastInsertRowid, ordinal, ...attempt);
    }
    this.#sums.add(values);
  }

  #priceId(price: string): number {
    let id = this.#prices.get(price);
    if (id === undefined) {
      this.#sql.of(insertPrice).run(price);
      id = number(this.#sql.of(findPrice).get(price) ?? {}, 'id');
      this.#prices.set(price, id);
    }
    return id;
  }

  #close(id: string): void {
    if (this.#openIds().delete(id)) this.#sql.of(callStatements.close).run(id);
  }

  #openIds(): Set<string> {
    this.#open ??= new Set(
      this.#sql
        .of('SELECT id FROM open_calls')
        .all()
        .map((row) => text(row, 'id')),
    );
    return this.#open;
  }

  /** Cached data about the database is wrong after a rollback. */
  #write<T>(work: () => T): T {
    try {
      return this.#sql.write(work);
    } catch (error) {
      this.#open = undefined;
      this.#prices.clear();
      this.#sums.drop();
      throw error;
    }
  }
}

function readSpent(row: Columns): Spent {
  return {
    counter: text(row, 'counter'),
    window: text(row, 'period'),
    nanodollars: number(row, 'nanodollars'),
  };
}

function readOpenCall(row: Parameters<typeof text>[0]): CallValues {
  try {
    return readValuesText(text(row, 'call'));
  } catch {
    throw unreadable();
  }
}

function isRefused(error: unknown): boolean {
  return asStoreError(error, '').kind === 'refused';
}

function unreadable(): StoreError {
  return new StoreError('refused', 'A running call in the store cannot be read.');
}
