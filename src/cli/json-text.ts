/** Changes values inside the text of a JSON file, comments and trailing commas allowed; all other text stays as it is. */
import type { Json } from '../json/value.ts';
import { tryParse } from '../json/parse.ts';
import { isElement, placed, type Step } from './clients/client.ts';

/** A value and where it stands: `text.slice(start, end)`. */
interface Node {
  readonly start: number;
  readonly end: number;
  readonly value: Json;
  /** Of an object or a list, in order. */
  readonly children?: readonly Child[];
}

interface Child {
  readonly key?: string;
  /** Where its key stands, or itself. */
  readonly start: number;
  readonly node: Node;
  /** Where the comma behind it stands. */
  readonly comma?: number;
}

/**
 * The value at a path; undefined where there is none.
 * @throws Error with the line where the text is not JSON.
 */
export function jsonAt(text: string, path: readonly Step[]): Json | undefined {
  return found(new Reader(text).document(), path).node?.value;
}

/**
 * The text with a value at a path. What is missing on the way is made, behind what is there.
 * @throws Error where the text is not JSON, or where the path leads through a value that is not an object or list.
 */
export function withJsonAt(text: string, path: readonly Step[], value: Json): string {
  const root = new Reader(text).document();
  const { node, parent, depth } = found(root, path);
  if (node !== undefined) {
    const written = jsonText(value, text, node.start);
    return text.slice(0, node.start) + written + text.slice(node.end);
  }
  const [step, ...rest] = path.slice(depth);
  const isObject = !Array.isArray(parent.value);
  if (parent.children === undefined || isObject !== (typeof step === 'string')) {
    const name = path.slice(0, depth).map(stepText).join('.');
    throw new Error(
      `${name === '' ? 'the whole' : name} is not ${typeof step === 'string' ? 'an object' : 'a list'}`,
    );
  }
  if (typeof step === 'string') return inserted(text, parent, placed(undefined, rest, value), step);
  return inserted(text, parent, placed({ ...step }, rest, value));
}

/**
 * The text without the member at a path; the same text where there is none.
 * @throws Error where the text is not JSON.
 */
export function withoutJsonAt(text: string, path: readonly Step[]): string {
  const root = new Reader(text).document();
  const { node } = found(root, path);
  const siblings = found(root, path.slice(0, -1)).node?.children ?? [];
  const at = siblings.findIndex((child) => child.node === node);
  const member = siblings[at];
  if (member === undefined) return text;
  const { comma, start } = member;
  const behind = comma ?? member.node.end;
  const tail =
    text.slice(member.node.end, behind) + text.slice(comma === undefined ? behind : behind + 1);
  const cut = comma === undefined ? siblings[at - 1]?.comma : undefined;
  const head =
    cut === undefined ? text.slice(0, start) : text.slice(0, cut) + text.slice(cut + 1, start);
  // Its line goes with it where nothing else stands there; the line end in front may be that of a comment.
  const line = head.lastIndexOf('\n') + 1;
  const rest = /^[ \t]*\r?\n/.exec(tail)?.[0];
  if (line === 0 || head.slice(line).trim() !== '' || rest === undefined) return head + tail;
  return head.slice(0, line) + tail.slice(rest.length);
}

/** How messages name a step. */
export function stepText(step: Step): string {
  return typeof step === 'string' ? step : `[${Object.values(step).join(' ')}]`;
}

interface Found {
  /** Absent where the path ends before. */
  readonly node?: Node;
  /** The deepest node on the way. */
  readonly parent: Node;
  /** Steps that lead to it. */
  readonly depth: number;
}

function found(root: Node, path: readonly Step[]): Found {
  let at = root;
  for (const [depth, step] of path.entries()) {
    const children = at.children ?? [];
    const next = children.findLast(({ key, node }) =>
      typeof step === 'string' ? key === step : key === undefined && isElement(node.value, step),
    );
    if (next === undefined) return { parent: at, depth };
    at = next.node;
  }
  return { node: at, parent: at, depth: path.length };
}

