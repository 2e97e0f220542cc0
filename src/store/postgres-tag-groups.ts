/**
 * Bounds the groups of sums that the tags of clients can make (roll-up.ts). Only groups that are not
 * known yet are asked for, so that a batch whose groups were seen before costs nothing.
 */
import { hash } from 'node:crypto';
import type { CallRow } from './calls.ts';
import { rowsText, type Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import { furtherTags, groupOf, mostGroupsOfKey, type UsageGroup } from './roll-up.ts';
import { number, text } from './sqlite-columns.ts';

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
