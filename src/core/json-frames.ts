/** What is open while a body is parsed in steps (`json-steps.ts`), and where it is wrong. */
import type { Json, JsonObject } from './conversation.ts';
import { skipSpace } from './json-bytes.ts';
import { firstError } from './json-position.ts';

/** A container that is open. Its items are text until a group of them is parsed. */
export interface Frame {
  readonly open: number;
  readonly items: Json[] | undefined;
  readonly members: { [key: string]: Json };
  /** Where the text begins that is not parsed yet. */
  groupStart: number;
  groupTokens: number;
  /** Where the current item (or its key) begins. */
  itemStart: number;
  /** The current item was parsed on its own and ended before this offset. */
  attachedEnd: number | undefined;
  /** Some of it is parsed. */
  begun: boolean;
}

export function isEmpty(value: JsonObject | readonly Json[]): boolean {
  if (Array.isArray(value)) return value.length === 0;
  for (const _ in value) return false;
  return true;
}

/** As `JSON.parse` would: `__proto__` is data, and the last of two twins counts. How many were twins. */
export function assign(members: Frame['members'], more: JsonObject | readonly Json[]): number {
  let twins = 0;
  for (const [key, value] of Object.entries(more)) {
    if (Object.hasOwn(members, key)) twins += 1;
    if (value !== undefined) define(members, key, value);
  }
  return twins;
}

export function define(members: Frame['members'], key: string, value: Json): void {
  if (key !== '__proto__') members[key] = value;
  else {
    Object.defineProperty(members, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
}

/** What stands here, or earlier in text that was not parsed yet, cannot stand there. */
export function firstWrong(bytes: Buffer, stack: readonly Frame[], at: number): number {
  for (const [i, frame] of stack.entries()) {
    const inner = stack.slice(i + 1).find((each) => each.begun);
    const end = inner?.open ?? Math.min(at + 1, bytes.length);
    if (frame.attachedEnd !== undefined) {
      const behind = skipSpace(bytes, frame.attachedEnd);
      if (behind < end) return behind;
      continue;
    }
    if (end <= frame.groupStart) continue;
    const text = bytes.toString('utf8', frame.groupStart, end);
    // A comma before it means that an item must come.
    const opening = frame.items === undefined ? '{' : '[';
    const before = frame.begun ? `${opening}${frame.items === undefined ? '"":0' : '0'},` : opening;
    const found = firstError(before + text);
    if (found < before.length + text.length) {
      const chars = Math.max(0, found - before.length);
      return frame.groupStart + Buffer.byteLength(text.slice(0, chars));
    }
    if (inner === undefined) break;
  }
  return at;
}

/** Line and column, both from 1; columns are counted in UTF-16 units. */
export function positionOf(
  bytes: Buffer,
  offset: number,
): { readonly line: number; readonly column: number } {
  let line = 1;
  let lineStart = 0;
  for (let i = bytes.indexOf(0x0a); i !== -1 && i < offset; i = bytes.indexOf(0x0a, i + 1)) {
    line += 1;
    lineStart = i + 1;
  }
  return { line, column: bytes.toString('utf8', lineStart, offset).length + 1 };
}
