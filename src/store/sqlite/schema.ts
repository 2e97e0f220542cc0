/**
 * The tables in SQLite. STRICT: a column holds what it says or the write fails. Times are ms since the epoch; a
 * NULL count is unknown, never 0; lists and policies stand as JSON text.
 */
import type { DatabaseSync } from 'node:sqlite';
import { attemptTable, callTable, sumTable } from '../call-rows.ts';
import type { Column, ColumnType } from '../columns.ts';
import { auditTable, keyTable } from '../key-rows.ts';
import { requireSchemaVersion, schemaVersion } from '../schema.ts';
import { corrupt } from './failure.ts';

/** In `application_id`: tells our databases from other SQLite files ("MGWY"). */
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
  tags TEXT NOT NULL,
  UNIQUE (key_id, team, model, provider, tags)
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

CREATE TABLE kept_responses (
  key_id TEXT NOT NULL,
  id TEXT NOT NULL,
  previous TEXT,
  kept_at INTEGER NOT NULL,
  until INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  response BLOB NOT NULL,
  PRIMARY KEY (key_id, id)
) STRICT;
CREATE INDEX kept_responses_until ON kept_responses (until, bytes);
CREATE INDEX kept_responses_key ON kept_responses (key_id, until, bytes);

CREATE TABLE kept_response_items (
  key_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  response_id TEXT NOT NULL,
  PRIMARY KEY (key_id, item_id, response_id),
  FOREIGN KEY (key_id, response_id) REFERENCES kept_responses ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_response_items_of ON kept_response_items (key_id, response_id);

PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion};
`;

/**
 * Makes the tables where there are none, in one transaction with their version.
 * @throws StoreError `newer_schema`, `older_schema`, or `corrupt` (a database that is not ours).
 */
export function prepareSchema(db: DatabaseSync, path: string): void {
  if (readPragma(db, 'PRAGMA schema_version') > 0) {
    if (readPragma(db, 'PRAGMA application_id') !== applicationId) throw corrupt(path);
    requireSchemaVersion(readPragma(db, 'PRAGMA user_version'), path);
    return;
  }
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(schema);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function readPragma(db: DatabaseSync, pragma: string): number {
  const row = db.prepare(pragma).get();
  const [value] = Object.values(row ?? {});
  return typeof value === 'number' ? value : 0;
}
