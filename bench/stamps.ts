/**
 * Times in the text of a stream's chunks: the mock writes when a chunk was due, the load generator reads
 * how long it took to arrive. Both processes read one monotonic clock, so the difference is a duration,
 * and a stall anywhere on the way delays every chunk behind it (no coordinated omission).
 */
import { chunkMark } from './bodies.ts';

/** Digits of a stamp, behind the mark: microseconds of the machine's monotonic clock. */
const digits = 16;
export const blankStamp = '0'.repeat(digits);

const mark = chunkMark.charCodeAt(0);

/**
 * What the shared clock shows at 0 of this process's. The narrowest of many readings: a process that loses
 * its core between two clocks would be off by milliseconds for good.
 */
function clockOffsetUs(): number {
  let narrowest = Number.POSITIVE_INFINITY;
  let offset = 0;
  for (let reading = 0; reading < 200; reading++) {
    const before = process.hrtime.bigint();
    const now = performance.now();
    const width = Number(process.hrtime.bigint() - before);
    if (width >= narrowest) continue;
    narrowest = width;
    offset = (Number(before) + width / 2) / 1000 - now * 1000;
  }
  return offset;
}

const offsetUs = clockOffsetUs();

/** A time of `performance.now()` on the clock that all processes of the machine share, in whole µs. */
export function monotonicUs(nowMs: number): number {
  return Math.round(nowMs * 1000 + offsetUs);
}

/** A copy of the chunk, which has a mark and a blank stamp behind it, with that time. */
export function stamped(chunk: Buffer, us: number): Buffer {
  const copy = Buffer.from(chunk);
  copy.write(String(us).padStart(digits, '0'), chunk.indexOf(mark) + 1, 'latin1');
  return copy;
}

/** Finds the stamps in received bytes, however they are cut. One reader an answer. */
export class StampReader {
  private kept: Buffer | undefined;

  /** The times of all stamps that are whole now. One that another framing cuts in two is omitted. */
  push(received: Buffer): number[] {
    const bytes = this.kept === undefined ? received : Buffer.concat([this.kept, received]);
    this.kept = undefined;
    const found: number[] = [];
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 1)) {
      const end = at + 1 + digits;
      if (end > bytes.length) {
        this.kept = Buffer.from(bytes.subarray(at));
        break;
      }
      const text = bytes.toString('latin1', at + 1, end);
      if (/^\d+$/.test(text)) found.push(Number(text));
    }
    return found;
  }
}
