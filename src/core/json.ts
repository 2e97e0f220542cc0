/**
 * JSON at the door. Bodies are scanned before they are parsed (depth and token bombs cost seconds in
 * `JSON.parse`: reliability.md G11), and the scan remembers where the top-level values stand, so that
 * a relayed body is edited in its own bytes: `JSON.stringify(JSON.parse(x))` reorders integer-like
 * keys and loses digits, which breaks prompt caches.
 */
import { isUtf8 } from 'node:buffer';
import type { Json, JsonObject } from './conversation.ts';
import { digitsAtRisk, keepDigits, mayLoseDigits } from './exact-numbers.ts';
import { invalidRequest } from './errors.ts';
import {
  backslash,
  isClosing,
  isDigit,
  isSpace,
  longNumber,
  maxBytesAtOnce,
  maxDepth,
  maxDigits,
  maxTokens,
  maxTokensAtOnce,
  notJson,
  quote,
  skipSpace,
  tooDeep,
  tooMany,
  trimEnd,
  type Span,
} from './json-bytes.ts';
import { countKeys } from './json-count.ts';
import { bitOf, marks, type Mark } from './json-marks.ts';
import { hasDoubtfulKey, parseKeysExactly } from './json-keys.ts';
import { outlineOf } from './json-outline.ts';
import { locateJsonError } from './json-position.ts';
import { parseInSteps } from './json-steps.ts';
import { Lanes } from './lanes.ts';
import { Pieces } from './pieces.ts';

export { maxDepth } from './json-bytes.ts';
export type { Span } from './json-bytes.ts';

/** A parsed body that still knows its bytes. */
export interface JsonSource {
  readonly pieces: Pieces;
  /** The same in one; a copy where they came in several. */
  readonly bytes: Buffer;
  /** Read again from the bytes where it was forgotten. */
  readonly value: JsonObject;
  /**
   * The value, or less of it, for who only looks how the request is made: long texts, schemas of tools and inputs of
   * calls may be missing (see `json-outline.ts`). Mostly there where the value must be parsed first.
   */
  readonly outline: JsonObject;
  /** Value spans of the top-level keys. */
  readonly spans: ReadonlyMap<string, Span>;
  /** Offset just behind the opening brace, where a member can be inserted. */
  readonly bodyStart: number;
  /** Whether a mark stands anywhere in the bytes. */
  holds(mark: Mark): boolean;
  /** False when a key stands twice anywhere: such bytes are never relayed as they are (B39). */
  readonly unambiguous: boolean;
  /** Brackets that open, commas and colons: what the value costs besides its texts. */
  readonly tokens: number;
  /**
   * Lets go of the value while the bytes are kept. A value is several times as large as its bytes, and
   * one that lives for as long as an upstream takes is moved by the collector again and again. No
   * effect on what is too long to be parsed at once.
   */
  forget(): void;
}

/** What must be known of a body to set members of it in its own bytes. */
export type Spliceable = Omit<JsonSource, 'bytes' | 'outline' | 'holds' | 'tokens' | 'forget'>;

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

/** `JSON.parse`, but integers beyond 2^53 keep their digits, and keys are what they are. @throws SyntaxError */
function parseExactly(text: string): Json {
  return parseNumbers(text, mayLoseDigits(text));
}

/**
 * JSON that the gateway's own statements and functions in a database made, or another of its processes: its
 * form is known, its numbers are safe integers.
 * @param revive makes a value of what stands for it
 * @throws SyntaxError
 */
