/**
 * Changes a body in its own bytes: what no edit names keeps every byte, so that prompt caches and spellings survive
 * (`JSON.stringify(JSON.parse(x))` reorders integer-like keys and loses digits). Bodies in which a key occurs twice are
 * written anew instead; `replaceMembers`, which is for answers, examines only the keys of the top level.
 */
import { tryParse } from './parse.ts';
import { Pieces } from './pieces.ts';
import { eachMember, keyBefore, readKey, skipSpace, spells, valueEnd, type Span } from './scan.ts';
import { isObject, setMember, type Json, type JsonObject } from './value.ts';

const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;

/** A JSON object with its bytes, as far as an edit of them needs it. */
export interface Spliceable {
  readonly pieces: Pieces;
  readonly value: JsonObject;
  /** Value spans of the top-level keys. */
  readonly spans: ReadonlyMap<string, Span>;
  /** Offset just after the opening brace. */
  readonly bodyStart: number;
  /** No key occurs twice in an object. */
  readonly unambiguous: boolean;
}

/** One edit. Indexes in paths are those of the body before any edit. Of two edits of one value the later one holds. */
export interface JsonEdit {
  readonly path: readonly (string | number)[];
  /**
   * The new value as JSON, an absent member included; its parent must be there. Undefined removes the member or
   * element. Edits inside of a value that is replaced or removed have no effect.
   */
  readonly text: string | undefined;
  /** Arrays only: the text is put before the element of this index, or after the last one. */
  readonly insert?: true;
}

/**
 * The body with the edits.
 * @throws RangeError for a path whose parent is not a container.
 */
export function editJson(source: Spliceable, edits: readonly JsonEdit[]): Pieces {
  if (!source.unambiguous) {
    const edited = editedValue(source.value, editTree(edits));
    return Pieces.of(Buffer.from(JSON.stringify(isObject(edited) ? edited : {})));
  }
  if (edits.length === 0) return source.pieces;
  return spliced(source.pieces, onlyReplacement(source, edits) ?? splicesOf(source, edits));
}

/** Most requests change the value of one member of the top level, whose offsets are known. */
function onlyReplacement(
  { spans }: Spliceable,
  edits: readonly JsonEdit[],
): readonly Splice[] | undefined {
  const edit = edits[0];
  if (edit?.text === undefined || edits.length > 1 || edit.path.length > 1) return undefined;
  const key = edit.path[0];
  const span = typeof key === 'string' ? spans.get(key) : undefined;
  if (span === undefined || edit.insert === true) return undefined;
  return [{ start: span.start, end: span.end, text: edit.text }];
}

function splicesOf(source: Spliceable, edits: readonly JsonEdit[]): readonly Splice[] {
  const editing = new Editing(source);
  editing.body(editTree(edits));
  return editing.splices.sort((a, b) => a.start - b.start || a.end - b.end);
}

function spliced(pieces: Pieces, splices: readonly Splice[]): Pieces {
  const list: Buffer[] = [];
  let position = 0;
  for (const { start, end, text } of splices) {
    pieces.between(position, start, list);
    list.push(Buffer.from(text));
    position = end;
  }
  pieces.between(position, pieces.length, list);
  return list.length > maxPieces ? Pieces.of(Buffer.concat(list)) : new Pieces(list);
}

/** The body with some top-level members set. A value is JSON text; `undefined` leaves the member as it is. */
export function spliceMembers(
  source: Spliceable,
  members: { readonly [key: string]: string | undefined },
): Pieces {
  const edits = Object.entries(members)
    .filter(([, text]) => text !== undefined)
    .map(([key, text]) => ({ path: [key], text }));
  return editJson(source, edits);
}

/**
 * The same for bytes whose members are not known yet, in one pass over the top level.
 * @param value of the bytes
 * @returns undefined if the bytes do not begin with an object, if a key of the top level occurs twice, or if a key to set has escapes or other
 * characters than ASCII
 */
