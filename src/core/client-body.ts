/**
 * A JSON body with its bytes: what a client sent, checked and parsed. Bytes that nothing edits are relayed as they came:
 * `JSON.stringify(JSON.parse(x))` reorders integer-like keys and loses digits, which breaks prompt caches.
 *
 * A body is scanned before it is parsed (`json/scan.ts`: depth, tokens, members of the top level). Bodies from 16 KB on
 * are walked over instead (`json/skeleton.ts`), and parsed whole only where all of the value is needed.
 */
import { isUtf8 } from 'node:buffer';
import { replaceMembers, spliceMembers } from '../json/edit.ts';
import { featuresIn } from '../json/features.ts';
import { locateJsonError, parseExactly, parseNatively, parseOwn } from '../json/parse.ts';
import { Pieces } from '../json/pieces.ts';
import {
  maxBytesAtOnce,
  maxDepth,
  maxDigits,
  maxTokens,
  maxTokensAtOnce,
  scan,
  skipSpace,
  type Scan,
  type Span,
} from '../json/scan.ts';
import {
  featureBits,
  featureTexts,
  walkOver,
  type Feature,
  type WalkFeature,
} from '../json/skeleton.ts';
import { isObject, type Json, type JsonObject } from '../json/value.ts';
import { GatewayError, invalidRequest } from './errors.ts';

/** A parsed body that still knows its bytes. */
export interface JsonSource {
  readonly pieces: Pieces;
  /** The same in one buffer; a copy where they came in several. */
  readonly bytes: Buffer;
  /** Parsed again from the bytes where it was forgotten. */
  readonly value: JsonObject;
  /**
   * The value, or less of it, for code that only examines how the request is made: long texts, schemas of tools and
   * inputs of calls may be missing (`json/skeleton.ts`).
   */
  readonly skeleton: JsonObject;
  /** Value spans of the top-level keys. */
  readonly spans: ReadonlyMap<string, Span>;
  /** Offset just after the opening brace, where a member can be inserted. */
  readonly bodyStart: number;
  /** Whether the body has a feature: searched for in the bytes where the walk did not see them. */
  has(feature: Feature): boolean;
  /** Whether it is known without a search that the body does not have a feature. */
  lacks(feature: WalkFeature): boolean;
  /** False when a key occurs twice anywhere: such bytes of a request are never relayed as they are. */
  readonly unambiguous: boolean;
  /** Brackets that open, commas and colons: what the value costs besides its texts. */
  readonly tokens: number;
  /**
   * Lets go of the value while the bytes are kept. A value is several times as large as its bytes, and one that lives
   * as long as the wait for an upstream is copied by the collector again and again.
   */
  forget(): void;
}

/** Keys that occur twice in depth are not an error as such; more of them are an attack. */
const maxRepeatedKeys = 1000;
const maxKeyLength = 1024;
/** In a longer body all features are searched for at once. */
const searchedBytes = 64 * 1024;
/** Characters; the skeleton of an agent's body has a quarter of it. */
const maxHeldSkeleton = 16_384;

/**
 * Parses a client's body; undefined for one that is too long to be parsed on the event loop.
 * @throws GatewayError `invalid_request` (empty, not UTF-8, not JSON, not an object, a repeated owned
 * key, a number beyond double range) or `too_large` (too deep, too many tokens).
 */
export function parseClientBody(
  received: Uint8Array | Pieces,
  ownedKeys: ReadonlySet<string>,
): JsonSource | undefined {
  const pieces = withoutByteOrderMark(received);
  if (pieces.length > maxBytesAtOnce) return undefined;
  const walked = walkOver(pieces);
  if (walked !== undefined) return new ParsedSource(pieces, walked);
  const bytes = inOneBuffer(pieces);
  checkUtf8(bytes);
  const scanned = checkedScan(bytes);
  return scanned.tokens > maxTokensAtOnce
    ? undefined
    : parseScanned({ pieces, bytes }, scanned, ownedKeys);
}

/**
 * Parses a body, however long it is.
 * @throws GatewayError as `parseClientBody`.
 */
export function parseBody(received: Uint8Array, ownedKeys: ReadonlySet<string>): JsonSource {
  const pieces = withoutByteOrderMark(received);
  const bytes = pieces.whole();
  checkUtf8(bytes);
  checkBeginning(bytes);
  return parseScanned({ pieces, bytes }, checkedScan(bytes), ownedKeys);
}

/**
 * Parses a body in the worker thread. One without rare forms is walked over, and parsed where its value is needed: the
 * value of 10 MB takes 20 ms, and the collector even longer.
 * @throws GatewayError as `parseClientBody`.
 */
