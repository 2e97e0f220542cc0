/**
 * The format of a key (S1): `gw_` + 8 characters public id + `_` + 256 random bits in base62 + CRC-32 of all
 * before it in base62. The id finds the record, the checksum rejects junk without a lookup, and the prefix lets
 * secret scanners recognise a leaked key.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { Secret } from '../../core/secret.ts';

/** Returns `count` random bytes from a generator fit for secrets. */
export type RandomBytes = (count: number) => Uint8Array;

const prefix = 'gw_';
const idLength = 8;
const secretBytes = 32;
/** 62^43 > 2^256, so that every secret has the same length. */
const secretLength = 43;
const checksumLength = 6;
const keyLength = prefix.length + idLength + 1 + secretLength + checksumLength;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const inAlphabet = new Uint8Array(128);
for (const character of alphabet) inAlphabet[character.charCodeAt(0)] = 1;

/** A new key with its public id. */
export function makeKey(random: RandomBytes): { readonly id: string; readonly key: Secret } {
  // Bytes from 248 on are discarded: 256 is not a multiple of 62, so some letters would be more frequent.
  let id = '';
  while (id.length < idLength) {
    for (const byte of random(idLength)) {
      if (byte < 248 && id.length < idLength) id += alphabet.charAt(byte % 62);
    }
  }
  return { id, key: makeKeyOf(id, random) };
}

/** Another key with the same public id (S5). */
export function makeKeyOf(id: string, random: RandomBytes): Secret {
  const body = `${prefix}${id}_${randomSecret(random)}`;
  return new Secret(body + checksum(body));
}

/** The public id of a well-formed key; undefined for anything else. No lookup. */
export function readKey(text: string): { readonly id: string } | undefined {
  if (text.length !== keyLength || !text.startsWith(prefix)) return undefined;
  const idEnd = prefix.length + idLength;
  if (text[idEnd] !== '_') return undefined;
  const end = text.length - checksumLength;
  if (!isBase62(text, prefix.length, idEnd) || !isBase62(text, idEnd + 1, text.length)) {
    return undefined;
  }
  if (checksum(text.slice(0, end)) !== text.slice(end)) return undefined;
  return { id: text.slice(prefix.length, idEnd) };
}

/** A secret that is not a key of the data plane: different prefix, same strength and checksum. */
export function makeToken(tokenPrefix: string, random: RandomBytes): Secret {
  const body = `${tokenPrefix}_${randomSecret(random)}`;
  return new Secret(body + checksum(body));
}

function randomSecret(random: RandomBytes): string {
  let value = 0n;
  for (const byte of random(secretBytes)) value = (value << 8n) | BigInt(byte);
  return base62(value, secretLength);
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), checksumLength);
}

function base62(value: bigint, length: number): string {
  let rest = value;
  let text = '';
  for (let i = 0; i < length; i++) {
    text = alphabet.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  return text;
}

function isBase62(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if (inAlphabet[text.charCodeAt(i)] !== 1) return false;
  }
  return true;
}

// Stored secrets: SHA-256, which is enough for 256 random bits (S2).

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
export const dummyDigest: Buffer = Buffer.alloc(32);

/** Minimum length of secrets that people choose: hashes of words are in every table. */
export const minSecretLength = 16;

/**
 * Checks a secret from an environment variable that is sent in a header.
 * @throws Error that names the variable, never the value.
 */
export function requireUsableSecret(name: string, secret: string): void {
  if (secret.length < minSecretLength) {
    throw new Error(`${name} must have at least ${minSecretLength} characters.`);
  }
  if (!/^[\x21-\x7e]+$/.test(secret)) {
    throw new Error(`${name} may contain only visible ASCII characters, without spaces.`);
  }
}

/** Finds the key in the two headers that clients send it in. */

const scheme = 'bearer';

/**
 * The key that the client presented; '' for none or two different ones (B16: the gateway does not guess). An
 * empty header counts as absent, since some clients send an empty one next to the real one.
 */
export function presentedKey(
  authorization: string | undefined,
  xApiKey: string | undefined,
): string {
  const bearer = authorization === undefined ? '' : readBearer(authorization.trim());
  const key = xApiKey === undefined ? '' : xApiKey.trim();
  if (bearer === undefined) return '';
  if (bearer === '') return key;
  return key === '' || key === bearer ? bearer : '';
}

/** The credential of `Bearer KEY`; '' when there is none, undefined for another scheme. */
function readBearer(header: string): string | undefined {
  if (header === '') return '';
  if (header.slice(0, scheme.length).toLowerCase() !== scheme) return undefined;
  const rest = header.slice(scheme.length);
  if (rest === '') return '';
  return rest.startsWith(' ') || rest.startsWith('\t') ? rest.trimStart() : undefined;
}

// Estimates how hard a chosen secret is to guess. What it calls weak is weak.

/** Secrets below this many bits are refused: they are among the first guesses. */
export const minBits = 32;
/** Below this many bits the operator is warned; 16 random hexadecimal digits have more. */
export const goodBits = 50;

/** Common first guesses, alone and combined, and keyboard rows. */
const words =
  `password passwort passwd admin administrator root token secret gateway model default change
  changeme letmein welcome test testing example demo key api user login master local localhost
  qwertyuiop asdfghjkl zxcvbnm qwerty asdf`
    .split(/\s+/)
    .toSorted((a, b) => b.length - a.length);
const bitsOfWord = 8;
/** Bits of a character that follows from the ones before it. */
const bitsOfStep = 0.5;

/** Estimated bits of information, from words, sequences, repetitions and character classes. */
export function estimatedBits(secret: string): number {
  const lower = secret.toLowerCase();
  const own = Math.log2(kindsOf(secret));
  let bits = 0;
  let at = 0;
  while (at < lower.length) {
    const word = words.find((each) => lower.startsWith(each, at));
    const seen = word !== undefined && lower.slice(0, at).includes(word);
    if (word !== undefined) bits += seen ? bitsOfStep : bitsOfWord;
    else bits += followsFrom(lower, at) ? bitsOfStep : own;
    at += word?.length ?? 1;
  }
  return bits;
}

/** The third character of a sequence (`aaa`, `abc`, `321`), or the end of a repeated group of three. */
function followsFrom(text: string, at: number): boolean {
  if (at < 2) return false;
  const step = text.charCodeAt(at) - text.charCodeAt(at - 1);
  const before = text.charCodeAt(at - 1) - text.charCodeAt(at - 2);
  if (step === before && Math.abs(step) <= 1) return true;
  return text.slice(0, at).includes(text.slice(at - 2, at + 1));
}

function kindsOf(secret: string): number {
  const kinds = [
    [/[a-z]/, 26],
    [/[A-Z]/, 26],
    [/\d/, 10],
    [/[^A-Za-z0-9]/, 33],
  ] as const;
  return kinds.reduce((sum, [kind, size]) => (kind.test(secret) ? sum + size : sum), 0);
}

/** Advice for error messages. */
export const howToMake = 'Make one with: openssl rand -base64 32';

/**
 * Checks that a secret is not among the first guesses.
 * @throws Error that names the variable, never the value.
 */
export function requireNotGuessable(name: string, secret: string): void {
  if (estimatedBits(secret) >= minBits) return;
  throw new Error(
    `${name} is easy to guess: it consists of few characters, a sequence, a repetition or well-known words. ${howToMake}`,
  );
}
