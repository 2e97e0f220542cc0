/**
 * Records that travel through clients and come back: only the gateway can make one, and a changed one
 * is noticed. A record is not a secret; clients may read it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '../json/value.ts';
import { tryParseObject } from '../json/parse.ts';

/** Seals records and digests texts, with a key that all gateways of one store share. */
export interface Sealer {
  /** The same text for the same record each time: it stands in prompts that are cached. */
  seal(record: JsonObject): string;
  /** Undefined for what this gateway did not seal, or not like this. */
  open(sealed: string): JsonObject | undefined;
  /** A short keyed digest: 22 characters of base64url. */
  digest(text: string): string;
  /** 32 bytes, for another thread of this process. */
  key(): Uint8Array;
}

const sealPrefix = 'gw1.';
const macBytes = 16;

/** Whether a text claims to be a sealed record; true says nothing of its seal. */
export function isSealed(text: string | undefined): boolean {
  return text?.startsWith(sealPrefix) === true;
}

/** @param key 32 random bytes. */
export function createSealer(key: Uint8Array): Sealer {
  // What the digest is for goes first, so that a digest of a text is never a valid seal.
  const mac = (purpose: string, text: string): Buffer =>
    createHmac('sha256', key).update(`${purpose}\n${text}`).digest().subarray(0, macBytes);
  return {
    seal: (record) => {
      const payload = Buffer.from(JSON.stringify(record)).toString('base64url');
      return `${sealPrefix}${payload}.${mac('seal', payload).toString('base64url')}`;
    },
    open: (sealed) => {
      if (!isSealed(sealed)) return undefined;
      const dot = sealed.indexOf('.', sealPrefix.length);
      if (dot === -1) return undefined;
      const payload = sealed.slice(sealPrefix.length, dot);
      const given = Buffer.from(sealed.slice(dot + 1), 'base64url');
      const expected = mac('seal', payload);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      return tryParseObject(Buffer.from(payload, 'base64url').toString('utf8'));
    },
    key: () => key,
    digest: (text) => mac('digest', text).toString('base64url'),
  };
}
