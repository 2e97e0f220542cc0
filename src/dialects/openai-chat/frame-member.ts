/** Finds a top-level member of the JSON object in a frame, in the bytes, without parsing it. */

export interface MemberSpan {
  /** Offset of the key's opening quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Offset behind the value. */
  readonly end: number;
}

const dataField = Buffer.from('data:');

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;

/**
 * @param key the key with its quotes.
 * @returns undefined when the frame has no such member at the top level, or is no valid JSON.
 */
export function findMember(bytes: Buffer, key: Buffer): MemberSpan | undefined {
  return memberOf(bytes, key, bytes.indexOf(0x7b, Math.max(0, bytes.indexOf(dataField))));
}

/** The same for bytes that are one JSON document. */
export function findDocumentMember(bytes: Buffer, key: Buffer): MemberSpan | undefined {
  return memberOf(bytes, key, bytes.indexOf(0x7b));
}

function memberOf(bytes: Buffer, key: Buffer, object: number): MemberSpan | undefined {
  if (object === -1) return undefined;
  // Counted on from one place to the next: a frame may have thousands of such keys within others (S22).
  let depth = 0;
  let counted = object;
  for (let at = bytes.indexOf(key, object); at !== -1; at = bytes.indexOf(key, at + 1)) {
    const valueStart = valueOffset(bytes, at + key.length);
    // An escaped quote before it: this is text inside a string.
    if (valueStart === -1 || bytes[at - 1] === backslash) continue;
    depth += depthAt(bytes, counted, at);
    counted = at;
    if (depth !== 1) continue;
    const end = valueEnd(bytes, valueStart);
    return end === -1 ? undefined : { start: at, valueStart, end };
  }
  return undefined;
}

function valueOffset(bytes: Buffer, behindKey: number): number {
  const at = skipSpace(bytes, behindKey);
  return bytes[at] === colon ? skipSpace(bytes, at + 1) : -1;
}

function skipSpace(bytes: Buffer, from: number): number {
  let i = from;
  while (bytes[i] === 0x20 || bytes[i] === 0x09) i += 1;
  return i;
}

/** How many brackets are open before `end`; strings are skipped. */
function depthAt(bytes: Buffer, start: number, end: number): number {
  let depth = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte === quote) i = stringEnd(bytes, i);
    else if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return depth;
}

/** Offset behind a string, an object or an array; -1 for other values and for broken ones. */
function valueEnd(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === quote) {
    const end = stringEnd(bytes, start);
    return end < bytes.length ? end + 1 : -1;
  }
  if (first !== 0x7b && first !== 0x5b) return -1;
  let depth = 0;
  for (let i = start; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === quote) i = stringEnd(bytes, i);
    else if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
      if (depth === 0) return i + 1;
    }
  }
  return -1;
}

/** Offset of the closing quote of the string that opens at `start`. */
function stringEnd(bytes: Buffer, start: number): number {
  let i = start + 1;
  while (i < bytes.length && bytes[i] !== quote) i += bytes[i] === backslash ? 2 : 1;
  return i;
}
