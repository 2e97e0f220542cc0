/**
 * The store's operations on SQLite, synchronous: runs in a worker thread, where waiting for the disk
 * holds up no call. SQL stands here as constants with parameters only (S21).
 */
import { statSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { asStoreError } from './sqlite-failure.ts';
import {
  keyValues,
  readCallRow,
  readKeyRow,
  readUsageRow,
  text,
  type CallValues,
} from './sqlite-rows.ts';
import { StoreError } from './store-error.ts';
import type { CallRow, KeyRecord, UsageGrouping, UsageQuery, UsageRow } from './store.ts';

const insertKey = `INSERT INTO keys (id, name, digest, models, endpoints, team, created_at, expires_at,
  revoked_at, strict) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

// A retried batch may hold rows that are already there: the id makes it count once (K5), and an
// existing row is never overwritten (F8).
const insertCall = `INSERT INTO calls (id, started_at, key_id, team, endpoint, model, provider,
  upstream_model, mode, stream, outcome, status, error, attempts, reported_fresh_input_tokens,
  reported_cache_read_tokens, reported_cache_write_tokens, reported_output_tokens,
  reported_reasoning_tokens, charged_fresh_input_tokens, charged_cache_read_tokens,
  charged_cache_write_tokens, charged_output_tokens, charged_reasoning_tokens, usage_source,
  first_event_ms, total_ms, notes)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`;

const usageSums = `count(*) AS calls,
  total(outcome = 'failed') AS failed,
  total(coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
    + coalesce(charged_cache_write_tokens, 0)) AS input_tokens,
  total(charged_cache_read_tokens) AS cache_read_tokens,
  total(charged_cache_write_tokens) AS cache_write_tokens,
  total(charged_output_tokens) AS output_tokens
  FROM calls WHERE started_at >= ? GROUP BY grouped ORDER BY grouped`;

/** A group that a call does not have is ''. Days are UTC. */
const usageBy: { readonly [G in UsageGrouping]: string } = {
  key: `SELECT key_id AS grouped, ${usageSums}`,
  model: `SELECT model AS grouped, ${usageSums}`,
  provider: `SELECT coalesce(provider, '') AS grouped, ${usageSums}`,
  team: `SELECT coalesce(team, '') AS grouped, ${usageSums}`,
  tag: `SELECT '' AS grouped, ${usageSums}`,
  hour: `SELECT strftime('%Y-%m-%dT%H:00Z', started_at / 1000, 'unixepoch') AS grouped, ${usageSums}`,
  day: `SELECT strftime('%Y-%m-%d', started_at / 1000, 'unixepoch') AS grouped, ${usageSums}`,
};

/** How often the file is looked for while rows are written to it (F87). */
const fileCheckMs = 10_000;

export interface BookParts {
  readonly db: DatabaseSync;
  readonly path: string;
  /** Monotonic ms. */
  now(): number;
}

export class SqliteBook {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #now: () => number;
  readonly #inode: number;
  readonly #statements = new Map<string, StatementSync>();
  #checkedAt: number;

  constructor(parts: BookParts) {
    this.#db = parts.db;
    this.#path = parts.path;
    this.#now = () => parts.now();
    this.#inode = statSync(parts.path).ino;
    this.#checkedAt = this.#now();
  }

  listKeys(): readonly KeyRecord[] {
    return this.#all('SELECT * FROM keys ORDER BY created_at, id').map(readKeyRow);
  }

  addKey(record: KeyRecord): void {
    this.#requireFile();
    this.#statement(insertKey).run(...keyValues(record));
  }

  revokeKey(id: string, at: number): boolean {
    this.#requireFile();
    const update = 'UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?';
    return Number(this.#statement(update).run(at, id).changes) > 0;
  }

  readSetting(name: string): string | undefined {
    const row = this.#statement('SELECT value FROM settings WHERE name = ?').get(name);
    return row === undefined ? undefined : text(row, 'value');
  }

  writeSetting(name: string, value: string): void {
    this.#requireFile();
    const upsert = `INSERT INTO settings (name, value) VALUES (?, ?)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    this.#statement(upsert).run(name, value);
  }

  /** One transaction for the batch: one sync of the log for all its rows. */
  recordCalls(rows: readonly CallValues[]): void {
    this.#requireFile();
    const insert = this.#statement(insertCall);
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      for (const values of rows) insert.run(...values);
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  usage(query: UsageQuery): readonly UsageRow[] {
    return this.#all(usageBy[query.by], query.since).map(readUsageRow);
  }

  listCalls(limit: number): readonly CallRow[] {
    const newest = 'SELECT * FROM calls ORDER BY started_at DESC, id DESC LIMIT ?';
    return this.#all(newest, limit).map(readCallRow);
  }

  /** Folds the write-ahead log into the database; safe to skip. */
  close(): void {
    this.#db.close();
  }

  /** The thrown value as the StoreError that the other thread is told. */
  failure(thrown: unknown): StoreError {
    return asStoreError(thrown, this.#path);
  }

  #all(sql: string, ...values: readonly number[]): ReturnType<StatementSync['all']> {
    return this.#statement(sql).all(...values);
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** A deleted file can be written to for ever without an error; nobody would find the rows. */
  #requireFile(): void {
    const now = this.#now();
    if (now - this.#checkedAt < fileCheckMs) return;
    if (statSync(this.#path, { throwIfNoEntry: false })?.ino !== this.#inode) {
      throw new StoreError(
        'gone',
        `${this.#path} was removed or replaced while the gateway runs; put it back or restart.`,
      );
    }
    this.#checkedAt = now;
  }
}
