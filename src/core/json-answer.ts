/**
 * JSON that an upstream sent: an answer, or an event of one. Whoever stands there may be hostile or broken, and
 * all other calls wait for a parse: depth and the number of values are looked at before, as in requests (G11).
 */
import type { JsonObject } from './conversation.ts';
import { GatewayError } from './errors.ts';
import { isDigit, maxDepth, maxDigits, quote } from './json-bytes.ts';
import { innerTokens, maxInnerTokens } from './json-inner.ts';
import { parseInSteps } from './json-steps.ts';
import {
  parseNumbers,
  spliceMembers,
  stringEnd,
  tryParseEvent,
  tryParseObject,
  type Spliceable,
} from './json.ts';
import { Pieces } from './pieces.ts';

/**
 * Brackets that open, commas and colons of a document. Log probabilities of twenty words for each of some
 * thousand tokens are the most that is known; these take 0.08 s.
 */
export const maxAnswerTokens = 1_000_000;
/** What is shorter is nested too little to harm, and has few values: nearly all events of streams. */
export const harmlessLength = 1024;

/** Whether a document is nested no deeper than a request may be, and has no more values than any answer. */
// One loop because it runs for every byte outside of strings.
// oxlint-disable-next-line eslint/complexity
export function isBoundedAnswer(bytes: Buffer): boolean {
  if (bytes.length <= harmlessLength) return true;
  let [tokens, depth, digits] = [0, 0, 0];
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (isDigit(byte)) {
      digits += 1;
      if (digits > maxDigits) return false;
      continue;
    }
    digits = 0;
    if (byte === quote) i = stringEnd(bytes, i + 1);
    else if (byte === 0x2c || byte === 0x3a) tokens += 1;
    else if (byte === 0x7b || byte === 0x5b) {
      tokens += 1;
      depth += 1;
      if (depth > maxDepth) return false;
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
    if (tokens > maxAnswerTokens) return false;
  }
  return true;
}

/** An answer that is a whole document. */
export interface WholeDocument {
  readonly bytes: Buffer;
  readonly body: JsonObject;
  /** Where its members stand, so that nobody has to parse it again for that; absent = not known. */
  readonly layout?: Pick<Spliceable, 'spans' | 'bodyStart'>;
}

/**
 * A long document in UTF-8, parsed with turns for others in between. Undefined for what cannot be read so, which need
 * not be wrong: an answer may have more values than a request.
 */
export async function parseAnswerInSteps(bytes: Buffer): Promise<WholeDocument | undefined> {
  try {
    const { value, spans, bodyStart, keys, colons } = await parseInSteps(bytes, {
      parse: parseNumbers,
    });
    if (value === undefined) return undefined;
    // Of keys that stand twice it is not told where the one is that counts.
    const layout = keys === colons ? { layout: { spans, bodyStart } } : {};
    return { bytes, body: value, ...layout };
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

/** The document with some members set, in its own bytes; undefined where it is not known where they stand. */
export function spliceAnswer(
  { bytes, body, layout }: WholeDocument,
  members: { readonly [key: string]: string | undefined },
): Buffer | undefined {
  if (layout === undefined) return undefined;
  const source = { pieces: Pieces.of(bytes), value: body, unambiguous: true, ...layout };
  return spliceMembers(source, members).whole();
}

/** An event of a stream with the numbers as they are (`tryParseEvent`); undefined also beyond the bounds. */
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
