/** SQLite's result codes as kinds of failure (sqlite.org/rescode.html; primary codes, low byte). */
import { StoreError, type StoreFailure } from '../store-error.ts';

const kindOfCode: ReadonlyMap<number, StoreFailure> = new Map<number, StoreFailure>([
  [5, 'busy'], // SQLITE_BUSY
  [6, 'busy'], // SQLITE_LOCKED
  [8, 'full'], // SQLITE_READONLY
  [10, 'full'], // SQLITE_IOERR
  [11, 'corrupt'], // SQLITE_CORRUPT
  [13, 'full'], // SQLITE_FULL
  [14, 'full'], // SQLITE_CANTOPEN
  [18, 'refused'], // SQLITE_TOOBIG
  [19, 'refused'], // SQLITE_CONSTRAINT
  [20, 'refused'], // SQLITE_MISMATCH
  [25, 'refused'], // SQLITE_RANGE
  [26, 'corrupt'], // SQLITE_NOTADB
]);

/** Of values that are none of SQLite's, before it is asked. */
const unfitValue = /^ERR_(?:INVALID_ARG_TYPE|INVALID_ARG_VALUE|OUT_OF_RANGE)$/;

/** Any thrown value as a StoreError that names the database file. */
export function asStoreError(thrown: unknown, path: string): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const kind = kindOfCode.get(primaryCode(thrown)) ?? (isUnfit(thrown) ? 'refused' : 'failed');
  if (kind === 'corrupt') return corrupt(path, thrown);
  const text = thrown instanceof Error ? thrown.message : 'unknown failure';
  return new StoreError(kind, `${path}: ${text}`, thrown);
}

/** The refusal of F86: names the file and the way out; nothing is ever re-created silently. */
export function corrupt(path: string, cause?: unknown): StoreError {
  return new StoreError(
    'corrupt',
    `${path} is damaged or not a gateway database. It is left as it is: restore it from a backup, ` +
      'or move it (with its -wal and -shm files) away to begin with an empty store and no keys.',
    cause,
  );
}

export function isBusy(thrown: unknown): boolean {
  return kindOfCode.get(primaryCode(thrown)) === 'busy';
}

function isUnfit(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && unfitValue.test(String(thrown.code));
}

function primaryCode(thrown: unknown): number {
  if (!(thrown instanceof Error) || !('errcode' in thrown)) return -1;
  return typeof thrown.errcode === 'number' ? thrown.errcode & 0xff : -1;
}
