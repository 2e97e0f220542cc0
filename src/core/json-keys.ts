/**
 * V8 (13.6, Node 24) takes keys for others: once it parsed an object `{"a":…, "\\":…}`, whose key is a
 * backslash, it reads `{"a":…, "\n":…}` with that key, too, in whatever text comes later. Only keys that
 * are written with an escape are misread, and only as keys with a backslash in them: where one comes out,
 * the text is read again, slowly, without objects that V8 knows.
 */
import type { Json } from './conversation.ts';

/** Parses one value that is no object and no array. */
export type ParseScalar = (text: string) => Json;

/** Whether a key in the value has a backslash, so that it may be another. */
export function hasDoubtfulKey(value: Json): boolean {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return false;
  if (Array.isArray(value)) return value.some((item: Json) => hasDoubtfulKey(item));
  for (const [key, item] of Object.entries(value)) {
    if (key.includes('\\') || (item !== undefined && hasDoubtfulKey(item))) return true;
  }
  return false;
}

/** The value of a text that `JSON.parse` takes. */
export function parseKeysExactly(text: string, parseScalar: ParseScalar): Json {
  return new Reader(text, parseScalar).value();
}

const space = /[ \t\n\r]*/y;
const scalar = /[^ \t\n\r,\]}]+/y;
const closing = /["\\]/g;

class Reader {
  readonly #text: string;
  readonly #parseScalar: ParseScalar;
  #at = 0;

  constructor(text: string, parseScalar: ParseScalar) {
    this.#text = text;
    this.#parseScalar = parseScalar;
  }

  value(): Json {
    this.#skip(space);
    const first = this.#text[this.#at];
    if (first === '{') return this.#object();
    if (first === '[') return this.#array();
    return first === '"' ? this.#string() : this.#parseScalar(this.#skip(scalar));
  }

  #object(): Json {
    const members: { [key: string]: Json } = {};
    while (this.#hasNext('}')) {
      const key = this.#string();
      this.#skip(space);
      this.#at += 1;
      const value = this.value();
      Object.defineProperty(members, key, {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    return members;
  }

  #array(): Json {
    const items: Json[] = [];
    while (this.#hasNext(']')) items.push(this.value());
    return items;
  }

  /** Passes over a bracket or a comma; false behind the end. */
  #hasNext(end: string): boolean {
    this.#skip(space);
    if (this.#text[this.#at] === end) {
      this.#at += 1;
      return false;
    }
    this.#at += 1;
    this.#skip(space);
    if (this.#text[this.#at] !== end) return true;
    this.#at += 1;
    return false;
  }

  #string(): string {
    const start = this.#at;
    closing.lastIndex = start + 1;
    for (;;) {
      const found = closing.exec(this.#text);
      if (found?.[0] !== '\\') break;
      closing.lastIndex += 1;
    }
    this.#at = closing.lastIndex;
    // A text by itself has no key that could be another.
    return String(this.#parseScalar(this.#text.slice(start, this.#at)));
  }

  /** What matches here. */
  #skip(expression: RegExp): string {
    expression.lastIndex = this.#at;
    const [passed = ''] = expression.exec(this.#text) ?? [];
    this.#at += passed.length;
    return passed;
  }
}
