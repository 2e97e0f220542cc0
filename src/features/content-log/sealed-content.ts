/**
 * What a call said as a store holds it: packed, and sealed with a key that stands in no store, so that a
 * stolen database or backup shows no word of it.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ContentKey } from '../../access/seal-key.ts';
import type { Clock } from '../../core/runtime.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { JsonObject } from '../../json/value.ts';
import type { StoreParts } from '../../store/store.ts';
import { openBytes, sealBytes, sealKey } from '../sealed-bytes.ts';
import type { KeptContent } from './seen-call.ts';

/** Nothing that is kept comes near it. */
const maxOpenedBytes = 64 * 1024 * 1024;

/** What a sealed content is bound to: moved to another call or key it does not open. */
interface ContentPlace {
  readonly id: string;
  readonly keyId: string;
}

type OpenedContent = JsonObject | 'other key' | 'unreadable';

/** @param key 32 bytes. @param iv 12 random bytes, other ones each time. */
export function sealContent(
  content: KeptContent,
  place: ContentPlace,
  { key, iv }: { readonly key: Uint8Array; readonly iv: Uint8Array },
): Buffer {
  const packed = deflateRawSync(JSON.stringify(content));
  return sealBytes(packed, boundTo(place), { key: sealKey(key), iv });
}

/** @param key undefined where there is none: then nothing opens. */
export function openContent(
  sealed: Uint8Array,
  place: ContentPlace,
  key: Uint8Array | undefined,
): OpenedContent {
  const packed = openBytes(sealed, boundTo(place), key && sealKey(key));
  if (typeof packed === 'string') return packed;
  try {
    const text = inflateRawSync(packed, { maxOutputLength: maxOpenedBytes }).toString('utf8');
    return tryParseObject(text) ?? 'unreadable';
  } catch {
    // It is not a packed text.
    return 'unreadable';
  }
}

function boundTo({ id, keyId }: ContentPlace): string {
  return `content ${keyId} ${id}`;
}

// The stored content of calls, for authenticated admin callers.

/** `absent`: never kept, removed since, or lost. `locked`: sealed with a key that is not here. */
export type FoundContent =
  | { readonly state: 'kept'; readonly content: JsonObject }
  | { readonly state: 'absent' | 'locked' | 'unreadable' };

interface LoggedContentsParts {
  readonly store: Pick<StoreParts, 'contents' | 'responses'>;
  readonly key: Pick<ContentKey, 'find'>;
  readonly clock: Pick<Clock, 'wall'>;
}

const batchRows = 500;

export class LoggedContents {
  readonly #parts: LoggedContentsParts;

  constructor(parts: LoggedContentsParts) {
    this.#parts = parts;
  }

  /** @param id of the call. @throws StoreError */
  async find(id: string): Promise<FoundContent> {
    const { store, key } = this.#parts;
    const found = await store.contents.find(id);
    if (found === undefined) return { state: 'absent' };
    const opened = openContent(found.sealed, found, key.find());
    if (opened === 'other key') return { state: 'locked' };
    return opened === 'unreadable' ? { state: opened } : { state: 'kept', content: opened };
  }

  /**
   * Removes what was kept of a key's calls, responses included; of those that run nothing will be.
   * @returns how many contents and responses
   * @throws StoreError
   */
  async removeOf(keyId: string): Promise<number> {
    const { store, clock } = this.#parts;
    await store.contents.forget(keyId, clock.wall() + 1);
    const contents = async (): Promise<number> =>
      (await store.contents.remove({ keyId }, batchRows)).rows;
    const responses = (): Promise<number> => store.responses.removeOf(keyId, batchRows);
    return (await removeAll(contents)) + (await removeAll(responses));
  }
}

async function removeAll(some: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await some();
    if (rows === 0) return removed;
    removed += rows;
  }
}
