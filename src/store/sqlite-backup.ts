/** A complete copy of the database while it is written to. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { createPrivateFile } from './private-file.ts';
import { StoreError } from './store-error.ts';

/**
 * Copies what is committed at this moment; the copy gets its name when it is complete and on the disk.
 * It can be put in the place of `gateway.db` as it is.
 * @throws StoreError `failed` when something has this name already.
 */
export function writeCopy(db: DatabaseSync, path: string): void {
  if (existsSync(path)) {
    throw new StoreError(
      'failed',
      `${path} exists already; a backup never overwrites. Choose another name.`,
    );
  }
  const unfinished = `${path}.unfinished`;
  rmSync(unfinished, { force: true });
  try {
    createPrivateFile(unfinished);
    db.prepare('VACUUM INTO ?').run(unfinished);
    sync(unfinished);
    renameSync(unfinished, path);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    const why = cause instanceof Error ? cause.message : 'unknown failure';
    throw new StoreError('failed', `The backup cannot be written to ${path}: ${why}`, cause);
  }
}

function sync(path: string): void {
  const file = openSync(path, 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
