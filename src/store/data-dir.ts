/** The data directory: private to its owner (S25), and of one gateway at a time (F87). */
import {
  chmodSync,
  closeSync,
  openSync,
  statSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ownerText } from '../core/owner.ts';
import { isBusy } from './sqlite/thread.ts';
import { StoreError } from './store-error.ts';

const othersMayDoAnything = 0o077;
const lockName = 'gateway.lock';

/** Makes an empty file (0600) where there is none, and closes one of ours to others (S25). */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    closeToOthers(path);
  }
}

/** Takes the permissions of all others away. */
export function closeToOthers(path: string): void {
  if (process.platform === 'win32') return;
  if ((statSync(path).mode & othersMayDoAnything) !== 0) chmodSync(path, 0o600);
}

const sticky = 0o1000;

/**
 * Creates the directory (0700) if missing, and closes an open one of ours to other users.
 * @throws StoreError `failed` when the path is not a directory, is open and belongs to another user, or is
 * shared by design (the sticky bit: /tmp).
 */
export function prepareDataDir(dir: string): void {
  makeDirectories(dir);
  const found = statSync(dir);
  if (!found.isDirectory()) throw new StoreError('failed', `${dir} is not a directory.`);
  if (process.platform === 'win32' || (found.mode & othersMayDoAnything) === 0) return;
  if ((found.mode & sticky) !== 0) {
    throw new StoreError('failed', `${dir} is shared by all users of this machine.`);
  }
  try {
    chmodSync(dir, 0o700);
  } catch (cause) {
    throw new StoreError(
      'failed',
      `${dir} is open to other users and cannot be closed${ownerText(ownerOf(dir))}.`,
      cause,
    );
  }
}

/**
 * Makes a directory (0700) with those around it that are missing. Node's own recursive mkdir never returns where the
 * system answers ENOENT below a directory that exists, as in /proc.
 * @throws StoreError `failed` when one of them cannot be made.
 */
export function makeDirectories(dir: string): void {
  const missing: string[] = [];
  for (let path = dir; statSync(path, { throwIfNoEntry: false }) === undefined;) {
    missing.unshift(path);
    if (path === dirname(path)) break;
    path = dirname(path);
  }
  for (const path of missing) {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (cause) {
      // Another process may have made it meanwhile.
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) continue;
      const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
      throw new StoreError('failed', `The directory ${path} cannot be made (${why}).`, cause);
    }
  }
}

/** An unreferenced database would be garbage-collected, which releases its lock. */
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
    const why = cause instanceof Error ? cause.message : 'unknown failure';
    throw new StoreError('failed', `${path} cannot be locked (${why}).`, cause);
  }
  held.add(lock);
  return {
    isHeld: () => held.has(lock),
    release: () => {
      if (held.delete(lock)) lock.close();
    },
  };
}

export interface DataDirLock {
  /** Gives the directory free; a second call does nothing. */
  release(): void;
  /** The same of a start that failed before it showed or served anything: a directory that it made goes away. */
  abandon(): void;
}

/**
 * Takes the data directory for this process, making it where there is none.
 * @param withFlag how a person names another directory; a command that takes it as an argument has no flag
 * @throws StoreError `in_use` when another process (or this one) holds it.
 */
export function lockDataDir(dir: string, withFlag = ' with --data-dir DIR'): DataDirLock {
  const pidFile = join(dir, 'gateway.pid');
  const isNew = statSync(dir, { throwIfNoEntry: false }) === undefined;
  const lock = withAdvice(dir, withFlag, () => {
    prepareDataDir(dir);
    const taken = takeLock(dir, pidFile, withFlag);
    rmSync(pidFile, { force: true });
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
    return taken;
  });
  const leave = (own: readonly string[]): void => {
    // The file goes first: once the lock is free the next gateway writes its own.
    if (!lock.isHeld()) return;
    rmSync(pidFile, { force: true });
    if (isNew) removeUnused(dir, own);
    lock.release();
  };
  return { release: () => leave(ofLock), abandon: () => leave([...ofLock, ...ofStart]) };
}

const ofLock = [lockName, `${lockName}-journal`];
/** What a start writes before it serves. */
const ofStart = ['gateway.db', 'gateway.db-wal', 'gateway.db-shm', 'audit.head'];

/** A directory with nothing else than these files. The lock is held meanwhile. */
function removeUnused(dir: string, own: readonly string[]): void {
  try {
    if (readdirSync(dir).some((name) => !own.includes(name))) return;
    for (const name of own) rmSync(join(dir, name), { force: true });
    rmdirSync(dir);
  } catch {
    // It is gone already, or another process wrote into it meanwhile.
  }
}

/** Says of a directory that cannot be used whose it is and what to do. */
function withAdvice(dir: string, withFlag: string, take: () => FileLock): FileLock {
  try {
    return take();
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'in_use') throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const what =
      error instanceof StoreError
        ? error.message
        : `The data directory ${dir} cannot be used (${code})${ownerText(ownerOf(dir))}.`;
    const advice = `Choose a directory of your own${withFlag}.`;
    throw new StoreError('failed', `${what} ${advice}`, error);
  }
}

function ownerOf(dir: string): number | undefined {
  return statSync(dir, { throwIfNoEntry: false })?.uid;
}

function takeLock(dir: string, pidFile: string, withFlag: string): FileLock {
  try {
    return lockFile(join(dir, lockName));
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'in_use') throw error;
    throw new StoreError(
      'in_use',
      `Another gateway (pid ${readPid(pidFile)}) runs on ${dir}. Stop it, or choose another data directory${withFlag}.`,
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
