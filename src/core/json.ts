/**
 * JSON at the door. Bodies are scanned before they are parsed (depth and token bombs cost seconds in
 * `JSON.parse`: reliability.md G11), and the scan remembers where the top-level values stand, so that
 * a relayed body is edited in its own bytes: `JSON.stringify(JSON.parse(x))` reorders integer-like
 * keys and loses digits, which breaks prompt caches.
 */
import { isUtf8 } from 'node:buffer';
import type { Json, JsonObject } from './conversation.ts';
import { digitsAtRisk, keepDigits, mayLoseDigits } from './exact-numbers.ts';
import { GatewayError, invalidRequest, type FieldPath } from './errors.ts';
import { locateJsonError } from './json-position.ts';

/** Where a top-level member stands in the bytes; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A parsed body that still knows its bytes. */
export interface JsonSource {
  readonly bytes: Buffer;
  readonly value: JsonObject;
  /** Value spans of the top-level keys. */
  readonly spans: ReadonlyMap<string, Span>;
  /** Offset just behind the opening brace, where a member can be inserted. */
  readonly bodyStart: number;
  /** False when a key stands twice anywhere: such bytes are never relayed as they are (B39). */
  readonly unambiguous: boolean;
}

export const maxDepth = 128;
export const maxTokens = 500_000;
const maxKeyLength = 1024;
/** Twins of keys are no fault as such in depth (B39), but so many are an attack (B38). */
const maxRepeatedKeys = 1000;

