/**
 * JSON whose integers keep all their digits. A JavaScript number holds integers up to 2^53; ids beyond
 * that stand in tool arguments, and changing one is a wrong call (translation.md §3.6).
 */
import type { Json, JsonObject } from './conversation.ts';

declare global {
  // ECMAScript 2026 "JSON.parse source text access"; in Node since 22, not in the compiler's library.
  interface JSON {
    rawJSON(text: string): JsonObject;
    isRawJSON(value: unknown): boolean;
    parse(
      text: string,
      reviver: (key: string, value: Json, context: { readonly source?: string }) => Json,
    ): Json;
  }
}

/** So many digits in a row: below that every integer is exact. */
export const digitsAtRisk = 16;
/** What stands before a number in JSON. Digits behind a quote or a letter are part of a text: most ids are. */
const longNumber = new RegExp(`(?:^|[\\s:,[])-?\\d{${digitsAtRisk}}`);
const integer = /^-?\d+$/;

/** Whether the text, which is JSON, may hold an integer that a plain `JSON.parse` would change. */
export function mayLoseDigits(text: string): boolean {
  return longNumber.test(text);
}

/** For `JSON.parse`: integers beyond 2^53 become raw JSON, which `JSON.stringify` writes as it was. */
export function keepDigits(
  _key: string,
  value: Json,
  { source }: { readonly source?: string },
): Json {
  // What is infinite here is infinite to others too: it stays a number and is refused as one (B41).
  if (typeof value !== 'number' || Number.isSafeInteger(value) || !Number.isFinite(value)) {
    return value;
  }
  return source !== undefined && integer.test(source) ? JSON.rawJSON(source) : value;
}
