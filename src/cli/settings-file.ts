/** Edits another program's settings file: keeps what it does not touch, leaves a backup. */
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { dirname } from 'node:path';
import { isMap, isScalar, isSeq, parseDocument, type Document } from 'yaml';
import { isObject, type Json } from '../json/value.ts';
import {
  isElement,
  placed,
  type SettingsEdit,
  type SettingsFile,
  type Step,
} from './clients/client.ts';
import { tryParse } from '../json/parse.ts';

// Changes values inside the text of a JSON file, comments and trailing commas allowed; all other text stays as it is.

/** A value and where it is: `text.slice(start, end)`. */
interface Node {
  readonly start: number;
  readonly end: number;
  readonly value: Json;
  /** Of an object or a list, in order. */
  readonly children?: readonly Child[];
}

interface Child {
  readonly key?: string;
  /** Where its key is, or itself. */
  readonly start: number;
  readonly node: Node;
  /** Where the comma after it is. */
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
 * The text with a value at a path. What is missing on the way is made, after what is there.
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
  // Its line goes with it where nothing else is there; the line end in front may be that of a comment.
  const line = head.lastIndexOf('\n') + 1;
  const rest = /^[ \t]*\r?\n/.exec(tail)?.[0];
  if (line === 0 || head.slice(line).trim() !== '' || rest === undefined) return head + tail;
  return head.slice(0, line) + tail.slice(rest.length);
}

/** How messages name a step. */
function stepText(step: Step): string {
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

/** The indentation of the line at an offset. */
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

export interface EditedFile {
  /** One line for each value that changed; empty when all were set already. */
  readonly changes: readonly string[];
  /** Where the old content is stored; absent when there was none or nothing changed. */
  readonly backup?: string;
}

/** The text of a settings file, edit by edit. */
interface SettingsText {
  at(path: readonly Step[]): Json | undefined;
  /** @param value undefined removes what is there. */
  set(path: readonly Step[], value: Json | undefined): void;
  text(): string;
}

/**
 * Applies the edits; comments and the order of what is there stay. The new file is complete or not there at
 * all, and is for its owner only where a key was written into it (S25).
 * @throws Error with the file's name where it is a link or no file, cannot be read as its format or cannot be
 * written; it is left as it was.
 */
export function editSettings(
  file: string,
  format: SettingsFile['format'],
  edits: readonly SettingsEdit[],
): EditedFile {
  const stats = ownFile(file);
  const old = stats === undefined ? undefined : readFileSync(file, 'utf8');
  const { changes, text } = edited(file, { format, old: old ?? '' }, edits);
  if (changes.length === 0) return { changes };
  const backup = stats === undefined ? undefined : keepCopy(file, stats);
  mkdirSync(dirname(file), { recursive: true });
  const isSecret = edits.some(({ secret }) => secret === true);
  replaceFile(file, text, isSecret ? 0o600 : stats === undefined ? undefined : stats.mode & 0o777);
  return { changes, ...(backup === undefined ? {} : { backup }) };
}

/** @throws Error where something else than a file is there. */
function ownFile(file: string): Stats | undefined {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats?.isSymbolicLink() === true) {
    throw new Error(
      `${file} is a link to ${readlinkSync(file)}; it was left as it is. Name the file itself with --file.`,
    );
  }
  if (stats?.isFile() === false) throw new Error(`${file} is not a file; it was left as it is.`);
  return stats;
}

interface OldText {
  readonly format: SettingsFile['format'];
  readonly old: string;
}

function edited(
  file: string,
  { format, old }: OldText,
  edits: readonly SettingsEdit[],
): { readonly changes: readonly string[]; readonly text: string } {
  const changes: string[] = [];
  try {
    const settings = format === 'json' ? new JsonSettings(old) : new YamlSettings(old);
    for (const edit of edits) {
      const before = settings.at(edit.path);
      if (JSON.stringify(before) === JSON.stringify(edit.value)) continue;
      if (edit.onlyIfMissing === true && before !== undefined) continue;
      settings.set(edit.path, edit.value);
      changes.push(changeText(edit, before));
    }
    return { changes, text: settings.text() };
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read';
    throw new Error(`${file} was left as it is: ${why}.`, { cause: error });
  }
}

class JsonSettings implements SettingsText {
  #text: string;

  constructor(text: string) {
    this.#text = text.trim() === '' ? '{}\n' : text;
  }