/** True for a JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
  );
}

/** `JSON.parse` for text that is not a client's body; undefined when it is not JSON. */
export function tryParse(text: string): Json | undefined {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

/** `JSON.parse`, but integers beyond 2^53 keep their digits. @throws SyntaxError */
function parseExactly(text: string): Json {
  if (mayLoseDigits(text)) return JSON.parse(text, keepDigits);
  const value: Json = JSON.parse(text);
  return value;
}

/**
 * JSON that the gateway's own statements and functions in a database made: its form is known, its
 * numbers are safe integers. @throws SyntaxError
 */
export function parseOwn<T>(text: string): T {
  const value: T = JSON.parse(text);
  return value;
}

/**
 * An event of a stream, undefined when it is no object. Its numbers are counts and indexes, and tool
 * arguments stand in it as text: the look for long numbers is spared here, for every chunk.
 */
export function tryParseEvent(text: string): JsonObject | undefined {
  try {
    const value: Json = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Parses text that must be an object; undefined when it is anything else. */
export function tryParseObject(text: string): JsonObject | undefined {
  const value = tryParse(text);
  return isObject(value) ? value : undefined;
}

/**
 * Parses a client's body.
 * @throws GatewayError `invalid_request` (empty, not UTF-8, not JSON, not an object, a repeated owned
 * key, a number beyond double range) or `too_large` (too deep, too many tokens).
 */
export function parseBody(received: Uint8Array, ownedKeys: ReadonlySet<string>): JsonSource {
  const bytes = withoutByteOrderMark(received);
  if (!isUtf8(bytes)) throw invalidRequest('The request body is not valid UTF-8.');
  const scan = scanBody(bytes);
  if (scan.empty) throw invalidRequest('The request body is empty; a JSON object is expected.');
  const value = parseText(bytes, scan.longNumbers);
  if (!isObject(value)) throw invalidRequest('The request body must be a JSON object.');
  for (const key of scan.repeated) {
    if (ownedKeys.has(key))
      throw invalidRequest(`The key "${key}" stands twice in the body.`, [key]);
  }
  const keys = countKeys(value, []);
  if (scan.colons - keys > maxRepeatedKeys) {
    throw invalidRequest('The request body repeats its keys too often.');
  }
  return {
    bytes,
    value,
    spans: scan.spans,
    bodyStart: scan.bodyStart,
    unambiguous: keys === scan.colons,
  };
}

/**
 * The body with some top-level members set, byte-identical elsewhere. A value is JSON text;
 * `undefined` leaves the member as it is. Ambiguous bodies are re-serialised instead.
 */
export function spliceMembers(
  source: JsonSource,
  members: { readonly [key: string]: string | undefined },
): Buffer {
  const wanted = Object.entries(members).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  if (!source.unambiguous) {
    const edited = { ...source.value };
    for (const [key, text] of wanted) Object.defineProperty(edited, key, member(tryParse(text)));
    return Buffer.from(JSON.stringify(edited));
  }
  const edits = wanted.map(([key, text]) => {
    const span = source.spans.get(key);
    return span === undefined
      ? { start: source.bodyStart, end: source.bodyStart, text: insertion(source, key, text) }
      : { start: span.start, end: span.end, text };
  });
  edits.sort((a, b) => a.start - b.start);
  const pieces: Buffer[] = [];
  let position = 0;
  for (const edit of edits) {
    pieces.push(source.bytes.subarray(position, edit.start), Buffer.from(edit.text));
    position = edit.end;
  }
  pieces.push(source.bytes.subarray(position));
  return Buffer.concat(pieces);
}

function insertion(source: JsonSource, key: string, text: string): string {
  return `${JSON.stringify(key)}:${text}${source.spans.size === 0 ? '' : ','}`;
}

function member(value: Json | undefined): PropertyDescriptor {
  return { value, enumerable: true, writable: true, configurable: true };
}

function withoutByteOrderMark(received: Uint8Array): Buffer {
  const bytes = Buffer.isBuffer(received)
    ? received
    : Buffer.from(received.buffer, received.byteOffset, received.byteLength);
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return marked ? bytes.subarray(3) : bytes;
}

/** @param longNumbers the scan met a number of so many digits that a double may not hold it. */
function parseText(bytes: Buffer, longNumbers: boolean): Json {
  const text = bytes.toString('utf8');
  try {
    if (longNumbers) return JSON.parse(text, keepDigits);
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    // V8's message quotes the content, which may be a secret: only the position is told.
    const { line, column } = locateJsonError(text);
    throw invalidRequest(`The request body is not valid JSON (line ${line}, column ${column}).`);
  }
}

interface Scan {
  readonly empty: boolean;
  readonly spans: Map<string, Span>;
  readonly repeated: readonly string[];
  readonly colons: number;
  readonly bodyStart: number;
  readonly longNumbers: boolean;
}

const quote = 0x22;
const backslash = 0x5c;

/**
 * One pass over the bytes: depth, tokens, and the spans of the top-level members. One long function
 * because it runs for every byte of every body: a call per byte kind would double its cost.
 */
// oxlint-disable-next-line eslint/complexity, eslint/max-lines-per-function
function scanBody(bytes: Buffer): Scan {
  const spans = new Map<string, Span>();
  const repeated: string[] = [];
  const length = bytes.length;
  let depth = 0;
  let tokens = 0;
  let colons = 0;
  let bodyStart = 0;
  let empty = true;
  let longNumbers = false;
  let key: string | undefined;
  let keyText: readonly [number, number] | undefined;
  let valueStart = 0;

  const closeMember = (end: number): void => {
    if (key === undefined) return;
    if (spans.has(key)) repeated.push(key);
    spans.set(key, { start: valueStart, end: trimEnd(bytes, end) });
    key = undefined;
  };

  for (let i = 0; i < length; i++) {
    const byte = bytes[i];
    if (byte === quote) {
      const end = stringEnd(bytes, i + 1);
      if (depth === 1 && key === undefined) keyText = [i, end + 1];
      i = end;
      empty = false;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      tokens += 1;
      empty = false;
      if (depth === 1) bodyStart = i + 1;
      if (depth > maxDepth) throw tooDeep();
      if (tokens > maxTokens) throw tooMany();
    } else if (byte === 0x7d || byte === 0x5d) {
      if (depth === 1) closeMember(i);
      depth -= 1;
    } else if (byte === 0x2c) {
      tokens += 1;
      if (tokens > maxTokens) throw tooMany();
      if (depth === 1) closeMember(i);
    } else if (byte === 0x3a) {
      colons += 1;
      if (depth === 1 && keyText !== undefined) {
        key = readKey(bytes, keyText);
        keyText = undefined;
        valueStart = skipSpace(bytes, i + 1);
      }
    } else if (isDigit(byte)) {
      const start = i;
      while (isDigit(bytes[i + 1])) i += 1;
      if (i - start + 1 >= digitsAtRisk) longNumbers = true;
      empty = false;
    } else if (empty && !isSpace(byte)) {
      empty = false;
    }
  }
  return { empty, spans, repeated, colons, bodyStart, longNumbers };
}

/** Offset of the closing quote; the end of the bytes when there is none. */
function stringEnd(bytes: Buffer, from: number): number {
  const near = Math.min(from + 24, bytes.length);
  let i = from;
  for (; i < near; i++) {
    const byte = bytes[i];
    if (byte === quote) return i;
    if (byte === backslash) i += 1;
  }
  // Long strings: a native search for the quote, then count the backslashes before it.
  for (;;) {
    const end = bytes.indexOf(quote, i);
    if (end === -1) return bytes.length;
    let slashes = 0;
    while (end - 1 - slashes >= i && bytes[end - 1 - slashes] === backslash) slashes += 1;
    if (slashes % 2 === 0) return end;
    i = end + 1;
  }
}

function readKey(bytes: Buffer, [start, end]: readonly [number, number]): string {
  const text = bytes.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  const decoded = tryParse(`"${text}"`);
  return typeof decoded === 'string' ? decoded : text;
}

function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (i < bytes.length && isSpace(bytes[i])) i += 1;
  return i;
}

function trimEnd(bytes: Buffer, end: number): number {
  let i = end;
  while (i > 0 && isSpace(bytes[i - 1])) i -= 1;
  return i;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Counts all keys, and refuses what would not survive: infinite numbers, giant keys. */
function countKeys(value: Json | undefined, path: FieldPath): number {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalidRequest('The number is out of range.', path);
    return 0;
  }
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return 0;
  let count = 0;
  if (isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      if (isCounted(item)) count += countKeys(item, [...path, i]);
    }
    return count;
  }
  for (const key of Object.keys(value)) {
    count += 1;
    if (key.length > maxKeyLength) {
      throw invalidRequest('A key is longer than 1024 characters.', path);
    }
    const item = value[key];
    if (isCounted(item)) count += countKeys(item, [...path, key]);
  }
  return count;
}

function isCounted(value: Json | undefined): boolean {
  return typeof value === 'object' || typeof value === 'number';
}

function isArray(value: JsonObject | readonly Json[]): value is readonly Json[] {
  return Array.isArray(value);
}

function tooDeep(): GatewayError {
  return new GatewayError(
    'too_large',
    `The request body is nested more than ${maxDepth} levels deep.`,
  );
}

function tooMany(): GatewayError {
  return new GatewayError('too_large', `The request body has more than ${maxTokens} JSON values.`);
}
