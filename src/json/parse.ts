/** JSON text to values: the only callers of `JSON.parse` are here, in `scan.ts` and in `exact.ts`. */
import { parseExactly } from './exact.ts';
import { maxDepth, scan } from './scan.ts';
import { isObject, type Json, type JsonObject } from './value.ts';

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
  const { tokens, exceeded } = scan(Buffer.from(text), maxInnerTokens);
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
  return bytes.length <= harmlessLength || scan(bytes, maxAnswerTokens).exceeded === undefined;
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
