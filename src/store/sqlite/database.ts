/**
 * One SQLite database: opened, its statements and transactions, a copy of it. A new file is made in one step, and one
 * that cannot be read is never written over.
 */
import { existsSync, renameSync, rmSync, statSync, closeSync, fsyncSync, openSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { closeToOthers, createPrivateFile } from '../data-dir.ts';
import type { Statement } from '../statements.ts';
import { StoreError } from '../store-error.ts';
import { asStoreError, corrupt } from './failure.ts';
import { prepareSchema } from './schema.ts';
import type { Durability } from './thread.ts';

export interface OpenOptions {
  readonly path: string;
  readonly durability: Durability;
  /** Whether a missing file is a first start. */
  readonly mayCreate: boolean;
}

/** A writer waits this long for another process (a backup) before it fails (F84). */
const busyTimeoutMs = 5000;

/**
 * Pages that every batch changes (sums, ends of indexes) are written back once in 16 MB of log and not
 * once in 4.
 */
const settings = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 4000;`;

/** Reading every page is worth its time up to here (about 0.1 s); larger files are read after the start. */
export const checkedAtStartBytes = 64 * 1024 * 1024;

/**
 * Opens the database for writing: WAL, by default `synchronous = NORMAL` (F83: a power loss may take
 * the last second, a crash of the process nothing).
 * @throws StoreError `corrupt`, `newer_schema`, `older_schema`, `busy`, `full`, `gone`.
 */
export function openForWriting({ path, mayCreate, durability }: OpenOptions): DatabaseSync {
  try {
    if (!existsSync(path)) {
      if (!mayCreate) throw new StoreError('gone', `${path} was removed while the gateway runs.`);
      createDatabase(path);
    }
    // A file of ours is never empty: it gets its name only when it is complete.
    if (statSync(path).size === 0) throw corrupt(path);
    closeToOthers(path);
    return usable(path, (db) => {
      if (statSync(path).size <= checkedAtStartBytes) requireSound(db, path);
      prepareSchema(db, path);
      db.exec(settings);
      if (durability === 'full') db.exec('PRAGMA synchronous = FULL;');
    });
  } catch (error) {
    throw asStoreError(error, path);
  }
}

/** A new database in memory; it ends with the connection. */
export function openInMemory(): DatabaseSync {
  const db = new DatabaseSync(':memory:');
  prepareSchema(db, 'the store in memory');
  return db;
}

/** Opens an existing database read-only, in parallel to the writer. */
export function openForReading(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  } catch (error) {
    throw asStoreError(error, path);
  }
}

function createDatabase(path: string): void {
  // A write-ahead log without its database is all that is left of one: that is not a fresh start.
  if (existsSync(`${path}-wal`)) throw corrupt(path);
  const unfinished = `${path}.new`;
  rmSync(unfinished, { force: true });
  rmSync(`${unfinished}-journal`, { force: true });
  createPrivateFile(unfinished);
  usable(unfinished, (db) => prepareSchema(db, path)).close();
  renameSync(unfinished, path);
}

/** Opens a file and runs the first steps on it; closes it again when one fails. */
function usable(path: string, begin: (db: DatabaseSync) => void): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    begin(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Reads all pages. @throws StoreError `corrupt` */
export function requireSound(db: DatabaseSync, path: string): void {
  const row = db.prepare('PRAGMA quick_check(1)').get();
  if (row?.['quick_check'] !== 'ok') throw corrupt(path);
}

export class Statements {
  readonly #db: DatabaseSync;
  readonly #beforeWrite: () => void;
  readonly #prepared = new Map<string | Statement, StatementSync>();

  /** @param beforeWrite throws where the database must not be written to */
  constructor(db: DatabaseSync, beforeWrite: () => void) {
    this.#db = db;
    this.#beforeWrite = beforeWrite;
  }

  /** @param sql a constant of the program (S21). */
  of(sql: string | Statement): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(typeof sql === 'string' ? sql : numbered(sql.text));
      this.#prepared.set(sql, statement);
    }
    return statement;
  }

  /** All or nothing, for writing; within another write it is a part of that one. */
  write<T>(work: () => T): T {
    if (this.#db.isTransaction) return work();
    this.#beforeWrite();
    return this.#inTransaction('BEGIN IMMEDIATE', work);
  }

  /** Several queries on the same state. */
  read<T>(work: () => T): T {
    return this.#inTransaction('BEGIN DEFERRED', work);
  }

  #inTransaction<T>(begin: string, work: () => T): T {
    this.#db.exec(begin);
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}

/**
 * Copies what is committed at this moment; the copy gets its name when it is complete and on the disk.
 * It can be put in the place of `gateway.db` as it is.
 * @throws StoreError `failed` when something has this name already.
 */
export function writeCopy(db: DatabaseSync, path: string): void {
  if (existsSync(path)) {
    throw new StoreError(
      'failed',
      `${path} exists already; a backup never overwrites. Choose another name.`,
    );
  }
  const unfinished = `${path}.unfinished`;
  rmSync(unfinished, { force: true });
  try {
    createPrivateFile(unfinished);
    db.prepare('VACUUM INTO ?').run(unfinished);
    sync(unfinished);
    renameSync(unfinished, path);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    const why = cause instanceof Error ? cause.message : 'unknown failure';
    throw new StoreError('failed', `The backup cannot be written to ${path}: ${why}`, cause);
  }
}

function sync(path: string): void {
  const file = openSync(path, 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** A statement of both engines: SQLite numbers parameters as `?1`. */
function numbered(text: string): string {
  return text.replaceAll(/\$(\d+)/g, '?$1');
}