export function parseOwn<T>(text: string, revive?: (value: unknown) => unknown): T {
  const value: T = JSON.parse(
    text,
    revive === undefined ? undefined : (_name, part: unknown) => revive(part),
  );
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
 * Parses a client's body, in steps where it is long: a promise only then.
 * @param room told how many tokens there are by now, before values are made of them, where they are
 * many: a few bytes of text may cost many times as much. What it throws is thrown.
 * @throws GatewayError `invalid_request` (empty, not UTF-8, not JSON, not an object, a repeated owned
 * key, a number beyond double range) or `too_large` (too deep, too many tokens).
 */
export function parseClientBody(
  received: Uint8Array | Pieces,
  ownedKeys: ReadonlySet<string>,
  room?: (tokens: number) => void,
): JsonSource | Promise<JsonSource> {
  const pieces = withoutByteOrderMark(received);
  if (pieces.length > maxBytesAtOnce) return parseLong(pieces, { ownedKeys, room });
  const outlined = outlineOf(pieces);
  if (outlined !== undefined) return new ParsedSource(pieces, outlined);
  const bytes = inOne(pieces);
  checkUtf8(bytes);
  const scan = scanBody(bytes);
  if (scan.tokens <= maxTokensAtOnce) return parseScanned({ pieces, bytes }, scan, ownedKeys);
  return parseCrowded(pieces, scan.tokens, { ownedKeys, room });
}

/**
 * Parses a body at once, however long it is.
 * @throws GatewayError as `parseClientBody`.
 */
export function parseBody(received: Uint8Array, ownedKeys: ReadonlySet<string>): JsonSource {
  const pieces = withoutByteOrderMark(received);
  const bytes = pieces.whole();
  checkUtf8(bytes);
  return parseScanned({ pieces, bytes }, scanBody(bytes), ownedKeys);
}

/** Characters; an outline of an agent's body has a quarter of it. */
const longestKeptOutline = 16_384;

/** What came in several pieces lies here while it is parsed: memory of its own would cost more than the copy. */
let scratch: Buffer | undefined;

/** The pieces in one, until the next call. */
function inOne(pieces: Pieces): Buffer {
  if (pieces.list.length === 1) return pieces.whole();
  scratch ??= Buffer.allocUnsafeSlow(maxBytesAtOnce);
  pieces.copy(scratch);
  return scratch.subarray(0, pieces.length);
}

/** What is being parsed is in memory several times: in turns it is not slower. */
const parsing = new Lanes(4);

/** Of many values one leaves as much behind as it keeps, and more than its text: they are made one body at a time. */
const crowded = new Lanes(1);

function parseLong(pieces: Pieces, rules: StepRules): Promise<JsonSource> {
  return parsing.run(() => parseSteps(pieces, rules, { crowded }));
}

/** Room is asked for in its turn: what was promised to those who wait would be seen in no look at the process (G5). */
function parseCrowded(pieces: Pieces, tokens: number, rules: StepRules): Promise<JsonSource> {
  return crowded.run(async () => {
    rules.room?.(tokens);
    return parseSteps(pieces, rules);
  });
}

interface StepRules {
  readonly ownedKeys: ReadonlySet<string>;
  readonly room: ((tokens: number) => void) | undefined;
}

async function parseSteps(
  pieces: Pieces,
  { ownedKeys, room }: StepRules,
  lane?: { readonly crowded: Lanes },
): Promise<JsonSource> {
  const bytes = pieces.whole();
  checkUtf8(bytes);
  const parsed = await parseInSteps(bytes, { parse: parseNumbers, room, ...lane });
  return sourceOf(pieces, parsed, ownedKeys);
}

interface BytesOfBody {
  readonly pieces: Pieces;
  /** The same in one, for now. */
  readonly bytes: Buffer;
}

function parseScanned(
  { pieces, bytes }: BytesOfBody,
  scan: Scan,
  ownedKeys: ReadonlySet<string>,
): JsonSource {
  const value = scan.empty ? undefined : parseText(bytes, scan.longNumbers);
  if (value !== undefined && !isObject(value)) {
    throw invalidRequest('The request body must be a JSON object.');
  }
  const keys = value === undefined ? 0 : countKeys(value);
  return sourceOf(pieces, { ...scan, value, keys }, ownedKeys);
}

interface ParsedBody extends Omit<Scan, 'empty' | 'longNumbers'> {
  readonly longNumbers?: boolean;
  /** Undefined when there is nothing but white space. */
  readonly value: JsonObject | undefined;
  readonly keys: number;
}

function sourceOf(pieces: Pieces, parsed: ParsedBody, ownedKeys: ReadonlySet<string>): JsonSource {
  const { value, repeated, colons, keys } = parsed;
  if (value === undefined) {
    throw invalidRequest('The request body is empty; a JSON object is expected.');
  }
  for (const key of repeated) {
    if (ownedKeys.has(key))
      throw invalidRequest(`The key "${key}" stands twice in the body.`, [key]);
  }
  if (colons - keys > maxRepeatedKeys) {
    throw invalidRequest('The request body repeats its keys too often.');
  }
  return new ParsedSource(pieces, { ...parsed, value, unambiguous: keys === colons });
}

interface KnownBody {
  readonly spans: ReadonlyMap<string, Span>;
  readonly bodyStart: number;
  readonly tokens: number;
  readonly unambiguous: boolean;
  /** Absent for what was parsed in steps. */
  readonly longNumbers?: boolean;
  /** Absent where it is not known that keys have no escapes. */
  readonly plainKeys?: true;
  /** Absent where the bytes must be searched. */
  readonly marks?: number;
  /** One of both is there. */
  readonly value?: JsonObject;
  /** JSON. */
  readonly outline?: string;
}

class ParsedSource implements JsonSource {
  readonly pieces: Pieces;
  readonly spans: ReadonlyMap<string, Span>;
  readonly bodyStart: number;
  readonly unambiguous: boolean;
  readonly tokens: number;
  readonly #longNumbers: boolean | undefined;
  readonly #plainKeys: boolean;
  readonly #marks: number | undefined;
  /** Kept when the value is forgotten, where it is short: who asks another target asks for no more. */
  #outlineText: string | undefined;
  #value: JsonObject | undefined;
  #outline: JsonObject | undefined;

  constructor(pieces: Pieces, parsed: KnownBody) {
    this.pieces = pieces;
    this.spans = parsed.spans;
    this.bodyStart = parsed.bodyStart;
    this.unambiguous = parsed.unambiguous;
    this.tokens = parsed.tokens;
    this.#longNumbers = parsed.longNumbers;
    this.#plainKeys = parsed.plainKeys === true;
    this.#marks = parsed.marks;
    this.#outlineText = parsed.outline;
    this.#value = parsed.value;
  }

  get bytes(): Buffer {
    return this.pieces.whole();
  }

  get value(): JsonObject {
    this.#value ??= this.#readAgain();
    return this.#value;
  }

  get outline(): JsonObject {
    this.#outline ??= this.#readOutline();
    return this.#outline;
  }

  holds(mark: Mark): boolean {
    if (this.#marks !== undefined) return (this.#marks & bitOf[mark]) !== 0;
    return marks[mark].some((text) => this.pieces.includes(text));
  }

  forget(): void {
    if (this.#longNumbers === undefined) return;
    this.#value = undefined;
    this.#outline = undefined;
    // Media and long system texts stand in it whole.
    if ((this.#outlineText?.length ?? 0) > longestKeptOutline) this.#outlineText = undefined;
  }

  #readOutline(): JsonObject {
    if (this.#outlineText === undefined || this.#value !== undefined) return this.value;
    const outline: JsonObject = JSON.parse(this.#outlineText);
    return outline;
  }

  #readAgain(): JsonObject {
    // Keys that V8 could misread are not looked for where there can be none (`json-keys.ts`).
    const value = this.#plainKeys
      ? parseNatively(this.bytes.toString('utf8'), false)
      : parseText(this.bytes, this.#longNumbers === true);
    return isObject(value) ? value : {};
  }
}

function checkUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw invalidRequest('The request body is not valid UTF-8.');
}

/**
 * The body with some top-level members set, byte-identical elsewhere. A value is JSON text;
 * `undefined` leaves the member as it is. Ambiguous bodies are re-serialised instead.
 */
export function spliceMembers(
  source: Spliceable,
  members: { readonly [key: string]: string | undefined },
): Pieces {
  const wanted = Object.entries(members).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  if (!source.unambiguous) {
    const edited = { ...source.value };
    for (const [key, text] of wanted) Object.defineProperty(edited, key, member(tryParse(text)));
    return Pieces.of(Buffer.from(JSON.stringify(edited)));
  }
  const edits = wanted.map(([key, text]) => {
    const span = source.spans.get(key);
    return span === undefined
      ? { start: source.bodyStart, end: source.bodyStart, text: insertion(source, key, text) }
      : { start: span.start, end: span.end, text };
  });
  edits.sort((a, b) => a.start - b.start);
  const { pieces } = source;
  const spliced: Buffer[] = [];
  let position = 0;
  for (const edit of edits) {
    spliced.push(...pieces.between(position, edit.start), Buffer.from(edit.text));
    position = edit.end;
  }
  spliced.push(...pieces.between(position, pieces.length));
  return new Pieces(spliced);
}

function insertion(source: Spliceable, key: string, text: string): string {
  return `${JSON.stringify(key)}:${text}${source.spans.size === 0 ? '' : ','}`;
}

function member(value: Json | undefined): PropertyDescriptor {
  return { value, enumerable: true, writable: true, configurable: true };
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

/** @param longNumbers the scan met a number of so many digits that a double may not hold it. */
function parseText(bytes: Buffer, longNumbers: boolean): Json {
  const text = bytes.toString('utf8');
  try {
    return parseNumbers(text, longNumbers);
  } catch {
    throw notJson(locateJsonError(text));
  }
}

/** `parseExactly` for who knows whether there are long numbers. @throws SyntaxError */
export function parseNumbers(text: string, longNumbers: boolean): Json {
  const value = parseNatively(text, longNumbers);
  if (!text.includes('\\') || !hasDoubtfulKey(value)) return value;
  return parseKeysExactly(text, (scalar) => parseNatively(scalar, longNumbers));
}

/** @throws SyntaxError */
function parseNatively(text: string, longNumbers: boolean): Json {
  if (longNumbers) return JSON.parse(text, keepDigits);
  const value: Json = JSON.parse(text);
  return value;
}

interface Scan {
  readonly empty: boolean;
  readonly spans: ReadonlyMap<string, Span>;
  readonly repeated: readonly string[];
  readonly tokens: number;
  readonly colons: number;
  readonly bodyStart: number;
  readonly longNumbers: boolean;
}

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
      empty = false;
      if (depth === 1) closeMember(i);
      depth -= 1;
    } else if (byte === 0x2c) {
      empty = false;
      tokens += 1;
      if (tokens > maxTokens) throw tooMany();
      if (depth === 1) closeMember(i);
    } else if (byte === 0x3a) {
      tokens += 1;
      if (tokens > maxTokens) throw tooMany();
      colons += 1;
      empty = false;
      if (depth === 1 && keyText !== undefined) {
        key = readKey(bytes, keyText);
        keyText = undefined;
        valueStart = skipSpace(bytes, i + 1);
      }
    } else if (isDigit(byte)) {
      const start = i;
      while (isDigit(bytes[i + 1])) i += 1;
      if (i - start + 1 >= digitsAtRisk) longNumbers = true;
      if (i - start + 1 > maxDigits) throw longNumber();
      empty = false;
    } else if (empty && !isSpace(byte)) {
      empty = false;
    }
  }
  return { empty, spans, repeated, tokens, colons, bodyStart, longNumbers };
}

/** Offset of the closing quote; the end of the bytes when there is none. */
export function stringEnd(bytes: Buffer, from: number): number {
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
    if (isClosing(bytes, end, i)) return end;
    i = end + 1;
  }
}

function readKey(bytes: Buffer, [start, end]: readonly [number, number]): string {
  const text = bytes.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  const decoded = tryParse(`"${text}"`);
  return typeof decoded === 'string' ? decoded : text;
}
