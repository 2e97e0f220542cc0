/** Stored secrets: SHA-256, which is enough for 256 random bits (S2). */
import { hash, timingSafeEqual } from 'node:crypto';

/**
 * Through a string: a buffer allocated by OpenSSL is external memory for the collector, and takes twice as
 * long.
 */
export function digestOf(secret: string): Buffer {
  return Buffer.from(hash('sha256', secret, 'binary'), 'binary');
}

/** Compares two digests in constant time (S3). */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Compared if there is no digest to compare with, so that an unknown id costs the same. */
export const nobodysDigest: Buffer = Buffer.alloc(32);

/** Minimum length of secrets that people choose: hashes of words are in every table. */
export const leastSecretLength = 16;

/**
 * Checks a secret from an environment variable that is sent in a header.
 * @throws Error that names the variable, never the value.
 */
export function requireUsableSecret(name: string, secret: string): void {
  if (secret.length < leastSecretLength) {
    throw new Error(`${name} must have at least ${leastSecretLength} characters.`);
  }
  if (!/^[\x21-\x7e]+$/.test(secret)) {
    throw new Error(`${name} may contain only visible ASCII characters, without spaces.`);
  }
}
