/** Takes a top-level member out of a body and leaves all other bytes alone. */
import type { JsonSource } from '../../core/json.ts';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;

/** The body without the member; the body itself when it has none. */
export function cutMember(source: JsonSource, key: string): Buffer {
  const { bytes, spans, unambiguous, value } = source;
  const span = spans.get(key);
  if (span === undefined) return bytes;
  const start = unambiguous ? keyStart(bytes, span.start, key) : -1;
  if (start === -1) {
    const { [key]: _cut, ...rest } = value;
    return Buffer.from(JSON.stringify(rest));
  }
  const behind = skipSpace(bytes, span.end);
  if (bytes[behind] === comma) {
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(skipSpace(bytes, behind + 1))]);
  }
  const before = skipSpaceBack(bytes, start);
  const from = bytes[before - 1] === comma ? before - 1 : start;
  return Buffer.concat([bytes.subarray(0, from), bytes.subarray(span.end)]);
}

/** Offset of the key's opening quote; -1 when the key is spelled with escapes. */
function keyStart(bytes: Buffer, valueStart: number, key: string): number {
  let i = skipSpaceBack(bytes, valueStart);
  if (bytes[i - 1] !== colon) return -1;
  i = skipSpaceBack(bytes, i - 1);
  const text = Buffer.from(JSON.stringify(key));
  const start = i - text.length;
  return start >= 0 && bytes[start] === quote && text.compare(bytes, start, i) === 0 ? start : -1;
}

function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (isSpace(bytes[i])) i += 1;
  return i;
}

function skipSpaceBack(bytes: Buffer, from: number): number {
  let i = from;
  while (isSpace(bytes[i - 1])) i -= 1;
  return i;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
