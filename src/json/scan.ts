/**
 * The tokenizer of JSON bytes: strings, values, members and bounds, without making values.
 *
 * `scan` runs before every parse of foreign bytes: a few bytes of text may cost `JSON.parse` seconds and many times
 * their memory, and all other calls wait for a parse. It also finds the members of the top level, so that a relayed
 * body can be edited in its own bytes.
 */

/** Where a member is in the bytes; `end` is exclusive. */
export interface Span {
  /** Offsets of the value. */
  readonly start: number;
  readonly end: number;
}

/** Levels of brackets in a request, an answer or the arguments of a tool call. */
export const maxDepth = 128;
/** Tokens of a request body: opening brackets, commas and colons. What a body costs to parse goes by them. */
export const maxTokens = 500_000;
/** A body that is longer, or has more tokens, is not parsed on the event loop. */
export const maxBytesAtOnce = 1024 * 1024;
export const maxTokensAtOnce = 20_000;
/** Digits of a number. Longer ones have no meaning, and a megabyte of digits costs as much as one of text. */
export const maxDigits = 1024;
/** Digits in a row from which on an integer may be beyond 2^53. */
export const digitsAtRisk = 16;

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The offset of the first byte from `from` on that is not white space. */
export function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (i < bytes.length && isSpace(bytes[i])) i += 1;
  return i;
}

function trimEnd(bytes: Buffer, end: number): number {
  let i = end;
  while (i > 0 && isSpace(bytes[i - 1])) i -= 1;
  return i;
}

/**
 * The offset of the closing quote; the end of the bytes when there is none.
 * @param from after the opening quote
 */
export function stringEnd(bytes: Buffer, from: number): number {
  let i = from;
  for (;;) {
    // Short strings and those with many escaped quotes: a native search costs as much as some 24 bytes.
    const near = Math.min(i + 24, bytes.length);
    for (; i < near; i++) {
      const byte = bytes[i];
      if (byte === quote) return i;
      if (byte === backslash) i += 1;
    }
    // Long strings: a native search for the quote, then a count of the backslashes before it.
    const end = bytes.indexOf(quote, i);
    if (end === -1) return bytes.length;
    let slashes = 0;
    while (end - 1 - slashes >= i && bytes[end - 1 - slashes] === backslash) slashes += 1;
    if (slashes % 2 === 0) return end;
    i = end + 1;
  }
}

/** The offset after the value that begins at `start`; beyond the bytes for a string or container without an end. */
export function valueEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      at = stringEnd(bytes, at + 1);
      if (depth === 0) return at + 1;
    } else if (byte === openBrace || byte === openBracket) {
      depth += 1;
    } else if (byte === closeBrace || byte === closeBracket) {
      // A scalar ends at the bracket around it.
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === comma || isSpace(byte))) {
      return at;
    }
  }
  return depth === 0 ? bytes.length : bytes.length + 1;
}

export interface MemberSpan extends Span {
  /** The offset of the key's opening quote. */
  readonly key: number;
}

/**
 * A member of the first object from `from` on, in the bytes and without parsing them; undefined when the object has no
 * such member whose value is a string, an object or an array, or is broken. The search goes from one such key to the next
 * and counts brackets between them, so that thousands of equal keys inside of other members cost no more than one pass.
 * @param key the key with its quotes: inside of a string they would be escaped.
 */
export function findMember(bytes: Buffer, from: number, key: Buffer): MemberSpan | undefined {
  const object = bytes.indexOf(openBrace, from);
  if (object === -1) return undefined;
  let depth = 0;
  let counted = object;
  for (let at = bytes.indexOf(key, object); at !== -1; at = bytes.indexOf(key, at + 1)) {
    const behindKey = skipSpace(bytes, at + key.length);
    if (bytes[behindKey] !== colon || bytes[at - 1] === backslash) continue;
    for (; counted < at; counted += 1) {
      const byte = bytes[counted];
      if (byte === quote) counted = stringEnd(bytes, counted + 1);
      else if (byte === openBrace || byte === openBracket) depth += 1;
      else if (byte === closeBrace || byte === closeBracket) {
        depth -= 1;
        if (depth === 0) return undefined;
      }
    }
    counted = at;
    if (depth !== 1) continue;
    const start = skipSpace(bytes, behindKey + 1);
    const end = closedEnd(bytes, start);
    return end === undefined ? undefined : { key: at, start, end };
  }
  return undefined;
}

/**
 * Visits the members of an object in their order, without parsing them. A repeated key is visited each time.
 * @param open the offset of its opening brace
 * @param visit gets the offsets of the key, with its quotes, and of the value; each end is exclusive
 * @returns the offset after the closing brace; -1 if the object is broken
 */
