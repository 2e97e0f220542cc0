/** What calls said, in PostgreSQL, for all gateways on one database. */
import {
  contentBytes,
  enough,
  type ContentStore,
  type ContentToRemove,
  type RemovedContent,
  type SealedContent,
} from '../contents.ts';
import type { Statement } from '../statements.ts';
import type { PostgresServer } from './server.ts';
import { number, text } from '../columns.ts';
import { readContentRow } from '../sqlite/contents.ts';

const keep: Statement = {
  name: 'content_keep',
  text: `INSERT INTO kept_contents (id, key_id, started_at, bytes, content)
    SELECT $1::text, $2::text, $3::bigint, $4::bigint, $5::bytea
    WHERE NOT EXISTS (SELECT 1 FROM forgotten_contents WHERE key_id = $2 AND before > $3)
    ON CONFLICT (id) DO NOTHING`,
};
const find: Statement = {
  name: 'content_find',
  text: 'SELECT id, key_id, started_at, content FROM kept_contents WHERE id = $1',
};
const total: Statement = {
  name: 'content_bytes',
  text: 'SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM kept_contents',
};
// Two gateways that remove at the same time take different rows.
const oldest: Statement = {
  name: 'content_oldest',
  text: `SELECT id, bytes FROM kept_contents WHERE started_at < $1
    ORDER BY started_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
};
const oldestOfKey: Statement = {
  name: 'content_oldest_of_key',
  text: `SELECT id, bytes FROM kept_contents WHERE key_id = $3 AND started_at < $1
    ORDER BY started_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
};
const remove: Statement = {
  name: 'content_remove',
  text: 'DELETE FROM kept_contents WHERE id = ANY($1::text[])',
};

const forget: Statement = {
  name: 'content_forget',
  text: `INSERT INTO forgotten_contents (key_id, before) VALUES ($1, $2)
    ON CONFLICT (key_id) DO UPDATE SET before = greatest(forgotten_contents.before, excluded.before)`,
};

/**
 * Writers share this lock, removals hold it exclusively: content of calls before the mark is committed before
 * the mark is set, and then removed.
 */
const turn = 5_563_204_124;
const keepsTurn: Statement = {
  name: 'content_keeps_turn',
  text: 'SELECT pg_advisory_xact_lock_shared($1)',
};
const forgetsTurn: Statement = {
  name: 'content_forgets_turn',
  text: 'SELECT pg_advisory_xact_lock($1)',
};

export class PostgresContents implements ContentStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async keep(contents: readonly SealedContent[]): Promise<void> {
    await this.#server.transaction(async (sql) => {
      await sql.run(keepsTurn, [turn]);
      for (const content of contents) {
        const { id, keyId, startedAt, sealed } = content;
        const size = contentBytes(content);
        await sql.run(keep, [id, keyId, Math.round(startedAt), size, sealed]);
      }
    });
  }

  async find(id: string): Promise<SealedContent | undefined> {
    const { rows } = await this.#server.use(() => this.#server.admin.run(find, [id]));
    return rows[0] === undefined ? undefined : readContentRow(rows[0]);
  }

  async bytes(): Promise<number> {
    const { rows } = await this.#server.use(() => this.#server.admin.run(total));
    return number(rows[0] ?? {}, 'bytes');
  }

  remove(
    { keyId, before = Number.MAX_SAFE_INTEGER, bytes }: ContentToRemove,
    most: number,
  ): Promise<RemovedContent> {
    return this.#server.transaction(async (sql) => {
      const { rows } =
        keyId === undefined
          ? await sql.run(oldest, [before, most])
          : await sql.run(oldestOfKey, [before, most, keyId]);
      const sizes = rows.map((row) => number(row, 'bytes'));
      const removed = enough(sizes, bytes);
      const ids = rows.slice(0, removed.rows).map((row) => text(row, 'id'));
      if (ids.length > 0) await sql.run(remove, [ids]);
      return removed;
    });
  }

  forget(keyId: string, before: number): Promise<void> {
    return this.#server.transaction(async (sql) => {
      await sql.run(forgetsTurn, [turn]);
      await sql.run(forget, [keyId, Math.round(before)]);
    });
  }
}
