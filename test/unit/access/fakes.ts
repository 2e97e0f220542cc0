/** Clock, randomness and log as tests hold them. */
import type { Clock, Log } from '../../../src/core/runtime.ts';

export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
};

/** A clock that stands still until it is moved. */
export class HeldClock implements Clock {
  time = 1_000_000;

  now(): number {
    return this.time;
  }

  wall(): number {
    return Date.UTC(2026, 2, 1) + this.time;
  }
}

/** Bytes that look random and are the same in each run. */
export function countingBytes(seed = 1): (count: number) => Uint8Array {
  let state = seed;
  return (count) => {
    const bytes = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      bytes[i] = state >>> 24;
    }
    return bytes;
  };
}