export function eachMember(
  bytes: Buffer,
  open: number,
  visit: (key: number, keyEnd: number, start: number, end: number) => void,
): number {
  if (bytes[open] !== openBrace) return -1;
  let at = skipSpace(bytes, open + 1);
  if (bytes[at] === closeBrace) return at + 1;
  for (;;) {
    if (bytes[at] !== quote) return -1;
    const keyEnd = stringEnd(bytes, at + 1) + 1;
    const mark = skipSpace(bytes, keyEnd);
    if (bytes[mark] !== colon) return -1;
    const start = skipSpace(bytes, mark + 1);
    const end = valueEnd(bytes, start);
    if (end === start || end > bytes.length) return -1;
    visit(at, keyEnd, start, end);
    at = skipSpace(bytes, end);
    if (bytes[at] === closeBrace) return at + 1;
    if (bytes[at] !== comma) return -1;
    at = skipSpace(bytes, at + 1);
  }
}

/** Whether the bytes of this range are this ASCII text. */
export function spells(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i += 1) {
    if (bytes[start + i] !== text.charCodeAt(i)) return false;
  }
  return true;
}

/** The offset after a string, an object or an array; undefined for other values and for one without an end. */
function closedEnd(bytes: Buffer, start: number): number | undefined {
  const first = bytes[start];
  if (first !== quote && first !== openBrace && first !== openBracket) return undefined;
  const end = valueEnd(bytes, start);
  return end <= bytes.length ? end : undefined;
}

/** The offset of the key whose value begins at `value`. */
export function keyBefore(bytes: Buffer, value: number): number {
  let at = value - 1;
  // Over the colon to the key's closing quote, then to the opening one.
  while (bytes[at] !== quote) at -= 1;
  do at -= 1;
  while (bytes[at] !== quote || isEscaped(bytes, at));
  return at;
}

function isEscaped(bytes: Buffer, at: number): boolean {
  let before = at;
  while (bytes[before - 1] === backslash) before -= 1;
  return (at - before) % 2 === 1;
}

/** The text of a key. @param end after its closing quote */
export function readKey(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text;
  }
}

export interface Scan {
  /** The bound that was exceeded; the scan ended there. */
  readonly exceeded?: 'depth' | 'tokens' | 'digits';
  /** There is nothing but white space. */
  readonly empty: boolean;
  /** Opening brackets, commas and colons. */
  readonly tokens: number;
  /** Keys of all objects, including those that occur twice. */
  readonly colons: number;
  /** A number has more digits than a double may hold. */
  readonly longNumbers: boolean;
  /** Members of the top level; of two with one key the last. */
  readonly spans: ReadonlyMap<string, Span>;
  /** Keys of the top level that occur twice. */
  readonly repeated: readonly string[];
  /** The offset after the first brace. */
  readonly bodyStart: number;
}

/**
 * One pass over the bytes; whether they are valid JSON is not checked. One long function because it runs for every byte
 * outside of strings: a call for each kind of byte would double its cost.
 * @param most tokens that are allowed
 * @param members whether the members of the top level are wanted
 */
// oxlint-disable-next-line eslint/complexity, eslint/max-lines-per-function
export function scan(bytes: Buffer, most: number, members = true): Scan {
  /** The depth of members that are wanted; no depth for none. */
  const top = members ? 1 : -1;
  const spans = new Map<string, Span>();
  const repeated: string[] = [];
  const length = bytes.length;
  let exceeded: Scan['exceeded'];
  let depth = 0;
  let tokens = 0;
  let colons = 0;
  let bodyStart = 0;
  let empty = true;
  let longNumbers = false;
  let key: string | undefined;
  let keyStart = -1;
  let keyEnd = 0;
  let valueStart = 0;

  for (let i = 0; i < length && exceeded === undefined; i++) {
    const byte = bytes[i];
    if (byte === quote) {
      const end = stringEnd(bytes, i + 1);
      if (depth === top && key === undefined) {
        keyStart = i;
        keyEnd = end + 1;
      }
      i = end;
    } else if (byte === openBrace || byte === openBracket) {
      depth += 1;
      tokens += 1;
      if (depth === top) bodyStart = i + 1;
      if (depth > maxDepth) exceeded = 'depth';
      else if (tokens > most) exceeded = 'tokens';
    } else if (byte === closeBrace || byte === closeBracket || byte === comma) {
      if (depth === top && key !== undefined) {
        if (spans.has(key)) repeated.push(key);
        spans.set(key, { start: valueStart, end: trimEnd(bytes, i) });
        key = undefined;
      }
      if (byte !== comma) depth -= 1;
      else {
        tokens += 1;
        if (tokens > most) exceeded = 'tokens';
      }
    } else if (byte === colon) {
      tokens += 1;
      if (tokens > most) exceeded = 'tokens';
      colons += 1;
      if (depth === top && keyStart !== -1) {
        key = readKey(bytes, keyStart, keyEnd);
        keyStart = -1;
        valueStart = skipSpace(bytes, i + 1);
      }
    } else if (isDigit(byte)) {
      const start = i;
      while (isDigit(bytes[i + 1])) i += 1;
      if (i - start + 1 >= digitsAtRisk) longNumbers = true;
      if (i - start + 1 > maxDigits) exceeded = 'digits';
    } else if (isSpace(byte)) continue;
    empty = false;
  }
  const found = { empty, tokens, colons, longNumbers, spans, repeated, bodyStart };
  return exceeded === undefined ? found : { ...found, exceeded };
}
