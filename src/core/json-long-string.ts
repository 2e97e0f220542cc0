/** One long string of a body: `JSON.parse` of 60 MB of text would hold up all other calls for half a second (G11). */
import { backslash, isClosing } from './json-bytes.ts';
import type { Steps } from './steps.ts';

/** Bytes of `\u00e9`, the longest escape. */
const longestEscape = 6;
const letterU = 0x75;

export interface LongString {
  /** Behind its opening quote, and before its closing one. */
  readonly start: number;
  readonly end: number;
  /** So many bytes are a step. */
  readonly stepBytes: number;
}

/**
 * The text of a string, some of it in each step.
 * @param parse of JSON; what it throws is thrown.
 */
export function* stringInSteps(
  bytes: Buffer,
  { start, end, stepBytes }: LongString,
  parse: (json: string) => unknown,
): Steps<string> {
  let text = '';
  let at = start;
  while (at < end) {
    const cut = at + stepBytes < end ? wholeUntil(bytes, at, at + stepBytes) : end;
    text += String(parse(`"${bytes.toString('utf8', at, cut)}"`));
    at = cut;
    yield;
  }
  return text;
}

/** The last place before `end` that stands neither in a character nor in an escape. */
function wholeUntil(bytes: Buffer, start: number, end: number): number {
  let cut = end;
  while (((bytes[cut] ?? 0) & 0xc0) === 0x80) cut -= 1;
  for (let at = cut - 1; at > start && at > cut - longestEscape; at -= 1) {
    if (bytes[at] !== backslash) continue;
    // One that was escaped itself begins nothing.
    if (isClosing(bytes, at, start)) {
      const length = bytes[at + 1] === letterU ? longestEscape : 2;
      if (at + length > cut) return at;
    }
    break;
  }
  return cut;
}
