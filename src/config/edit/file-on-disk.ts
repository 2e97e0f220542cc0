/** The config file on disk: whether it may be written, and how it is replaced in one step. */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { reason } from '../config-file.ts';

/** Larger files are edited where they are. */
export const maxFileBytes = 256 * 1024;

export interface FileOnDisk {
  /** Where links lead to. */
  readonly path: string;
  readonly bytes: Buffer;
  readonly text: string;
  readonly stat: Stats;
}

/** @returns why it cannot be edited, where it cannot even be shown */
export function readFileOnDisk(path: string): FileOnDisk | { readonly problem: string } {
  try {
    const real = realpathSync(path);
    const stat = statSync(real);
    if (!stat.isFile()) return { problem: 'it is not a regular file' };
    if (stat.size > maxFileBytes)
      return { problem: `it is larger than ${maxFileBytes / 1024} KiB` };
    const bytes = readFileSync(real);
    return { path: real, bytes, text: utf8.decode(bytes), stat };
  } catch (error) {
    const why =
      error instanceof TypeError ? 'it is not UTF-8' : `it cannot be read (${reason(error)})`;
    return { problem: why };
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Why this process may not replace the file; undefined: it may. */
export function whyReadOnly({ path, stat }: FileOnDisk): string | undefined {
  if (path.split(sep).some((part) => part.startsWith('..'))) {
    return 'it is mounted from a ConfigMap or Secret';
  }
  const folder = dirname(path);
  // Root may write everything: the modes say what is meant.
  if ((stat.mode & 0o222) === 0) return 'its mode allows no writing';
  if ((statSync(folder).mode & 0o222) === 0) return 'the mode of its folder allows no writing';
  const own = process.geteuid?.();
  if (own !== undefined && own !== 0 && own !== stat.uid) {
    return `it belongs to user ${stat.uid}, and the gateway runs as user ${own}`;
  }
  try {
    accessSync(path, constants.W_OK);
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `the gateway may not write it (${reason(error)})`;
  }
}

/**
 * Replaces the file in one step: readers see the old or the new bytes. Owner and mode stay.
 * @throws the file system's error; the file is as it was then
 */
export function replaceFile({ path, stat }: FileOnDisk, bytes: Uint8Array): void {
  put(path, bytes, stat);
}

/** Writes the bytes of the file to `NAME.bak`, over an older copy. @returns its path @throws the file system's error */
export function backUpFile({ path, bytes, stat }: FileOnDisk): string {
  const backup = `${path}.bak`;
  put(backup, bytes, stat);
  return backup;
}

function put(path: string, bytes: Uint8Array, { mode, uid, gid }: Stats): void {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomUUID()}.new`);
  const file = openSync(unfinished, 'wx', 0o600);
  try {
    try {
      writeFileSync(file, bytes);
      fchownSync(file, uid, gid);
      fchmodSync(file, mode & 0o7777);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** Not every system can; the file is whole in any case. */
function syncFolder(folder: string): void {
  try {
    const opened = openSync(folder, 'r');
    try {
      fsyncSync(opened);
    } finally {
      closeSync(opened);
    }
  } catch {
    // Then the rename becomes durable a little later.
  }
}
