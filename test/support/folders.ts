import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

/**
 * Makes a folder `gw-NAME-XXXXXX` below the system's folder for temporary files. It is removed when this process ends.
 *
 * A hook is too early: node:test runs `after` hooks in the order in which they were given. A hook that removes a folder
 * runs before one, given later, that stops the gateway on that folder. Its removal fails while the gateway writes
 * there, and the hooks after it do not run.
 * @param name what a person who finds the folder should read
 */
export function temporaryFolder(name: string): string {
  const path = mkdtempSync(join(tmpdir(), `gw-${name}-`));
  if (made.length === 0) process.once('exit', removeMade);
  made.push(path);
  return path;
}

function removeMade(): void {
  for (const path of made) {
    try {
      removeFolder(path);
    } catch (error) {
      // Other listeners for the exit must run: they end the processes that still write there.
      process.stderr.write(`not removed: ${path}: ${String(error)}\n`);
    }
  }
}

/**
 * Removes a folder and all that is in it: for folders too large to keep until the process ends. A process or a thread
 * that ends may still write there, as Node does with its cache of compiled code: the removal is tried again then.
 */
export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