export function parseLongBody(received: Uint8Array, ownedKeys: ReadonlySet<string>): JsonSource {
  const pieces = withoutByteOrderMark(received);
  const walked = walkOver(pieces, walkedInThread);
  // Where little was cut out, the skeleton would be a second body in memory.
  const isUseful = walked !== undefined && walked.skeleton.length < pieces.length / 2;
  return isUseful ? new ParsedSource(pieces, walked) : parseBody(received, ownedKeys);
}

/** The bodies that the thread walks over. The memory of the walk stays, twice of the bytes (G5). */
const walkedInThread = { bytes: 16 * 1024 * 1024, tokens: maxTokens };

/** A body that does not begin as an object is refused for that, whatever follows. */
function checkBeginning(bytes: Buffer): void {
  const at = skipSpace(bytes, 0);
  const first = bytes.toString('latin1', at, at + 1);
  if (first === '' || first === '{') return;
  if (/[-\d[tfn"]/.test(first)) {
    throw invalidRequest('The request body must be a JSON object.');
  }
  throw notJson(bytes.toString('utf8', 0, at + 1));
}

/** V8's message quotes the content, which may be a secret: only the position is reported. */
function notJson(text: string): GatewayError {
  const { line, column } = locateJsonError(text);
  return invalidRequest(`The request body is not valid JSON (line ${line}, column ${column}).`);
}

function checkUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw invalidRequest('The request body is not valid UTF-8.');
}

/** An answer that is a whole document. */
export interface WholeDocument {
  readonly bytes: Buffer;
  readonly body: JsonObject;
}

/**
 * The document with some members set, in its own bytes, however deep or large. One whose top level repeats a key, or has
 * escapes in a key to set, is scanned, and is written anew if a key occurs twice anywhere.
 * @returns undefined if the scan is needed and the document is deeper or larger than it allows
 * @param members JSON texts; an undefined one leaves the member as it is.
 */
export function spliceAnswer(
  { bytes, body }: WholeDocument,
  members: { readonly [key: string]: string | undefined },
): Buffer | undefined {
  const replaced = replaceMembers(bytes, body, members);
  if (replaced !== undefined) return replaced;
  try {
    const pieces = withoutByteOrderMark(bytes);
    const scanned = checkedScan(pieces.whole());
    const unambiguous = countKeys(body, []) === scanned.colons;
    const known = { ...scanned, value: body, unambiguous };
    return spliceMembers(new ParsedSource(pieces, known), members).whole();
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

/** The bytes of a body that came in several pieces, while it is parsed: new memory would cost more than the copy. */
let scratch: Buffer | undefined;

/** The pieces in one buffer, until the next call. */
function inOneBuffer(pieces: Pieces): Buffer {
  if (pieces.list.length === 1) return pieces.whole();
  scratch ??= Buffer.allocUnsafeSlow(maxBytesAtOnce);
  pieces.copy(scratch);
  return scratch.subarray(0, pieces.length);
}

/** @throws GatewayError for bytes beyond a bound. */
function checkedScan(bytes: Buffer): Scan {
  const found = scan(bytes, maxTokens);
  switch (found.exceeded) {
    case undefined:
      return found;
    case 'depth': {
      const why = `The request body is nested more than ${maxDepth} levels deep.`;
      throw new GatewayError('too_large', why);
    }
    case 'tokens': {
      const why = `The request body has more than ${maxTokens} JSON values.`;
      throw new GatewayError('too_large', why);
    }
    case 'digits':
      throw invalidRequest(`A number in the request body has more than ${maxDigits} digits.`);
    default:
      return found.exceeded satisfies never;
  }
}

function parseScanned(
  { pieces, bytes }: { readonly pieces: Pieces; readonly bytes: Buffer },
  scanned: Scan,
  ownedKeys: ReadonlySet<string>,
): JsonSource {
  if (scanned.empty) {
    throw invalidRequest('The request body is empty; a JSON object is expected.');
  }
  const value = parseText(bytes, scanned.longNumbers);
  if (!isObject(value)) throw invalidRequest('The request body must be a JSON object.');
  const keys = countKeys(value, []);
  for (const key of scanned.repeated) {
    if (ownedKeys.has(key))
      throw invalidRequest(`The key "${key}" occurs twice in the body.`, [key]);
  }
  if (scanned.colons - keys > maxRepeatedKeys) {
    throw invalidRequest('The request body repeats its keys too often.');
  }
  const { spans, bodyStart, tokens, longNumbers, colons } = scanned;
  const unambiguous = keys === colons;
  return new ParsedSource(pieces, { spans, bodyStart, tokens, longNumbers, unambiguous, value });
}

/** @param longNumbers the scan met a number with more digits than a double may hold. */
function parseText(bytes: Buffer, longNumbers: boolean): Json {
  const text = bytes.toString('utf8');
  try {
    return parseExactly(text, longNumbers);
  } catch {
    throw notJson(text);
  }
}

/**
 * Counts the keys of a value, and refuses infinite numbers and giant keys.
 * @param path where the value is; grows and shrinks on the way, so that no list is made for each value.
 * @throws GatewayError `invalid_request` with the path.
 */
function countKeys(value: Json, path: (string | number)[]): number {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalidRequest('The number is out of range.', [...path]);
    return 0;
  }
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return 0;
  return isArray(value) ? countItems(value, path) : countMembers(value, path);
}

function countItems(items: readonly Json[], path: (string | number)[]): number {
  let keys = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (!isCounted(item)) continue;
    path.push(i);
    keys += countKeys(item, path);
    path.pop();
  }
  return keys;
}

function countMembers(members: JsonObject, path: (string | number)[]): number {
  let keys = 0;
  // A list of the keys would be garbage for each object of the body.
  for (const key in members) {
    keys += 1;
    if (key.length > maxKeyLength) {
      throw invalidRequest(`A key is longer than ${maxKeyLength} characters.`, [...path]);
    }
    const item = members[key];
    if (!isCounted(item)) continue;
    path.push(key);
    keys += countKeys(item, path);
    path.pop();
  }
  return keys;
}

function isCounted(value: Json | undefined): value is Json {
  return typeof value === 'object' || typeof value === 'number';
}

function isArray(value: JsonObject | readonly Json[]): value is readonly Json[] {
  return Array.isArray(value);
}

function withoutByteOrderMark(received: Uint8Array | Pieces): Pieces {
  const pieces = received instanceof Pieces ? received : Pieces.of(bufferOf(received));
  const [first] = pieces.list;
  // A piece of one or two bytes may be half of a mark.
  const bytes = first !== undefined && first.length >= 3 ? first : pieces.whole();
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return marked ? new Pieces(pieces.between(3, pieces.length)) : pieces;
}

function bufferOf(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

interface KnownBody {
  readonly spans: ReadonlyMap<string, Span>;
  readonly bodyStart: number;
  readonly tokens: number;
  readonly unambiguous: boolean;
  readonly longNumbers: boolean;
  /** Absent where it is not known that keys have no escapes. */
  readonly plainKeys?: true;
  /** Absent where the bytes must be searched. */
  readonly features?: number;
  /** The value or the skeleton is present. */
  readonly value?: JsonObject;
  /** JSON. */
  readonly skeleton?: string;
}

class ParsedSource implements JsonSource {
  readonly pieces: Pieces;
  readonly spans: ReadonlyMap<string, Span>;
  readonly bodyStart: number;
  readonly unambiguous: boolean;
  readonly tokens: number;
  readonly #longNumbers: boolean;
  readonly #plainKeys: boolean;
  /** What the walk found. */
  readonly #features: number | undefined;
  /** What a search of a long body found. */
  #searched: number | undefined;
  /** A short one is kept when the value is forgotten: a second target needs no more. */
  #skeletonText: string | undefined;
  #value: JsonObject | undefined;
  #skeleton: JsonObject | undefined;

  constructor(pieces: Pieces, known: KnownBody) {
    this.pieces = pieces;
    this.spans = known.spans;
    this.bodyStart = known.bodyStart;
    this.unambiguous = known.unambiguous;
    this.tokens = known.tokens;
    this.#longNumbers = known.longNumbers;
    this.#plainKeys = known.plainKeys === true;
    this.#features = known.features;
    this.#skeletonText = known.skeleton;
    this.#value = known.value;
  }

  get bytes(): Buffer {
    return this.pieces.whole();
  }

  get value(): JsonObject {
    this.#value ??= this.#readValue();
    return this.#value;
  }

  get skeleton(): JsonObject {
    this.#skeleton ??= this.#readSkeleton();
    return this.#skeleton;
  }

  has(feature: Feature): boolean {
    const found =
      this.#features ??
      (this.pieces.length > searchedBytes
        ? (this.#searched ??= featuresIn(this.bytes))
        : undefined);
    if (found !== undefined) return (found & featureBits[feature]) !== 0;
    return featureTexts[feature].some((text) => this.pieces.includes(text));
  }

  lacks(feature: WalkFeature): boolean {
    return this.#features !== undefined && (this.#features & featureBits[feature]) === 0;
  }

  forget(): void {
    this.#value = undefined;
    this.#skeleton = undefined;
    // Media and long system texts are in it whole.
    if ((this.#skeletonText?.length ?? 0) > maxHeldSkeleton) this.#skeletonText = undefined;
  }

  #readSkeleton(): JsonObject {
    if (this.#skeletonText === undefined || this.#value !== undefined) return this.value;
    return parseOwn<JsonObject>(this.#skeletonText);
  }

  #readValue(): JsonObject {
    // Where keys have no escapes, V8 cannot misread them (`json/parse.ts`).
    const value = this.#plainKeys
      ? parseNatively(this.bytes.toString('utf8'), false)
      : parseText(this.bytes, this.#longNumbers);
    return isObject(value) ? value : {};
  }
}
