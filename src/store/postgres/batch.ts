/**
 * The parameters of one batch of calls, and the groups that their sums are kept in. The tags of clients can make a
 * bounded number of groups (roll-up.ts). Only groups that are not known yet are asked for, so that a batch whose groups
 * were seen before costs no query.
 */
import { hash } from 'node:crypto';
import type { CallRow } from '../calls.ts';
import { rowsText } from './pool.ts';
import type { Statement } from '../statements.ts';
import type { PostgresServer } from './server.ts';
import { furtherTags, groupOf, mostGroupsOfKey, sumsOf, type UsageGroup } from '../roll-up.ts';
import {
  attemptColumns,
  callColumns,
  callValues,
  sumTable,
  type CallValues,
} from '../call-rows.ts';
import { number, text, valuesOf, type Value } from '../columns.ts';

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

/** Beyond so many remembered groups or keys, memory is begun afresh (L2). */
const mostRemembered = 10_000;

export class PostgresTagGroups {
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
    if (this.#known.size > mostRemembered) this.#known.clear();
    if (this.#full.size > mostRemembered) this.#full.clear();
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

  /** The group that a call's sums are kept in. */
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
      if (has >= mostGroupsOfKey) this.#full.add(key);
      if (this.#full.has(key)) continue;
      counts.set(key, has + 1);
      this.#known.add(id);
    }
  }
}

/** The same in every instance. */
export function groupId({ key, team, model, provider, tags }: UsageGroup): string {
  return idOf(JSON.stringify([key, team, model, provider, JSON.stringify(tags)]));
}

/** The same id for the same text in every instance; 128 bits, so that no two texts share one. */
export function idOf(value: string): string {
  return hash('sha256', value).slice(0, 32);
}

function listOf(texts: Iterable<string>): string {
  return rowsText([...texts].map((each) => [each]));
}

const priceAt = callColumns.indexOf('price_id');

/** What need not be asked for again. */
interface Known {
  /** By call: what others took off the lease before, while the instance seemed dead. */
  readonly before?: ReadonlyMap<string, number>;
  /** -1: what was added up is taken away again. */
  readonly sign?: -1;
  readonly prices: ReadonlySet<string>;
  readonly groups: Pick<PostgresTagGroups, 'of'>;
}

/** The parameters of `record`, made in one pass. */
export class Batch {
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
  /** Instances whose leases pay. */
  readonly #payers = new Set<string>();

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
      [...this.#payers],
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
      const ordinal = (from - callColumns.length) / attemptColumns.length;
      this.#attempts.push([row.id, ordinal, ...flat.slice(from, from + attemptColumns.length)]);
    }
    this.#addSums(row);
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

  #addSums(row: CallRow): void {
    const group = this.#known.groups.of(row);
    const { key, team, model, provider, tags } = group;
    const id = groupId(group);
    this.#groups.set(id, [key, team, model, provider, JSON.stringify(tags)]);
    const sign = this.#sign;
    this.#sums.push([
      row.id,
      Math.round(row.startedAt),
      id,
      ...valuesOf(sumTable, sumsOf(row)).map((sum) => sign * Number(sum)),
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
