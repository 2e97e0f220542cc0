/** Opens the database file: makes a new one in one step, and never writes over what it cannot read. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { migrate } from './migrate.ts';
import { closeToOthers, createPrivateFile } from './private-file.ts';
import { asStoreError, corrupt } from './sqlite-failure.ts';
import type { Durability } from './sqlite-protocol.ts';
import { StoreError } from './store-error.ts';

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
 * @throws StoreError `corrupt`, `newer_schema`, `busy`, `full`, `gone`.
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
      migrate(db, path);
      db.exec(settings);
      if (durability === 'full') db.exec('PRAGMA synchronous = FULL;');
    });
  } catch (error) {
    throw asStoreError(error, path);
  }
}

/** Opens an existing database for queries only, beside the writer. */
export function openForReading(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  } catch (error) {
    throw asStoreError(error, path);
  }
}

function createDatabase(path: string): void {
  // A write-ahead log without its database is all that is left of one: that is no fresh start.
  if (existsSync(`${path}-wal`)) throw corrupt(path);
  const unfinished = `${path}.new`;
  rmSync(unfinished, { force: true });
  rmSync(`${unfinished}-journal`, { force: true });
  createPrivateFile(unfinished);
  usable(unfinished, (db) => migrate(db, path)).close();
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
