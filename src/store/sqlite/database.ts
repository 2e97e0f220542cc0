/**
 * One SQLite database: opened, its statements and transactions, a copy of it. A new file is made in one step, and one
 * that cannot be read is never written over.
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type DatabaseSyncOptions, type StatementSync } from 'node:sqlite';
import { attemptTable, callTable, sumTable } from '../call-rows.ts';
import type { Column, ColumnType } from '../columns.ts';
import { closeToOthers, createPrivateFile } from '../data-dir.ts';
import { auditTable, keyTable } from '../key-rows.ts';
import { personTable, sessionTable } from '../people.ts';
import { requireSchemaVersion, schemaVersion } from '../schema.ts';
import type { Statement } from '../statements.ts';
import { StoreError } from '../store-error.ts';
import { type Durability, asStoreError, checkedAtStartBytes, corrupt } from './thread.ts';

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
    return usable(path, (db) => requireOwnSchema(db, path), { readOnly: true });
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
function usable(
  path: string,
  begin: (db: DatabaseSync) => void,
  options: DatabaseSyncOptions = {},
): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: busyTimeoutMs, ...options });
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
      // A statement of both engines: SQLite numbers parameters as `?1`.
      statement = this.#db.prepare(
        typeof sql === 'string' ? sql : sql.text.replaceAll(/\$(\d+)/g, '?$1'),
      );
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
    this.of(begin).run();
    try {
      const result = work();
      this.of('COMMIT').run();
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}

/**
 * Copies what is committed at this moment; the copy gets its name when it is complete and on the disk.
 * It can replace `gateway.db` unchanged.
 * @throws StoreError `failed` when something has this name already.
 */
export function writeCopy(db: DatabaseSync, path: string): void {
  if (existsSync(path)) {
    throw new StoreError(
      'failed',
      `${path} exists already; a backup never overwrites. Choose another name.`,
    );
  }
  const folder = dirname(path);
  if (!existsSync(folder)) {
    throw new StoreError(
      'failed',
      `The backup cannot be written to ${path}: there is no folder ${folder}. Create it, or choose another.`,
    );
  }
  const unfinished = `${path}.unfinished`;
  rmSync(unfinished, { force: true });
  try {
    createPrivateFile(unfinished);
    db.prepare('VACUUM INTO ?').run(unfinished);
    const file = openSync(unfinished, 'r+');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    const why =
      cause instanceof Error ? cause.message.replaceAll(unfinished, path) : 'unknown failure';
    throw new StoreError('failed', `The backup cannot be written to ${path}: ${why}`, cause);
  }
}

// The tables in SQLite. STRICT: a column holds what it says or the write fails. Times are ms since the epoch; a
// NULL count is unknown, never 0; lists and policies are stored as JSON text.

/** `application_id`: distinguishes the gateway's databases from other SQLite files ("MGWY"). */
const applicationId = 0x4d475759;

const types: { readonly [T in ColumnType]: string } = {
  name: 'TEXT',
  text: 'TEXT',
  integer: 'INTEGER',
  count: 'INTEGER',
  real: 'REAL',
  ref: 'INTEGER',
};

function columnsOf<T>(table: readonly Column<T>[]): string {
  return table
    .map(({ name, type, required }) => `${name} ${types[type]}${required ? ' NOT NULL' : ''}`)
    .join(',\n  ');
}

