/** The real clocks. */
import { randomFillSync } from 'node:crypto';
import type { Clock, Later, NewId } from '../core/runtime.ts';

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
};

export const later: Later = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

// Unguessable ids from a pool of random bytes: one system call serves hundreds of ids.

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const timeLength = 8;
const randomLength = 16;
const pool = Buffer.allocUnsafe(8192);
/** Random characters for the next ids. */
let characters = '';
let used = 0;
let timeText = '';
let timeOf = -1;

/**
 * `prefix`, the time in 8 characters of base62 and 16 random ones (95 bits). Ids in the order of time
 * keep the ledger's index compact: random ones would touch a page of it for every row.
 */
export const newId: NewId = (prefix) => {
  const now = Date.now();
  if (now !== timeOf) {
    timeOf = now;
    timeText = base62(now);
  }
  if (used + randomLength > characters.length) refill();
  const from = used;
  used += randomLength;
  return prefix + timeText + characters.slice(from, used);
};

/** Many ids' characters at once: one by one they would take a string for each. */
function refill(): void {
  randomFillSync(pool);
  let kept = 0;
  for (const byte of pool) {
    const code = alphabet.charCodeAt(byte & 63);
    // 62 and 63 have no character: taking them modulo 62 would favour two of them.
    if (Number.isNaN(code)) continue;
    pool[kept] = code;
    kept += 1;
  }
  characters = pool.toString('latin1', 0, kept);
  used = 0;
}

function base62(value: number): string {
  let text = '';
  let rest = value;
  while (text.length < timeLength) {
    text = (alphabet[rest % 62] ?? '') + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
