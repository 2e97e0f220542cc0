import { rmSync } from 'node:fs';

/**
 * Removes a folder and all that is in it. A process or a thread that ends may still write there, as Node does with its
 * cache of compiled code: the removal is tried again then.
 */
export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
