/**
 * What a call said as a store holds it: packed, and sealed with a key that stands in no store, so that a
 * stolen database or backup shows no word of it (T6).
 */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ContentKey } from '../../access/content-key.ts';
import type { Clock } from '../../core/runtime.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { JsonObject } from '../../json/value.ts';
import type { ContentStore } from '../../store/contents.ts';
import type { KeptContent } from './seen-call.ts';

/** Of what is sealed; another form would have another number. */
const version = 1;
/** Tells with which key it was sealed, and nothing of the key. */
const markBytes = 4;
const ivBytes = 12;
const tagBytes = 16;
const headBytes = 1 + markBytes + ivBytes + tagBytes;
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
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  cipher.setAAD(boundTo(place));
  const packed = deflateRawSync(JSON.stringify(content));
  const parts = [cipher.update(packed), cipher.final()];
  return Buffer.concat([Buffer.of(version), markOf(key), iv, cipher.getAuthTag(), ...parts]);
}

/** @param key undefined where there is none: then nothing opens. */
export function openContent(
  sealed: Uint8Array,
  place: ContentPlace,
  key: Uint8Array | undefined,
): OpenedContent {
  if (sealed.length < headBytes || sealed[0] !== version) return 'unreadable';
  const mark = sealed.subarray(1, 1 + markBytes);
  if (key === undefined || !markOf(key).equals(mark)) return 'other key';
  const ivAt = 1 + markBytes;
  const tagAt = ivAt + ivBytes;
  const cipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(ivAt, tagAt), {
    authTagLength: tagBytes,
  });
  cipher.setAAD(boundTo(place));
  cipher.setAuthTag(sealed.subarray(tagAt, headBytes));
  try {
    const packed = Buffer.concat([cipher.update(sealed.subarray(headBytes)), cipher.final()]);
    const text = inflateRawSync(packed, { maxOutputLength: maxOpenedBytes }).toString('utf8');
    return tryParseObject(text) ?? 'unreadable';
  } catch {
    // The seal does not fit: what was decrypted means nothing.
    return 'unreadable';
  }
}

function boundTo({ id, keyId }: ContentPlace): Buffer {
  return Buffer.from(`content ${keyId} ${id}`);
}

function markOf(key: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from('content key mark\n'), key]), 'buffer').subarray(
    0,
    markBytes,
  );
}

// What was kept of calls, for whoever may enter the admin plane.

/** `absent`: never kept, removed since, or lost. `locked`: sealed with a key that is not here. */
export type FoundContent =
  | { readonly state: 'kept'; readonly content: JsonObject }
  | { readonly state: 'absent' | 'locked' | 'unreadable' };

interface LoggedContentsParts {
  readonly store: ContentStore;
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
