/**
 * JSON text to values. The only callers of `JSON.parse` are here and in `scan.ts`; the engine has its own.
 *
 * | the text is | reader | long integers | bounded |
 * |---|---|---|---|
 * | JSON whose length is bounded already, such as a body that was scanned | `tryParse`, `tryParseObject` | exact | no |
 * | JSON in a string of a request or an answer: arguments, errors | `tryParseInner`, `tryParseInnerObject` | exact | yes |
 * | an event of a stream | `tryParseAnswerEvent`; `tryParseExactEvent` if its numbers are passed on | –; exact | yes |
 * | the same, bounded already | `tryParseEvent` | – | no |
 * | an upstream's document | `isBoundedAnswer`, then `tryParseObject` | exact | yes |
 * | the gateway's own: a database row, a message of a worker | `parseOwn` | – | no |
 *
 * `parseExactly` is what `tryParse` calls, and throws. `parseSlowly` and `parseNatively` are its two ways.
 */
import { digitsAtRisk, maxDepth, scan } from './scan.ts';
import { type Json, type JsonObject, isObject, setMember } from './value.ts';

/** The value with exact integers and keys; undefined when the text is not JSON. */
export function tryParse(text: string): Json | undefined {
  try {
    return parseExactly(text);
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
 * JSON that the gateway wrote itself, in a database or another of its processes: its form is known, its numbers are safe
 * integers.
 * @param revive replaces each value, from the innermost on
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
 * An event of a stream, undefined when it is not an object. Its numbers are counts and indexes, and arguments of tools stand
 * in it as text: the search for long numbers is spared, for every chunk.
 */
export function tryParseEvent(text: string): JsonObject | undefined {
  try {
    const value: Json = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// ---- Bounds for JSON of others that is parsed on the event loop: upstreams may be hostile or broken (G11). ----

/**
 * Tokens of all JSON texts inside of strings in one request (arguments of tool calls), of one such text in an answer, and
 * of one event. 100,000 tokens take some 0.1 s to parse.
 */
export const maxInnerTokens = 100_000;
/**
 * Tokens of an upstream's document. Log probabilities of twenty words for each of some thousand tokens are the largest
 * known use; they take 0.08 s.
 */
export const maxAnswerTokens = 1_000_000;
/** A shorter event is neither deep nor has it many values: nearly all events of streams. */
export const harmlessLength = 1024;

/**
 * What a JSON text inside of a string costs to parse, in tokens; they are not counted beyond `maxInnerTokens`. `Infinity`
 * for one that is nested too deep, or has a number that is too long, to be parsed at all. The scan of the body around it
 * sees one string only.
 */
export function innerTokens(text: string): number {
  const { tokens, exceeded } = scan(Buffer.from(text), maxInnerTokens, false);
  return exceeded === 'depth' || exceeded === 'digits' ? Infinity : tokens;
}

/** As `tryParse`; undefined also for text beyond the bounds. */
export function tryParseInner(text: string): Json | undefined {
  // A shorter text cannot be too deep or too long.
  if (text.length > maxDepth && innerTokens(text) > maxInnerTokens) return undefined;
  return tryParse(text);
}

/** As `tryParseInner`, for text that must be an object. */
export function tryParseInnerObject(text: string): JsonObject | undefined {
  const value = tryParseInner(text);
  return isObject(value) ? value : undefined;
}

/** Whether an upstream's document may be parsed. */
export function isBoundedAnswer(bytes: Buffer): boolean {
  return (
    bytes.length <= harmlessLength || scan(bytes, maxAnswerTokens, false).exceeded === undefined
  );
}

/** An upstream's event as `tryParseEvent` reads it; undefined also beyond the bounds. */
export function tryParseAnswerEvent(data: string): JsonObject | undefined {
  return isBoundedEvent(data) ? tryParseEvent(data) : undefined;
}

/** The same with the digits of long numbers kept. */
export function tryParseExactEvent(data: string): JsonObject | undefined {
  return isBoundedEvent(data) ? tryParseObject(data) : undefined;
}

function isBoundedEvent(data: string): boolean {
  return data.length <= harmlessLength || innerTokens(data) <= maxInnerTokens;
}

// JSON that `JSON.parse` alone does not read exactly: integers beyond 2^53, keys that V8 takes for others, and the
// position of an error.
//
// V8 (13.6, Node 24) takes keys for others: after it parsed an object `{"a":…, "\\":…}`, whose key is a backslash, it
// reads `{"a":…, "\n":…}` with that key, too, in every later text. Only keys that are written with an escape are misread,
// and only as keys with a backslash in them. Where such a key comes out, the text is read again by the slow reader here,
// which parses each string by itself.

/** What is before a number in JSON. Digits after a quote or a letter are part of a text: most ids are. */
const longNumber = new RegExp(`(?:^|[\\s:,[])-?\\d{${digitsAtRisk}}`);
const integer = /^-?\d+$/;

/** Whether the text, which is JSON, may hold an integer that a plain `JSON.parse` would change. */
export function mayLoseDigits(text: string): boolean {
  return longNumber.test(text);
}

/** A reviver for `JSON.parse`: integers beyond 2^53 become raw JSON, which `JSON.stringify` writes as it was. */
function keepDigits(_key: string, value: Json, { source }: { readonly source?: string }): Json {
  // An infinite number is infinite to others too: it stays a number and is refused as one (B41).
  if (typeof value !== 'number' || Number.isSafeInteger(value) || !Number.isFinite(value)) {
    return value;
  }
  return source !== undefined && integer.test(source) ? JSON.rawJSON(source) : value;
}

/**
 * `JSON.parse` with the digits of long integers, and with keys as they are written.
 * @param longNumbers whether there may be long numbers: looking for them is spared where it is known.
 * @throws SyntaxError
 */
export function parseExactly(text: string, longNumbers = mayLoseDigits(text)): Json {
  const value = parseNatively(text, longNumbers);
  if (!text.includes('\\') || !hasDoubtfulKey(value)) return value;
  return parseSlowly(text, longNumbers);
}

/** The same, read token by token. @throws SyntaxError */
export function parseSlowly(text: string, longNumbers: boolean): Json {
  return new SlowReader(text, (token) => parseNatively(token, longNumbers)).document();
}

/** The same for text that has no escapes in keys. @throws SyntaxError */
export function parseNatively(text: string, longNumbers: boolean): Json {
  if (longNumbers) return JSON.parse(text, keepDigits);
  const value: Json = JSON.parse(text);
  return value;
}

/** Whether a key in the value has a backslash, so that it may be another. */
export function hasDoubtfulKey(value: Json): boolean {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return false;
  if (Array.isArray(value)) return value.some((item: Json) => hasDoubtfulKey(item));
  for (const [key, item] of Object.entries(value)) {
    if (key.includes('\\') || (item !== undefined && hasDoubtfulKey(item))) return true;
  }
  return false;
}

interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/**
 * Line and column (from 1) of the first token that cannot be where it is. V8 reports the position only sometimes,
 * and its message quotes the content, which may be a secret.
 */
export function locateJsonError(text: string): TextPosition {
  let offset = text.length;
  try {
    new SlowReader(text, () => null).document();
  } catch (error) {
    if (error instanceof WrongToken) offset = error.offset;
  }
  let line = 1;
  let lineStart = 0;
  for (let i = text.indexOf('\n'); i !== -1 && i < offset; i = text.indexOf('\n', i + 1)) {
    line += 1;
    lineStart = i + 1;
  }
  return { line, column: offset - lineStart + 1 };
}

class WrongToken extends SyntaxError {
  readonly offset: number;

  constructor(offset: number) {
    super('not JSON');
    this.offset = offset;
  }
}

const space = /[ \t\n\r]*/y;
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** A piece of a string's inside. One expression for all of it would need a stack as deep as the string is long. */
const inside =
  // A JSON string may not hold raw control characters, so the expression must name them.
  // oxlint-disable-next-line no-control-regex
  /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,2000}/y;

/** Reads JSON token by token. Throws `WrongToken` at the first one that cannot be where it is. */
class SlowReader {
  readonly #text: string;
  readonly #parseScalar: (text: string) => Json;
  #at = 0;

  /** @param parseScalar parses one string, number or word. */
  constructor(text: string, parseScalar: (text: string) => Json) {
    this.#text = text;
    this.#parseScalar = parseScalar;
  }

  document(): Json {
    this.#match(space);
    const value = this.#value();
    if (this.#at < this.#text.length) throw new WrongToken(this.#at);
    return value;
  }

  /** The value that begins here, and the white space after it. */
  #value(): Json {
    const first = this.#text[this.#at];
    if (first === '{') return this.#object();
    if (first === '[') return this.#array();
    const value = this.#parseScalar(first === '"' ? this.#string() : this.#word());
    this.#match(space);
    return value;
  }

  #object(): Json {
    const members: { [key: string]: Json } = {};
    if (this.#isEmpty('}')) return members;
    do {
      const start = this.#at;
      if (this.#text[start] !== '"') throw new WrongToken(start);
      const key = String(this.#parseScalar(this.#string()));
      this.#match(space);
      if (!this.#pass(':')) throw new WrongToken(start);
      setMember(members, key, this.#value());
    } while (this.#pass(','));
    if (!this.#pass('}')) throw new WrongToken(this.#at);
    return members;
  }

  #array(): Json {
    const items: Json[] = [];
    if (this.#isEmpty(']')) return items;
    do items.push(this.#value());
    while (this.#pass(','));
    if (!this.#pass(']')) throw new WrongToken(this.#at);
    return items;
  }

  /** Passes an opening bracket, and the closing one where it follows. */
  #isEmpty(closing: string): boolean {
    this.#at += 1;
    this.#match(space);
    return this.#pass(closing);
  }

  /** Passes a character and the white space after it; false where another one is here. */
  #pass(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    this.#match(space);
    return true;
  }

  /** The string that begins here, with its quotes. */
  #string(): string {
    const start = this.#at;
    this.#at += 1;
    while (this.#match(inside));
    if (this.#text[this.#at] !== '"') throw new WrongToken(start);
    this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  #word(): string {
    const start = this.#at;
    if (!this.#match(scalar)) throw new WrongToken(start);
    return this.#text.slice(start, this.#at);
  }

  /** Passes what a sticky expression matches here; false when that is nothing. */
  #match(expression: RegExp): boolean {
    expression.lastIndex = this.#at;
    if (!expression.test(this.#text) || expression.lastIndex === this.#at) return false;
    this.#at = expression.lastIndex;
    return true;
  }
}
