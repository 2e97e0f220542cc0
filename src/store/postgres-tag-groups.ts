/**
 * Bounds the groups of sums that the tags of clients can make (roll-up.ts). Each gateway asks for those of
 * a key once, and then knows its own: several may go beyond the bound by as much as each of them adds.
 */
import type { CallRow } from './calls.ts';
import { rowsText, type Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import { furtherTags, groupOf, mostGroupsOfKey, type UsageGroup } from './roll-up.ts';
import { text } from './sqlite-columns.ts';

const read: Statement = {
  name: 'tag_groups_of_key',
  text: `SELECT key_id, team, model, provider, tags FROM usage_groups
    WHERE key_id IN (SELECT r->>0 FROM jsonb_array_elements($1::jsonb) r) AND tags <> '[]'`,
};

/** Beyond so many remembered groups, memory is begun afresh (L2). */
const mostRemembered = 100_000;

export class PostgresTagGroups {
  readonly #server: Pick<PostgresServer, 'data'>;
  /** By key. */
  readonly #known = new Map<string, Set<string>>();
  #remembered = 0;

  constructor(server: Pick<PostgresServer, 'data'>) {
    this.#server = server;
  }

  /** Before `of`, for the same rows. @throws an error of the server */
  async learn(rows: readonly CallRow[]): Promise<void> {
    const keys = new Set<string>();
    for (const { tags, keyId } of rows) {
      if (tags.length > 0 && !this.#known.has(keyId)) keys.add(keyId);
    }
    if (keys.size === 0) return;
    const found = await this.#server.data.run(read, [rowsText([...keys].map((key) => [key]))]);
    if (this.#remembered > mostRemembered) this.#forget();
    for (const key of keys) this.#known.set(key, this.#known.get(key) ?? new Set());
    for (const row of found.rows) {
      this.#add(
        text(row, 'key_id'),
        nameOf(['team', 'model', 'provider', 'tags'].map((column) => text(row, column))),
      );
    }
  }

  /** The group that a call's sums are kept in. */
  of(row: CallRow): UsageGroup {
    const group = groupOf(row);
    if (group.tags.length === 0) return group;
    const known = this.#known.get(group.key);
    const name = nameOf([group.team, group.model, group.provider, JSON.stringify(group.tags)]);
    if (known?.has(name) === true) return group;
    if (known !== undefined && known.size >= mostGroupsOfKey)
      return { ...group, tags: furtherTags };
    this.#add(group.key, name);
    return group;
  }

  #add(key: string, name: string): void {
    const known = this.#known.get(key);
    if (known === undefined || known.has(name)) return;
    known.add(name);
    this.#remembered += 1;
  }

  #forget(): void {
    this.#known.clear();
    this.#remembered = 0;
  }
}

function nameOf(texts: readonly string[]): string {
  return texts.join('\n');
}
