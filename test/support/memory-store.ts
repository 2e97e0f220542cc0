/** Stores for tests that need no file: SQLite in memory. */
import { overridden } from '../../src/store/remote.ts';
import { openMemoryStore } from '../../src/store/sqlite/memory-store.ts';
import type { Store, StoreParts } from '../../src/store/store.ts';

type Own = { readonly [P in keyof StoreParts]?: Partial<StoreParts[P]> };

/** A new store; answers and contents keep its time. */
export function memoryStore(
  clock = { now: () => performance.now(), wall: () => Date.now() },
): Store {
  return openMemoryStore(clock);
}

/** The store, with some methods done otherwise. */
export function altered(store: Store, { keys, calls, answers, contents, responses }: Own): Store {
  return {
    ...store,
    keys: keys === undefined ? store.keys : overridden(store.keys, keys),
    calls: calls === undefined ? store.calls : overridden(store.calls, calls),
    answers: answers === undefined ? store.answers : overridden(store.answers, answers),
    contents: contents === undefined ? store.contents : overridden(store.contents, contents),
    responses: responses === undefined ? store.responses : overridden(store.responses, responses),
  };
}
