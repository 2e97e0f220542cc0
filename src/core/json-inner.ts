/**
 * JSON that stands as text inside of a string: the arguments of tool calls. The scan of a body sees a
 * string there, and of what depth and how many values it is comes out only here (G11, B36, B38).
 */
import type { Json, JsonObject } from './conversation.ts';
import { isObject, tryParse } from './json.ts';
import { maxDepth, maxDigits } from './json-bytes.ts';

/**
 * Values in all such texts of one request, and in one text of an answer. They are parsed in one go,
 * unlike a body's own: so many take some 0.1 s, half a million would take 0.6 s.
 */
export const maxInnerTokens = 100_000;

const quote = 0x22;
const backslash = 0x5c;

/**
 * What a text costs to parse, in brackets that open, commas and colons; beyond `maxInnerTokens` they are not counted on. `Infinity` for what is nested
 * too deep, or has a number that is too long, to be parsed at all.
 */
// One loop because it runs for every character outside of strings.
// oxlint-disable-next-line eslint/complexity
export function innerTokens(text: string): number {
  let tokens = 0;
  let depth = 0;
  let digits = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code >= 0x30 && code <= 0x39) {
      digits += 1;
      if (digits > maxDigits) return Infinity;
      continue;
    }
    digits = 0;
    if (tokens > maxInnerTokens) return tokens;
    if (code === quote) i = stringEnd(text, i + 1);
    else if (code === 0x2c || code === 0x3a) tokens += 1;
    else if (code === 0x7b || code === 0x5b) {
      tokens += 1;
      depth += 1;
      if (depth > maxDepth) return Infinity;
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return tokens;
}

/** Where a string closes that begins before `from`; the end of the text when it does not. */
export function stringEnd(text: string, from: number): number {
  let i = from;
  for (; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === quote) break;
    if (code === backslash) i += 1;
  }
  return i;
}

/** As `tryParse`; undefined also for what is too deep or has too many values. */
export function tryParseInner(text: string): Json | undefined {
  // No shorter one can be deep, and a hundred values cost nothing.
  if (text.length > maxDepth && innerTokens(text) > maxInnerTokens) return undefined;
  return tryParse(text);
}

/** As `tryParseInner`, for text that must be an object. */
export function tryParseInnerObject(text: string): JsonObject | undefined {
  const value = tryParseInner(text);
  return isObject(value) ? value : undefined;
}
