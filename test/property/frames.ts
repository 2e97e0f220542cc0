/** Bytes in any split, and the frames that they make. */
import type { Frame } from '../../src/core/dialect.ts';
import { SseSplitter } from '../../src/wire/sse.ts';

/** Splits bytes at the given places (taken modulo the length). */
export function pieces(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort(
    (a, b) => a - b,
  );
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length));
}

export function framesIn(bytes: Buffer, places: readonly number[]): readonly Frame[] {
  const splitter = new SseSplitter();
  const frames = pieces(bytes, places).flatMap((piece) => splitter.push(piece));
  const last = splitter.end();
  return last === undefined ? frames : [...frames, last];
}
