/** Finds members of a JSON object in its bytes, so that one value can be replaced in place. */
import type { Span } from '../../core/json.ts';

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/**
 * The span of a member's value in the object that opens at `start`; undefined when there is none or
 * the bytes are no JSON object. Stops as soon as the member is found.
 * @param key the key with its quotes.
 */
export function memberSpan(bytes: Buffer, start: number, key: Buffer): Span | undefined {
  if (bytes[start] !== openBrace) return undefined;
  let at = skipSpace(bytes, start + 1);
  while (bytes[at] === quote) {
    const keyEnd = stringEnd(bytes, at) + 1;
    const isWanted = key.compare(bytes, at, keyEnd) === 0;
    const behindKey = skipSpace(bytes, keyEnd);
    if (bytes[behindKey] !== colon) return undefined;
    const valueStart = skipSpace(bytes, behindKey + 1);
    const end = valueEnd(bytes, valueStart);
    if (end > bytes.length) return undefined;
    if (isWanted) return { start: valueStart, end };
    const next = skipSpace(bytes, end);
    if (bytes[next] !== comma) return undefined;
    at = skipSpace(bytes, next + 1);
  }
  return undefined;
}

function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (isSpace(bytes[i])) i += 1;
  return i;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Offset behind the value that starts at `start`; beyond the bytes when it has no end. */
function valueEnd(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === quote) return stringEnd(bytes, start) + 1;
  if (first === openBrace || first === openBracket) return bracketEnd(bytes, start);
  let i = start;
  while (i < bytes.length && !endsScalar(bytes[i])) i += 1;
  return i;
}

function bracketEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let i = start; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === quote) i = stringEnd(bytes, i);
    else if (byte === openBrace || byte === openBracket) depth += 1;
    else if (byte === closeBrace || byte === closeBracket) {
      depth -= 1;
      if (depth === 0) return i + 1;
    }
  }
  return bytes.length + 1;
}

function endsScalar(byte: number | undefined): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte);
}

/** Offset of the closing quote; the end of the bytes when there is none. */
function stringEnd(bytes: Buffer, start: number): number {
  let i = start + 1;
  while (i < bytes.length && bytes[i] !== quote) i += bytes[i] === backslash ? 2 : 1;
  return i;
}
