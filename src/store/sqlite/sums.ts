/**
 * Roll-ups and spending of one batch of calls: added up in memory first, so that a batch writes one
 * row an hour, a day, a group and a budget, and not one for each of its calls.
 */
import { readBudgets, readTexts, insertInto, number, valuesOf } from '../columns.ts';
import { summedClasses, type BudgetWindow } from '../calls.ts';
import {
  addSums,
  dayMs,
  furtherTags,
  hourMs,
  mostGroupsOfKey,
  noSums,
  type Sums,
  unknownModelError,
} from '../roll-up.ts';
import { callColumns, sumColumns, sumTable, type CallValues } from '../call-rows.ts';
import type { Statements } from './database.ts';

const added = sumColumns.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
const addHour = `${insertInto('usage_hours', ['at', 'group_id', ...sumColumns])}
  ON CONFLICT (at, group_id) DO UPDATE SET ${added}`;
const addDay = `${insertInto('usage_days', ['at', 'group_id', ...sumColumns])}
  ON CONFLICT (at, group_id) DO UPDATE SET ${added}`;
const addSpending = `INSERT INTO spending (counter, period, ends_at, nanodollars) VALUES (?, ?, ?, ?)
  ON CONFLICT (counter, period) DO UPDATE SET nanodollars = nanodollars + excluded.nanodollars`;
const groupColumns = ['key_id', 'team', 'model', 'provider', 'tags'];
const insertGroup = `${insertInto('usage_groups', groupColumns)} ON CONFLICT DO NOTHING`;
const findGroup = `SELECT id FROM usage_groups
  WHERE key_id = ? AND team = ? AND model = ? AND provider = ? AND tags = ?`;
const countGroups = 'SELECT count(*) AS groups FROM usage_groups WHERE key_id = ?';

const at = {
  startedAt: callColumns.indexOf('started_at'),
  key: callColumns.indexOf('key_id'),
  team: callColumns.indexOf('team'),
  tags: callColumns.indexOf('tags'),
  model: callColumns.indexOf('model'),
  provider: callColumns.indexOf('provider'),
  outcome: callColumns.indexOf('outcome'),
  error: callColumns.indexOf('error'),
  freshInput: callColumns.indexOf('charged_fresh_input_tokens'),
  cacheRead: callColumns.indexOf('charged_cache_read_tokens'),
  cacheWrite: callColumns.indexOf('charged_cache_write_tokens'),
  output: callColumns.indexOf('charged_output_tokens'),
  cost: callColumns.indexOf('cost'),
  budgets: callColumns.indexOf('budgets'),
} as const;
const classAt = summedClasses.map(({ member, column }) => ({
  member,
  at: callColumns.indexOf(`charged_${column}`),
}));

/** Caches are cleared beyond this number of groups or budgets. */
const mostRemembered = 10_000;

type ByGroup = Map<number, Sums>;

interface Spending extends BudgetWindow {
  nanodollars: number;
}

export class SqliteSums {
  readonly #sql: Statements;
  readonly #groupIds = new Map<string, number>();
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
    addCall(entry(groups, this.#groupId(call), noSums), call);
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
    const spend = this.#sql.of(addSpending);
    for (const { counter, window, endsAt, nanodollars } of this.#spending.values()) {
      spend.run(counter, window, endsAt ?? null, nanodollars);
    }
    this.#begin();
  }

  /** Forgets a batch that failed, and ids that it may have made. */
  drop(): void {
    this.#begin();
    this.#groupIds.clear();
  }

  #begin(): void {
    this.#hours = new Map();
    this.#spending = new Map();
  }

  #writeSums(sql: string, sums: ReadonlyMap<number, ByGroup>): void {
    const add = this.#sql.of(sql);
    for (const [time, groups] of sums) {
      for (const [group, s] of groups) {
        add.run(time, group, ...valuesOf(sumTable, s));
      }
    }
  }

  #groupId(call: CallValues): number {
    const known = call[at.error] !== unknownModelError;
    const values = [
      textAt(call, at.key),
      textAt(call, at.team),
      known ? textAt(call, at.model) : '',
      textAt(call, at.provider),
      textAt(call, at.tags),
    ];
    const name = values.join('\n');
    let id = this.#groupIds.get(name);
    if (id === undefined) {
      id = this.#storedGroupId(values);
      remember(this.#groupIds, name, id);
    }
    return id;
  }

  #storedGroupId(values: readonly string[]): number {
    const group = [...values.slice(0, -1), canonicalTags(values.at(-1) ?? '')];
    const find = this.#sql.of(findGroup);
    const found = find.get(...group);
    if (found !== undefined) return number(found, 'id');
    const [key = ''] = group;
    if (group.at(-1) !== '[]' && this.#groupsOf(key) >= mostGroupsOfKey) {
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
  if (call[at.outcome] === 'failed') sums.failed += 1;
  sums.inputTokens += inputTokens;
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
  if (map.size >= mostRemembered) map.clear();
  map.set(name, value);
}
