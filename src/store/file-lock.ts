/**
 * A lock that is the operating system's, taken through SQLite: it ends with the process that held it,
 * however that died, so there is no stale lock to judge and no race between two that judge it. Nobody
 * else may open the lock file: POSIX locks end with any close of the file in the same process.
 */
import { DatabaseSync } from 'node:sqlite';
import { createPrivateFile } from './private-file.ts';
import { isBusy } from './sqlite-failure.ts';
import { StoreError } from './store-error.ts';

/** A database that nobody refers to is collected, and its lock ends with it. */
const held = new Set<DatabaseSync>();

export interface FileLock {
  isHeld(): boolean;
  /** A second call does nothing. */
  release(): void;
}

/**
 * Takes the lock, making its file where there is none.
 * @throws StoreError `in_use` when another process (or this one) holds it, `failed` when it cannot be taken.
 */
export function lockFile(path: string): FileLock {
  createPrivateFile(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    lock.close();
    if (isBusy(cause)) throw new StoreError('in_use', `${path} is locked.`, cause);
    throw new StoreError('failed', `${path} cannot be locked.`, cause);
  }
  held.add(lock);
  return {
    isHeld: () => held.has(lock),
    release: () => {
      if (held.delete(lock)) lock.close();
    },
  };
}
