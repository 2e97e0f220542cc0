/** What calls said, in SQLite: the book's half, synchronous, and its front. */
import {
  contentBytes,
  enough,
  type ContentStore,
  type ContentToRemove,
  type RemovedContent,
  type SealedContent,
} from './contents.ts';
import { number, text, type Columns } from './sqlite-columns.ts';
import type { Statements } from './sqlite-statements.ts';
import type { SqliteThread } from './sqlite-thread.ts';

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

export class SqliteContentBook {
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
    this.#sql.of(forget).run(keyId, Math.round(before));
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

/** Sums and single contents are read beside the writes: nobody's call waits for them. */
export class SqliteContents implements ContentStore {
  readonly #writer: SqliteThread;
  readonly #reader: SqliteThread;

  constructor(writer: SqliteThread, reader: SqliteThread) {
    this.#writer = writer;
    this.#reader = reader;
  }

  keep(contents: readonly SealedContent[]): Promise<void> {
    return this.#writer.ask('keepContents', contents);
  }

  find(id: string): Promise<SealedContent | undefined> {
    return this.#reader.ask('findContent', id);
  }

  bytes(): Promise<number> {
    return this.#reader.ask('contentBytes');
  }

  remove(which: ContentToRemove, most: number): Promise<RemovedContent> {
    return this.#writer.ask('removeContents', which, most);
  }

  forget(keyId: string, before: number): Promise<void> {
    return this.#writer.ask('forgetContents', keyId, before);
  }
}
