/**
 * What the frames of an answer have in common: from one piece of text to the next nothing changes but that text, as a
 * rule. Such a frame is recognised by the bytes around its text, and only the text is read.
 */
import { harmlessLength, parseExactly, tryParseEvent } from '../../json/parse.ts';
import type { JsonObject } from '../../json/value.ts';

/** How a dialect writes an event that continues a text. */
export interface LayoutRules {
  /** Finds the member with the text, up to the opening quote of its value. */
  readonly text: RegExp;
  /** The text of an event that only continues a text. Undefined for any other event. */
  textOf(event: JsonObject): string | undefined;
  /** Patterns for members whose value differs in each event and is no part of the answer, up to that value. */
  readonly passing?: readonly RegExp[];
}

/** The number of failed layouts after which a server is treated as one that changes other members with every frame. */
const maxMisses = 3;
/** A placeholder for the text while a layout is tested. No answer contains it. */
const probe = 'piece-of-text-in-its-place';

/** A value that differs from frame to frame. */
interface Gap {
  readonly kind: 'text' | 'string' | 'number';
  readonly start: number;
  readonly end: number;
}

const quote = 0x22;
const backslash = 0x5c;

/** Of one stream. */
export class PlainLayout {
  readonly #rules: LayoutRules;
  /** What is before the first gap, between two gaps, and after the last one; none = no layout is known. */
  #fixed: readonly string[] = [];
  #kinds: readonly Gap['kind'][] = [];
  /** The number of layouts that matched only the frame from which they were learned. */
  #misses = 0;

  constructor(rules: LayoutRules) {
    this.#rules = rules;
  }

  /**
   * The text of a frame that is like the one before; undefined for any other. It is what a parse of the frame would
   * find: all else is the same, to the letter, but for values that say nothing.
   */
  textOf(data: string): string | undefined {
    const fixed = this.#fixed;
    if (fixed.length === 0 || data.length > harmlessLength) return undefined;
    const kinds = this.#kinds;
    let at = 0;
    let start = 0;
    let end = 0;
    for (let i = 0; i < kinds.length; i += 1) {
      const before = fixed[i] ?? '';
      // A comparison of slices takes words at a time, `startsWith` letters.
      const from = at + before.length;
      if (data.slice(at, from) !== before) return undefined;
      const kind = kinds[i];
      at = kind === 'number' ? numberEnd(data, from) : stringEnd(data, from);
      if (kind === 'text') {
        start = from;
        end = at;
      } else if (at === from || (kind === 'string' && !isPlain(data, from, at))) return undefined;
    }
    if (end === start || data.slice(at) !== fixed[kinds.length]) return undefined;
    const text = stringOf(data.slice(start - 1, end + 1));
    if (text !== undefined) this.#misses = 0;
    return text;
  }

  /** Learns from a parsed frame that has only a piece of text. */
  learn(data: string): void {
    this.#fixed = [];
    if (this.#misses === maxMisses || data.length > harmlessLength) return;
    this.#misses += 1;
    const gaps = this.#gapsIn(data);
    if (gaps === undefined || data.includes(probe)) return;
    const fixed = gaps.map(({ start }, i) => data.slice(gaps[i - 1]?.end ?? 0, start));
    fixed.push(data.slice(gaps.at(-1)?.end));
    // A quote after a backslash begins no string. Without any, those around the gaps do, or the probe is not JSON.
    if (fixed.some((part) => part.includes('\\'))) return;
    const kinds = gaps.map(({ kind }) => kind);
    const tried = fixed.map((part, i) => part + probeOf(kinds[i])).join('');
    const event = tryParseEvent(tried);
    if (event === undefined || this.#rules.textOf(event) !== probe) return;
    this.#fixed = fixed;
    this.#kinds = kinds;
  }

  /** In their order; undefined where the text is not found, or lies in another value. */
  #gapsIn(data: string): readonly Gap[] | undefined {
    const { text, passing = [] } = this.#rules;
    const found = text.exec(data);
    if (found === null) return undefined;
    const start = found.index + found[0].length;
    const gaps: Gap[] = [{ kind: 'text', start, end: stringEnd(data, start) }];
    for (const each of passing) {
      const member = each.exec(data);
      if (member === null) continue;
      const from = member.index + member[0].length;
      const kind = data.charCodeAt(from - 1) === quote ? 'string' : 'number';
      const end = kind === 'string' ? stringEnd(data, from) : numberEnd(data, from);
      gaps.push({ kind, start: from, end });
    }
    gaps.sort((one, other) => one.start - other.start);
    return gaps.some((gap, i) => gap.start < (gaps[i - 1]?.end ?? 0)) ? undefined : gaps;
  }
}

function probeOf(kind: Gap['kind'] | undefined): string {
  if (kind === undefined) return '';
  return kind === 'number' ? '1' : probe;
}

/** Whether this is a part of a string without escapes. */
function isPlain(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === backslash) return false;
  }
  return true;
}

/** The end of the digits. The beginning for a number that is invalid in JSON, or long. */
function numberEnd(text: string, from: number): number {
  let i = from;
  for (let code = text.charCodeAt(i); code >= 0x30 && code <= 0x39;) {
    i += 1;
    code = text.charCodeAt(i);
  }
  const leadingZero = i > from + 1 && text.charCodeAt(from) === 0x30;
  return leadingZero || i - from > 15 ? from : i;
}

/** The end of the string that begins after this quote. */
function stringEnd(text: string, from: number): number {
  const next = text.indexOf('"', from);
  if (next !== -1 && text.charCodeAt(next - 1) !== backslash) return next;
  let i = from;
  for (let code = text.charCodeAt(i); i < text.length && code !== quote;) {
    i += code === backslash ? 2 : 1;
    code = text.charCodeAt(i);
  }
  return i;
}

/** The text that is written with its quotes; undefined where that is more or less than one JSON string. */
function stringOf(written: string): string | undefined {
  try {
    const text = parseExactly(written, false);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}
