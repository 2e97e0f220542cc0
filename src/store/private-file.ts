import { chmodSync, closeSync, openSync, statSync } from 'node:fs';

const othersMayDoAnything = 0o077;

/** Makes an empty file (0600) where there is none, and closes one of ours to others (S25). */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!isExisting(error)) throw error;
    closeToOthers(path);
  }
}

/** Takes the permissions of all others away. */
export function closeToOthers(path: string): void {
  if (process.platform === 'win32') return;
  if ((statSync(path).mode & othersMayDoAnything) !== 0) chmodSync(path, 0o600);
}

function isExisting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST';
}
