/** Secrets as they are kept: SHA-256, enough for 256 random bits (S2). */
import { hash, timingSafeEqual } from 'node:crypto';

/** By way of a string: a buffer of its own from OpenSSL takes memory that the collector is to find, and twice as long. */
export function digestOf(secret: string): Buffer {
  return Buffer.from(hash('sha256', secret, 'binary'), 'binary');
}

/** Compares two digests in constant time (S3). */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Compared with when there is nothing to compare with, so that an unknown id costs the same. */
export const nobodysDigest: Buffer = Buffer.alloc(32);

/** Of secrets that people choose: a word is no secret, its hash is in every table. */
export const leastSecretLength = 16;

/**
 * Checks a secret that a person chose for a header (an environment variable).
 * @throws Error that names the variable, never the value.
 */
export function requireUsableSecret(name: string, secret: string): void {
  if (secret.length < leastSecretLength) {
    throw new Error(`${name} must have at least ${leastSecretLength} characters.`);
  }
  if (!/^[\x21-\x7e]+$/.test(secret)) {
    throw new Error(`${name} may hold only visible ASCII characters, without spaces.`);
  }
}
