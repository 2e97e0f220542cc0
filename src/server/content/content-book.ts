/** What was kept of calls, for whoever may enter the admin plane. */
import type { ContentKey } from '../../access/content-key.ts';
import type { Clock } from '../../core/runtime.ts';
import type { JsonObject } from '../../core/conversation.ts';
import type { ContentStore } from '../../store/contents.ts';
import { openContent } from './sealed-content.ts';

/** `absent`: never kept, removed since, or lost. `locked`: sealed with a key that is not here. */
export type FoundContent =
  | { readonly state: 'kept'; readonly content: JsonObject }
  | { readonly state: 'absent' | 'locked' | 'unreadable' };

export interface ContentBookParts {
  readonly store: ContentStore;
  readonly key: Pick<ContentKey, 'find'>;
  readonly clock: Pick<Clock, 'wall'>;
}

const batchRows = 500;

export class ContentBook {
  readonly #parts: ContentBookParts;

  constructor(parts: ContentBookParts) {
    this.#parts = parts;
  }

  /** @param id of the call. @throws StoreError */
  async find(id: string): Promise<FoundContent> {
    const { store, key } = this.#parts;
    const found = await store.find(id);
    if (found === undefined) return { state: 'absent' };
    const opened = openContent(found.sealed, found, key.find());
    if (opened === 'other key') return { state: 'locked' };
    return opened === 'unreadable' ? { state: opened } : { state: 'kept', content: opened };
  }

  /** Removes what was kept of a key's calls; of those that run nothing will be. @returns of how many. @throws StoreError */
  async removeOf(keyId: string): Promise<number> {
    const { store, clock } = this.#parts;
    await store.forget(keyId, clock.wall() + 1);
    let removed = 0;
    for (;;) {
      const { rows } = await store.remove({ keyId }, batchRows);
      if (rows === 0) return removed;
      removed += rows;
    }
  }
}