export function replaceMembers(
  bytes: Buffer,
  value: JsonObject,
  members: { readonly [key: string]: string | undefined },
): Buffer | undefined {
  const names = Object.keys(members).filter((name) => members[name] !== undefined);
  const splices: Splice[] = [];
  const found = names.map(() => false);
  const open = skipSpace(bytes, 0);
  let count = 0;
  const end = eachMember(bytes, open, (key, keyEnd, from, to) => {
    count += 1;
    for (let i = 0; i < names.length; i += 1) {
      const name = names[i] ?? '';
      if (!spells(bytes, key + 1, keyEnd - 1, name)) continue;
      found[i] = true;
      splices.push({ start: from, end: to, text: members[name] ?? '' });
    }
  });
  if (end === -1 || count !== Object.keys(value).length) return undefined;
  const fresh = names.filter((_, i) => found[i] !== true);
  if (fresh.some((name) => Object.hasOwn(value, name))) return undefined;
  if (fresh.length > 0) {
    const text = fresh.map((name) => `${JSON.stringify(name)}:${members[name]}`).join(',');
    const start = open + 1;
    splices.unshift({ start, end: start, text: count === 0 ? text : `${text},` });
  }
  return spliced(Pieces.of(bytes), splices).whole();
}

/** The edits of one value, as a tree. */
interface EditNode {
  /** Edits of its members or elements. */
  readonly members: Map<string | number, EditNode>;
  /** Texts that are put before it, in arrays. */
  readonly inserted: string[];
  /** The new value. */
  text: string | undefined;
  removed: boolean;
}

function newNode(): EditNode {
  return { members: new Map(), inserted: [], text: undefined, removed: false };
}

function editTree(edits: readonly JsonEdit[]): EditNode {
  const root = newNode();
  for (const { path, text, insert } of edits) {
    let node = root;
    for (const step of path) {
      const inner = node.members.get(step) ?? newNode();
      node.members.set(step, inner);
      node = inner;
    }
    if (insert === true) {
      node.inserted.push(text ?? 'null');
    } else {
      node.text = text;
      node.removed = text === undefined;
    }
  }
  return root;
}

/** A range of the bytes and its replacement. */
interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

class Editing {
  readonly splices: Splice[] = [];
  readonly #source: Spliceable;

  constructor(source: Spliceable) {
    this.#source = source;
  }

  /** Edits the top level: the offsets of its members are known, and new members come first. */
  body(node: EditNode): void {
    const { spans, bodyStart } = this.#source;
    const isRemoved = (key: string): boolean => node.members.get(key)?.removed === true;
    const fresh = [...node.members].filter(([key]) => !spans.has(String(key)));
    const texts = fresh.flatMap(([key, member]) => newMember(key, member));
    if (texts.length > 0) {
      const more = [...spans.keys()].every(isRemoved) ? '' : ',';
      this.splices.push({ start: bodyStart, end: bodyStart, text: texts.join(',') + more });
    }
    const removes = [...spans.keys()].some(isRemoved);
    const siblings = new Siblings(this.splices, bodyStart);
    for (const [key, { start, end }] of spans) {
      const member = node.members.get(key);
      if (member !== undefined) this.#value(start, member, end);
      if (removes) siblings.add(keyBefore(this.#bytes, start), end, member);
    }
  }

  get #bytes(): Buffer {
    return this.#source.pieces.whole();
  }

  /** @returns where the value ends. */
  #value(at: number, node: EditNode | undefined, known?: number): number {
    if (node !== undefined && isEntered(node)) return this.#container(at, node);
    const end = known ?? valueEnd(this.#bytes, at);
    if (node?.text !== undefined) this.splices.push({ start: at, end, text: node.text });
    return end;
  }

  #container(open: number, node: EditNode): number {
    const bytes = this.#bytes;
    const isArray = bytes[open] === openBracket;
    if (!isArray && bytes[open] !== openBrace) throw noParent(node);
    const siblings = new Siblings(this.splices, open + 1);
    const pending = new Map(node.members);
    let at = skipSpace(bytes, open + 1);
    for (let index = 0; bytes[at] !== closeBracket && bytes[at] !== closeBrace; index += 1) {
      const { key, value } = isArray ? { key: index, value: at } : this.#member(at);
      const member = pending.get(key);
      pending.delete(key);
      const end = this.#value(value, member);
      siblings.add(at, end, member);
      at = skipSpace(bytes, end);
      if (bytes[at] === comma) at = skipSpace(bytes, at + 1);
    }
    siblings.append([...pending].flatMap(([key, member]) => newChild(key, member, isArray)));
    return at + 1;
  }

