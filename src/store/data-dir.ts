/** The data directory: private to its owner (S25). */
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { StoreError } from './store-error.ts';

const othersMayDoAnything = 0o077;
const sticky = 0o1000;

/**
 * Makes the directory (0700) where there is none and closes an open one of ours to others.
 * @throws StoreError `failed` when the path is no directory, belongs to somebody else and is open, or
 * is shared by design (the sticky bit: /tmp).
 */
export function prepareDataDir(dir: string): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const found = statSync(dir);
  if (!found.isDirectory()) throw new StoreError('failed', `${dir} is not a directory.`);
  if (process.platform === 'win32' || (found.mode & othersMayDoAnything) === 0) return;
  if ((found.mode & sticky) !== 0) {
    throw new StoreError(
      'failed',
      `${dir} is shared by all users of this machine; choose a directory inside it.`,
    );
  }
  try {
    chmodSync(dir, 0o700);
  } catch (cause) {
    throw new StoreError(
      'failed',
      `${dir} is open to other users and cannot be closed; choose a directory inside it.`,
      cause,
    );
  }
}
