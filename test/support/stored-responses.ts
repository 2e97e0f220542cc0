/** Kept responses for tests: in memory, with a store and a key that the test holds. */
import { randomBytes } from 'node:crypto';
import { StoredResponses } from '../../src/features/stored-responses/stored-responses.ts';
import type { Log } from '../../src/core/runtime.ts';
import { later } from '../../src/observe/runtime.ts';
import type { ResponseStore } from '../../src/store/sealed.ts';
import { memoryStore } from './memory-store.ts';

const nothing = (): void => undefined;
export const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const contentKey = Buffer.alloc(32, 9);

interface StoredOptions {
  readonly store?: ResponseStore;
  readonly contentKey?: () => Uint8Array | undefined;
  readonly log?: Log;
  readonly keepMs?: number;
}

export function storedResponses(options: StoredOptions = {}): StoredResponses {
  return new StoredResponses({
    store: options.store ?? memoryStore().responses,
    contentKey: options.contentKey ?? ((): Uint8Array => contentKey),
    log: options.log ?? silent,
    later,
    random: (count) => randomBytes(count),
    settings: () => ({ store: 'on', keepMs: options.keepMs ?? 3_600_000, totalBytes: 1e9 }),
    manyStored: nothing,
  });
}
