/**
 * One gateway on one data directory (F87). The pid stands in a second file, only to be named in the
 * message: reading the lock file itself would drop the lock.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepareDataDir } from './data-dir.ts';
import { lockFile, type FileLock } from './file-lock.ts';
import { StoreError } from './store-error.ts';

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
  rmSync(pidFile, { force: true });
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  return {
    release(): void {
      // The file goes first: once the lock is free the next gateway writes its own.
      if (!lock.isHeld()) return;
      rmSync(pidFile, { force: true });
      lock.release();
    },
  };
}

function takeLock(dir: string, pidFile: string): FileLock {
  try {
    return lockFile(join(dir, 'gateway.lock'));
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'in_use') throw error;
    throw new StoreError(
      'in_use',
      `Another gateway (pid ${readPid(pidFile)}) runs on ${dir}. Stop it, or choose another data directory.`,
      error,
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
