/** Brings a database to the schema that this program knows. */
import type { DatabaseSync } from 'node:sqlite';
import { keysAndCalls } from './migrations/0001-keys-and-calls.ts';
import { strictKeys } from './migrations/0002-strict-keys.ts';
import { policiesAndAudit } from './migrations/0003-policies-and-audit.ts';
import { ledger } from './migrations/0004-ledger.ts';
import { attemptCredential } from './migrations/0005-attempt-credential.ts';
import { keptAnswers } from './migrations/0006-kept-answers.ts';
import { pieceCounts } from './migrations/0007-pieces.ts';
import { keptContents } from './migrations/0008-kept-contents.ts';
import { forgottenContents } from './migrations/0009-forgotten-contents.ts';
import { corrupt } from './sqlite-failure.ts';
import { StoreError } from './store-error.ts';

/** In `application_id`: tells our databases from other SQLite files ("MGWY"). */
const applicationId = 0x4d475759;

interface Migration {
  readonly version: number;
  readonly sql: string;
}

/** The version is part of the migration's own text, so that step and record are one (N2). */
const migrations: readonly Migration[] = [
  {
    version: 1,
    sql: `${keysAndCalls} PRAGMA application_id = 0x4d475759; PRAGMA user_version = 1;`,
  },
  { version: 2, sql: `${strictKeys} PRAGMA user_version = 2;` },
  { version: 3, sql: `${policiesAndAudit} PRAGMA user_version = 3;` },
  { version: 4, sql: `${ledger} PRAGMA user_version = 4;` },
  { version: 5, sql: `${attemptCredential} PRAGMA user_version = 5;` },
  { version: 6, sql: `${keptAnswers} PRAGMA user_version = 6;` },
  { version: 7, sql: `${pieceCounts} PRAGMA user_version = 7;` },
  { version: 8, sql: `${keptContents} PRAGMA user_version = 8;` },
  { version: 9, sql: `${forgottenContents} PRAGMA user_version = 9;` },
];

const newestSchema = migrations.length;

/**
 * Applies what is missing, each migration in one transaction with its version.
 * @throws StoreError `newer_schema` or `corrupt` (a database that is not ours).
 */
export function migrate(db: DatabaseSync, path: string): void {
  const version = readPragma(db, 'PRAGMA user_version');
  if (version > newestSchema) {
    throw new StoreError(
      'newer_schema',
      `${path} has schema ${version}, written by a newer version; this one knows schemas up to ` +
        `${newestSchema}. Start the newer version, or restore a backup from before the upgrade.`,
    );
  }
  const identity = readPragma(db, 'PRAGMA application_id');
  const empty = readPragma(db, 'PRAGMA schema_version') === 0;
  if (!empty && identity !== applicationId) throw corrupt(path);
  for (const migration of migrations) {
    if (migration.version > version) applyOne(db, migration.sql);
  }
}

function applyOne(db: DatabaseSync, sql: string): void {
  db.exec('BEGIN EXCLUSIVE');
  try {
    db.exec(sql);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function readPragma(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === 'number' ? value : 0;
}
