/** Unguessable ids from a pool of random bytes: one system call serves hundreds of ids. */
import { randomFillSync } from 'node:crypto';
import type { NewId } from '../core/runtime.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const idLength = 24;
const pool = Buffer.allocUnsafe(8192);
let used = pool.length;

/** `prefix` and 24 characters of base62 (142 bits). */
export const newId: NewId = (prefix) => {
  let id = prefix;
  let missing = idLength;
  while (missing > 0) {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const character = alphabet[(pool[used] ?? 63) & 63];
    used += 1;
    // 62 and 63 have no character: taking them modulo 62 would favour two of them.
    if (character === undefined) continue;
    id += character;
    missing -= 1;
  }
  return id;
};