  at(path: readonly Step[]): Json | undefined {
    return jsonAt(this.#text, path);
  }

  set(path: readonly Step[], value: Json | undefined): void {
    this.#text =
      value === undefined ? withoutJsonAt(this.#text, path) : withJsonAt(this.#text, path, value);
  }

  text(): string {
    return this.#text;
  }
}

class YamlSettings implements SettingsText {
  readonly #document: Document;

  constructor(text: string) {
    this.#document = parseDocument(text);
    const [error] = this.#document.errors;
    if (error !== undefined) throw new Error(error.message.split('\n')[0]?.replace(/:$/, ''));
  }

  at(path: readonly Step[]): Json | undefined {
    const { keys, missing } = this.#keys(path);
    if (missing.length > 0) return undefined;
    const value: Json | undefined = this.#json(keys);
    return value;
  }

  set(path: readonly Step[], value: Json | undefined): void {
    const { keys, missing } = this.#keys(path);
    if (value === undefined) return void this.#document.deleteIn(keys);
    const [step, ...rest] = missing;
    if (step === undefined) return this.#document.setIn(keys, this.#document.createNode(value));
    const parent = keys.length === 0 ? this.#document.contents : this.#document.getIn(keys, true);
    const isRight = typeof step === 'string' ? isMap(parent) : isSeq(parent);
    const isEmpty = parent === null || parent === undefined || isNull(parent);
    if (!isEmpty && !isRight) {
      const name = keys.length === 0 ? 'the whole' : keys.join('.');
      throw new Error(`${name} is not ${typeof step === 'string' ? 'an object' : 'a list'}`);
    }
    const made = placed(undefined, missing, value);
    if (!isRight) {
      const node = this.#document.createNode(made);
      if (keys.length === 0) this.#document.contents = node;
      else this.#document.setIn(keys, node);
    } else if (typeof step === 'string') {
      const node = this.#document.createNode(placed(undefined, rest, value));
      this.#document.setIn([...keys, step], node);
    } else {
      this.#document.addIn(keys, this.#document.createNode(placed({ ...step }, rest, value)));
    }
  }

  text(): string {
    return this.#document.toString({ lineWidth: 0 });
  }

  #json(keys: readonly (string | number)[]): Json | undefined {
    let at: Json | undefined = this.#document.toJS() ?? undefined;
    for (const key of keys) {
      if (Array.isArray(at)) at = at[Number(key)];
      else at = isObject(at) ? at[key] : undefined;
    }
    return at;
  }

  /** The path as far as it is there, elements by their index, and the missing rest of it. */
  #keys(path: readonly Step[]): { keys: readonly (string | number)[]; missing: readonly Step[] } {
    const keys: (string | number)[] = [];
    for (const [depth, step] of path.entries()) {
      const at = this.#json(keys);
      const key =
        typeof step === 'string'
          ? step
          : Array.isArray(at)
            ? at.findIndex((item) => isElement(item, step))
            : -1;
      if (key === -1 || this.#json([...keys, key]) === undefined) {
        return { keys, missing: path.slice(depth) };
      }
      keys.push(key);
    }
    return { keys, missing: [] };
  }
}

/** `name:` with nothing after it. */
function isNull(node: unknown): boolean {
  return isScalar(node) && node.value === null;
}

function replaceFile(path: string, text: string, mode: number | undefined): void {
  const fresh = `${path}.new-${process.pid}`;
  try {
    writeFileSync(fresh, text, mode === undefined ? {} : { mode });
    if (mode !== undefined && process.platform !== 'win32') chmodSync(fresh, mode);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

function changeText({ path, value, secret }: SettingsEdit, before: Json | undefined): string {
  const name = path.map(stepText).join('.');
  if (value === undefined) return `${name} removed (was ${JSON.stringify(before)})`;
  if (secret === true) return `${name} ${before === undefined ? 'set' : 'replaced'}`;
  const now = `${name} = ${JSON.stringify(value)}`;
  return before === undefined ? now : `${now} (was ${JSON.stringify(before)})`;
}

/**
 * Copies the file under the first free name in the same folder, readable by the owner only: it may contain an
 * old key.
 */
function keepCopy(path: string, { mode }: Stats): string {
  for (let n = 0; ; n++) {
    const copy = n === 0 ? `${path}.bak` : `${path}.bak${n}`;
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') continue;
      throw error;
    }
    if (process.platform !== 'win32') chmodSync(copy, mode & 0o700);
    return copy;
  }
}