  #member(start: number): { readonly key: string; readonly value: number } {
    const bytes = this.#bytes;
    const end = valueEnd(bytes, start);
    return {
      key: readKey(bytes, start, end),
      value: skipSpace(bytes, skipSpace(bytes, end) + 1),
    };
  }
}

/** The members of one container and the commas between them, added one after the other. */
class Siblings {
  readonly #splices: Splice[];
  /** The end of the last member, or of the opening bracket. */
  #end: number;
  #first = true;
  /** The edited container has a member so far. */
  #any = false;

  constructor(splices: Splice[], end: number) {
    this.#splices = splices;
    this.#end = end;
  }

  /** @param start where its key begins; in arrays, the value. */
  add(start: number, end: number, node: EditNode | undefined): void {
    const removed = node?.removed === true;
    const texts = node?.inserted.join(',') ?? '';
    if (removed && texts === '') {
      this.#splice(this.#first ? start : this.#end, end, '');
    } else {
      // All members before it were removed, and their commas end here.
      if (!this.#any && !this.#first) this.#splice(this.#end, start, '');
      this.#any = true;
      if (removed) this.#splice(start, end, texts);
      else if (texts !== '') this.#splice(start, start, `${texts},`);
    }
    this.#first = false;
    this.#end = end;
  }

  append(texts: readonly string[]): void {
    if (texts.length === 0) return;
    this.#splice(this.#end, this.#end, (this.#any ? ',' : '') + texts.join(','));
  }

  #splice(start: number, end: number, text: string): void {
    this.#splices.push({ start, end, text });
  }
}

/** A member or element of it is edited. */
function isEntered({ members, text, removed }: EditNode): boolean {
  return members.size > 0 && text === undefined && !removed;
}

/** The text of a member that the object does not have yet; none where an absent member is removed. */
function newMember(key: string | number, node: EditNode): readonly string[] {
  if (isEntered(node) || node.inserted.length > 0) throw noParent(node);
  return node.text === undefined ? [] : [`${JSON.stringify(String(key))}:${node.text}`];
}

function newChild(key: string | number, node: EditNode, isArray: boolean): readonly string[] {
  if (!isArray) return newMember(key, node);
  if (isEntered(node)) throw noParent(node);
  return node.text === undefined ? node.inserted : [...node.inserted, node.text];
}

function noParent({ members }: EditNode): RangeError {
  return new RangeError(`Nothing holds the member ${[...members.keys()].join(', ')} to be edited.`);
}

/** Each piece is a part of one vectored write. */
const maxPieces = 256;

/** The edits applied to a parsed value; undefined where the value is absent or removed. */
function editedValue(value: Json | undefined, node: EditNode | undefined): Json | undefined {
  if (node === undefined) return value;
  if (node.removed) return undefined;
  if (node.text !== undefined) return tryParse(node.text);
  if (node.members.size === 0) return value;
  if (isList(value)) return editedList(value, node);
  if (!isObject(value)) throw noParent(node);
  const edited: { [key: string]: Json } = {};
  for (const key of new Set([...Object.keys(value), ...[...node.members.keys()].map(String)])) {
    const own = Object.hasOwn(value, key) ? value[key] : undefined;
    const member = editedValue(own, node.members.get(key));
    if (member !== undefined) setMember(edited, key, member);
  }
  return edited;
}

function editedList(items: readonly Json[], { members }: EditNode): Json {
  const edited: Json[] = [];
  const length = Math.max(items.length, ...[...members.keys()].map((key) => Number(key) + 1));
  for (let i = 0; i < length; i += 1) {
    const node = members.get(i);
    const item = editedValue(items[i], node);
    for (const text of node?.inserted ?? []) edited.push(tryParse(text) ?? null);
    if (item !== undefined) edited.push(item);
  }
  return edited;
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
