/** What calls said, in SQLite. */
import {
  contentBytes,
  enough,
  type ContentStore,
  type ContentToRemove,
  type RemovedContent,
  type SealedContent,
} from '../contents.ts';
import { number, text, type Columns } from '../columns.ts';
import type { Synchronous } from '../remote.ts';
import type { Statements } from './database.ts';

const keep = `INSERT INTO kept_contents (id, key_id, started_at, bytes, content)
  SELECT ?1, ?2, ?3, ?4, ?5
  WHERE NOT EXISTS (SELECT 1 FROM forgotten_contents WHERE key_id = ?2 AND before > ?3)
  ON CONFLICT (id) DO NOTHING`;
const find = 'SELECT id, key_id, started_at, content FROM kept_contents WHERE id = ?';
const total = 'SELECT coalesce(sum(bytes), 0) AS bytes FROM kept_contents';
const oldest = `SELECT id, bytes FROM kept_contents WHERE started_at < ?
  ORDER BY started_at LIMIT ?`;
const oldestOfKey = `SELECT id, bytes FROM kept_contents WHERE key_id = ? AND started_at < ?
  ORDER BY started_at LIMIT ?`;
const remove = 'DELETE FROM kept_contents WHERE id = ?';
const forget = `INSERT INTO forgotten_contents (key_id, before) VALUES (?, ?)
  ON CONFLICT (key_id) DO UPDATE SET before = max(before, excluded.before)`;

export class SqliteContents implements Synchronous<ContentStore> {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  keep(contents: readonly SealedContent[]): void {
    this.#sql.write(() => {
      for (const content of contents) {
        const { id, keyId, startedAt, sealed } = content;
        const bytes = contentBytes(content);
        this.#sql.of(keep).run(id, keyId, Math.round(startedAt), bytes, sealed);
      }
    });
  }

  find(id: string): SealedContent | undefined {
    const row = this.#sql.of(find).get(id);
    return row === undefined ? undefined : readContentRow(row);
  }

  bytes(): number {
    return number(this.#sql.of(total).get() ?? {}, 'bytes');
  }

  remove(
    { keyId, before = Number.MAX_SAFE_INTEGER, bytes }: ContentToRemove,
    most: number,
  ): RemovedContent {
    return this.#sql.write(() => {
      const rows =
        keyId === undefined
          ? this.#sql.of(oldest).all(before, most)
          : this.#sql.of(oldestOfKey).all(keyId, before, most);
      const sizes = rows.map((row) => number(row, 'bytes'));
      const removed = enough(sizes, bytes);
      for (const row of rows.slice(0, removed.rows)) this.#sql.of(remove).run(text(row, 'id'));
      return removed;
    });
  }

  forget(keyId: string, before: number): void {
    this.#sql.write(() => this.#sql.of(forget).run(keyId, Math.round(before)));
  }
}

/** A row of any of the stores. */
export function readContentRow(row: Columns): SealedContent {
  const { content } = row;
  return {
    id: text(row, 'id'),
    keyId: text(row, 'key_id'),
    startedAt: number(row, 'started_at'),
    sealed: content instanceof Uint8Array ? content : new Uint8Array(),
  };
}
