/** What the suite's parts work on. */
import { afterEach, beforeEach } from 'node:test';
import type { Store } from '../../src/store/store.ts';

/** Opens an empty store. */
export type OpenStore = () => Promise<Store>;

/** A fresh store for each test of the surrounding `describe`. */
export function eachWith(open: OpenStore): { readonly store: Store } {
  let store: Store | undefined;
  beforeEach(async () => {
    store = await open();
  });
  afterEach(() => store?.close());
  return {
    get store(): Store {
      if (store === undefined) throw new Error('There is no store outside of a test.');
      return store;
    },
  };
}