function inserted(text: string, parent: Node, value: Json, key?: string): string {
  const { children = [], start, end } = parent;
  const last = children.at(-1)?.node;
  const inner = `${indentAt(text, start)}${indentStep(text)}`;
  const name = key === undefined ? '' : `${JSON.stringify(key)}: `;
  if (last === undefined) {
    // Comments inside stay in front of it.
    const before = text.slice(start, end - 1).trimEnd();
    const written = indented(value, inner, indentStep(text));
    return `${text.slice(0, start)}${before}\n${inner}${name}${written}\n${indentAt(text, start)}${text.slice(end - 1)}`;
  }
  const isOneLine = !text.slice(start, end).includes('\n');
  const gap = isOneLine ? ' ' : `\n${inner}`;
  const written = isOneLine ? JSON.stringify(value) : indented(value, inner, indentStep(text));
  return `${text.slice(0, last.end)},${gap}${name}${written}${text.slice(last.end)}`;
}

function jsonText(value: Json, text: string, at: number): string {
  return indented(value, indentAt(text, at), indentStep(text));
}

function indented(value: Json, indent: string, step: string): string {
  return JSON.stringify(value, null, step).replaceAll('\n', `\n${indent}`);
}

/** The white space in front of the line that holds a place. */
function indentAt(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
  return /^[ \t]*/.exec(line)?.[0] ?? '';
}

/** What the file indents with; two spaces where it does not say. */
function indentStep(text: string): string {
  return /^[{[]\s*?\n([ \t]+)/.exec(text.trimStart())?.[1] ?? '  ';
}

const blank = /[\s\uFEFF]+/y;
const lineComment = /\/\/[^\n]*/y;
const scalar = /"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/y;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): Node {
    this.#skip();
    const node = this.#node();
    this.#skip();
    if (this.#at < this.#text.length) this.#fail();
    return node;
  }

  #node(): Node {
    const opening = this.#text[this.#at];
    if (opening === '{' || opening === '[') return this.#container(opening === '{');
    const start = this.#at;
    const value = this.#scalar();
    return { start, end: this.#at, value };
  }

  #container(isObject: boolean): Node {
    const start = this.#at++;
    const closing = isObject ? '}' : ']';
    const children: Child[] = [];
    for (;;) {
      this.#skip();
      if (this.#take(closing)) break;
      const from = this.#at;
      const key = isObject ? this.#key() : undefined;
      const node = this.#node();
      this.#skip();
      const comma = this.#text[this.#at] === ',' ? { comma: this.#at } : {};
      children.push({ ...(key === undefined ? {} : { key }), start: from, node, ...comma });
      if (this.#take(',')) continue;
      if (this.#take(closing)) break;
      this.#fail();
    }
    const values = children.map(({ node }) => node.value);
    const value = isObject
      ? Object.fromEntries(children.map(({ key, node }) => [key, node.value]))
      : values;
    return { start, end: this.#at, value, children };
  }

  #key(): string {
    const key = this.#scalar();
    this.#skip();
    if (typeof key !== 'string' || !this.#take(':')) this.#fail();
    this.#skip();
    return key;
  }

  #scalar(): Json {
    scalar.lastIndex = this.#at;
    const token = scalar.exec(this.#text)?.[0] ?? this.#fail();
    const value = tryParse(token) ?? (token === 'null' ? null : this.#fail());
    this.#at += token.length;
    return value;
  }

  /** Blanks and comments. */
  #skip(): void {
    for (let from = -1; from !== this.#at;) {
      from = this.#at;
      this.#pass(blank);
      this.#pass(lineComment);
      const end = this.#text.startsWith('/*', this.#at)
        ? this.#text.indexOf('*/', this.#at + 2)
        : -1;
      if (end !== -1) this.#at = end + 2;
    }
  }

  #pass(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    this.#at += pattern.exec(this.#text)?.[0].length ?? 0;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #fail(): never {
    const line = this.#text.slice(0, this.#at).split('\n').length;
    throw new Error(`line ${line} is not JSON`);
  }
}
