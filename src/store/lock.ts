/**
 * One gateway on one data directory (F87). The lock is the operating system's, taken through SQLite:
 * it ends with the process that held it, however that died, so there is no stale lock to judge and no
 * race between two that judge it. The pid stands in a second file, only to be named in the message:
 * reading the lock file itself would drop the lock (POSIX locks end with any close of the file).
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { prepareDataDir } from './data-dir.ts';
import { createPrivateFile } from './private-file.ts';
import { StoreError } from './store-error.ts';
import { isBusy } from './sqlite-failure.ts';

/** A database that nobody refers to is collected, and its lock ends with it. */
const held = new Set<DatabaseSync>();

export interface DataDirLock {
  /** Gives the directory free; a second call does nothing. */
  release(): void;
}

/**
 * Takes the data directory for this process, making it where there is none.
 * @throws StoreError `in_use` when another process (or this one) holds it.
 */
export function lockDataDir(dir: string): DataDirLock {
  prepareDataDir(dir);
  const pidFile = join(dir, 'gateway.pid');
  const lock = takeLock(dir, pidFile);
  held.add(lock);
  rmSync(pidFile, { force: true });
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  return {
    release(): void {
      if (!held.delete(lock)) return;
      rmSync(pidFile, { force: true });
      lock.close();
    },
  };
}

function takeLock(dir: string, pidFile: string): DatabaseSync {
  const path = join(dir, 'gateway.lock');
  createPrivateFile(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (cause) {
    lock.close();
    if (!isBusy(cause)) throw new StoreError('failed', `${path} cannot be locked.`, cause);
    throw new StoreError(
      'in_use',
      `Another gateway (pid ${readPid(pidFile)}) runs on ${dir}. Stop it, or choose another data directory.`,
      cause,
    );
  }
}

function readPid(pidFile: string): string {
  try {
    const text = readFileSync(pidFile, 'utf8').trim();
    return /^\d{1,10}$/.test(text) ? text : 'unknown';
  } catch {
    return 'unknown';
  }
}
