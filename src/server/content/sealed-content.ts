/**
 * What a call said as a store holds it: packed, and sealed with a key that stands in no store, so that a
 * stolen database or backup shows no word of it (T6).
 */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { tryParseObject } from '../../core/json.ts';
import type { JsonObject } from '../../core/conversation.ts';
import type { KeptContent } from './seen-call.ts';

/** Of what is sealed; another form would have another number. */
const version = 1;
/** Tells with which key it was sealed, and nothing of the key. */
const markBytes = 4;
const ivBytes = 12;
const tagBytes = 16;
const headBytes = 1 + markBytes + ivBytes + tagBytes;
/** Nothing that is kept comes near it. */
const mostOpened = 64 * 1024 * 1024;

/** What a sealed content is bound to: moved to another call or key it does not open. */
export interface ContentPlace {
  readonly id: string;
  readonly keyId: string;
}

export type OpenedContent = JsonObject | 'other key' | 'unreadable';

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
    const text = inflateRawSync(packed, { maxOutputLength: mostOpened }).toString('utf8');
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