// `calls.n` is a number of its own: row ids of tables without one change when a backup is made.
const schema = `
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE keys (
  id TEXT PRIMARY KEY,
  ${columnsOf(keyTable)},
  last_used_at INTEGER,
  previous_used_at INTEGER,
  stamp INTEGER NOT NULL
) STRICT;
CREATE INDEX keys_stamp ON keys (stamp);

CREATE TABLE policies (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  policy TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  ${columnsOf(auditTable)},
  PRIMARY KEY (seq)
) STRICT;
CREATE INDEX audit_subject ON audit (subject, seq);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_no_gap BEFORE INSERT ON audit
WHEN NEW.seq <> coalesce((SELECT max(seq) FROM audit), 0) + 1
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

CREATE TABLE prices (
  id INTEGER PRIMARY KEY,
  price TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE calls (
  n INTEGER PRIMARY KEY,
  ${columnsOf(callTable)},
  UNIQUE (id)
) STRICT;
CREATE INDEX calls_started_at ON calls (started_at);
CREATE INDEX calls_failed ON calls (started_at) WHERE outcome = 'failed';

CREATE TABLE attempts (
  call_n INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  ${columnsOf(attemptTable)},
  PRIMARY KEY (call_n, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE open_calls (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  call TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE spending (
  counter TEXT NOT NULL,
  period TEXT NOT NULL,
  ends_at INTEGER,
  nanodollars INTEGER NOT NULL,
  PRIMARY KEY (counter, period)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_ends_at ON spending (ends_at);

CREATE TABLE usage_groups (
  id INTEGER PRIMARY KEY,
  key_id TEXT NOT NULL,
  team TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  answered TEXT NOT NULL,
  tags TEXT NOT NULL,
  UNIQUE (key_id, team, model, provider, answered, tags)
) STRICT;

CREATE TABLE usage_hours (
  at INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (at, group_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_days (
  at INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (at, group_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE total_hours (
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (kind, at, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE total_days (
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  name TEXT NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (kind, at, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE kept_answers (
  id TEXT PRIMARY KEY,
  key_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  mark TEXT NOT NULL,
  until INTEGER NOT NULL,
  done INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  answer BLOB
) STRICT;
CREATE INDEX kept_answers_until ON kept_answers (until);
CREATE INDEX kept_answers_key ON kept_answers (key_id, until);

CREATE TABLE kept_answer_sums (
  key_id TEXT PRIMARY KEY,
  answers INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE kept_contents (
  id TEXT PRIMARY KEY,
  key_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL
) STRICT;
CREATE INDEX kept_contents_time ON kept_contents (started_at, bytes);
CREATE INDEX kept_contents_key ON kept_contents (key_id, started_at, bytes);

CREATE TABLE forgotten_contents (
  key_id TEXT PRIMARY KEY,
  before INTEGER NOT NULL
) STRICT;

-- Ids begin with their time: rows and entries of both indexes by ids are added at an end, whatever their key.
CREATE TABLE kept_responses (
  id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  previous TEXT,
  kept_at INTEGER NOT NULL,
  until INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  items TEXT NOT NULL,
  response BLOB NOT NULL,
  PRIMARY KEY (id, key_id)
) STRICT;
CREATE INDEX kept_responses_until ON kept_responses (until, bytes);
CREATE INDEX kept_responses_key ON kept_responses (key_id, until, bytes);

CREATE TABLE kept_response_items (
  item_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  response_id TEXT NOT NULL,
  PRIMARY KEY (item_id, key_id, response_id)
) STRICT, WITHOUT ROWID;
-- An index of items by their responses would have to be written for each response; what a response lists is enough.
CREATE TRIGGER kept_responses_gone AFTER DELETE ON kept_responses BEGIN
  DELETE FROM kept_response_items WHERE key_id = OLD.key_id AND response_id = OLD.id
    AND item_id IN (SELECT value FROM json_each('["' || replace(OLD.items, ',', '","') || '"]'));
END;

CREATE TABLE people (
  ${columnsOf(personTable)},
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  ${columnsOf(sessionTable)},
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_person ON sessions (person);

PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion};
`;

/**
 * Makes the tables where there are none, in one transaction with their version.
 * @throws StoreError `newer_schema`, `older_schema`, or `corrupt` (a database that is not ours).
 */
function prepareSchema(db: DatabaseSync, path: string): void {
  if (readPragma(db, 'PRAGMA schema_version') > 0) return requireOwnSchema(db, path);
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(schema);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** @throws StoreError `corrupt`, `newer_schema`, `older_schema` */
function requireOwnSchema(db: DatabaseSync, path: string): void {
  if (readPragma(db, 'PRAGMA application_id') !== applicationId) throw corrupt(path);
  requireSchemaVersion(readPragma(db, 'PRAGMA user_version'), path);
}

function readPragma(db: DatabaseSync, pragma: string): number {
  const row = db.prepare(pragma).get();
  const [value] = Object.values(row ?? {});
  return typeof value === 'number' ? value : 0;
}
