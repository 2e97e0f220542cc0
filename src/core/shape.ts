/**
 * The members that a request or an answer may have, object by object. A dialect writes its own down once. Three things
 * are read from that of a request: names that only a careless reader takes for one of them, members that nothing here
 * knows and that a translation would lose, and the checks of single values (addresses, base64). That of an answer shows
 * the members that a translation would lose.
 */
import type { Json, JsonObject } from '../json/value.ts';
import { type FieldPath, type GatewayError, invalidRequest } from './errors.ts';
import type { Notes } from './notes.ts';

/** A value that nothing is examined inside of: it is carried whole, or read elsewhere. */
export const whole = 'whole';

/** An object; in a list, each object of the list. */
export interface Fields {
  readonly members: ReadonlyMap<string, Shape>;
  /** Other members are carried on, or noted where the object is written. */
  readonly open: boolean;
  /** Those of all kinds of such an object: a reader may know them in each. Absent = `members`. */
  readonly family?: ReadonlyMap<string, Shape>;
  /** The members by what kind of object it is; absent = all objects have the same. */
  readonly kind?: ((value: JsonObject) => Fields) | undefined;
}

export type Shape = typeof whole | Fields;

interface MemberShapes {
  readonly [name: string]: Shape;
}

/** Names of members whose values are carried whole. */
export function wholes(...names: readonly string[]): MemberShapes {
  return Object.fromEntries(names.map((name) => [name, whole]));
}

/** An object with these members, and no others. */
export function fields(members: MemberShapes): Fields {
  return { members: new Map(Object.entries(members)), open: false };
}

/** An object with these members and any others. */
export function openFields(members: MemberShapes): Fields {
  return { ...fields(members), open: true };
}

/**
 * An object whose members depend on its kind.
 * @param otherwise what an object of no known kind may have; by default the members of all kinds, and any others.
 */
export function kinds(
  kindOf: (value: JsonObject) => Json | undefined,
  each: { readonly [kind: string]: Fields },
  otherwise?: Fields,
): Fields {
  const all = [...Object.values(each), ...(otherwise === undefined ? [] : [otherwise])];
  const family = new Map(all.flatMap(({ members }) => [...members]));
  const known = new Map<Json | undefined, Fields>(
    Object.entries(each).map(([kind, its]) => [kind, { ...its, family }]),
  );
  const unknown = { open: true, ...otherwise, members: otherwise?.members ?? family, family };
  return { ...unknown, kind: (value) => known.get(kindOf(value)) ?? unknown };
}

/** A member that the shape does not know. */
interface Stranger {
  readonly fields: Fields;
  readonly key: string;
  readonly value: Json | undefined;
  path(): FieldPath;
}

/** Where a value is: which of those before holds it, and under what name or number. */
type Step = readonly [parent: number, step: string | number];

/** The unchecked rest, and its position; a path is made only for members that are reported. */
class Queue {
  readonly values: (JsonObject | readonly Json[])[] = [];
  readonly shapes: Fields[] = [];
  readonly #parents: number[] = [];
  readonly #steps: (string | number)[] = [];

  add(value: Json | undefined, shape: Fields, [parent, step]: Step): void {
    if (!isInner(value)) return;
    this.values.push(value);
    this.shapes.push(shape);
    this.#parents.push(parent);
    this.#steps.push(step);
  }

  pathOf(at: number): FieldPath {
    const path: (string | number)[] = [];
    for (let i = at; i > 0; i = this.#parents[i] ?? 0) path.unshift(this.#steps[i] ?? '');
    return path;
  }
}

/** Examines each object that the shape knows. @param see called with each member that it does not know. */
function walk(body: JsonObject, shape: Fields, see: (member: Stranger) => void): void {
  const queue = new Queue();
  const { values, shapes } = queue;
  queue.add(body, shape, [0, '']);
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    const given = shapes[at];
    if (value === undefined || given === undefined) continue;
    if (isList(value)) {
      for (let i = 0; i < value.length; i += 1) queue.add(value[i], given, [at, i]);
    } else visit(value, at, { queue, fields: given.kind?.(value) ?? given, see });
  }
}

/** Whether there is nothing to see in a walk, as in nearly all requests. The depth of a body is bounded. */
function knowsAll(value: JsonObject | readonly Json[], shape: Fields): boolean {
  if (isList(value)) {
    for (const item of value) if (isInner(item) && !knowsAll(item, shape)) return false;
    return true;
  }
  const { members } = shape.kind?.(value) ?? shape;
  for (const key in value) {
    const inner = members.get(key);
    if (inner === undefined) return false;
    const item = value[key];
    if (inner !== whole && isInner(item) && !knowsAll(item, inner)) return false;
  }
  return true;
}

function isInner(value: Json | undefined): value is JsonObject | readonly Json[] {
  return typeof value === 'object' && value !== null;
}

interface Visit {
  readonly queue: Queue;
  readonly fields: Fields;
  see(member: Stranger): void;
}

function visit(value: JsonObject, at: number, { queue, fields, see }: Visit): void {
  for (const key in value) {
    const inner = fields.members.get(key);
    if (inner === whole) continue;
    const item = value[key];
    if (inner !== undefined) queue.add(item, inner, [at, key]);
    else see({ fields, key, value: item, path: () => [...queue.pathOf(at), key] });
  }
}

function isList(value: JsonObject | readonly Json[]): value is readonly Json[] {
  return Array.isArray(value);
}

/**
 * A name as case-insensitive readers take it. In addition to what JavaScript folds, these are `K` (U+212A)
 * and `ſ` (Go's `encoding/json`, Unicode's simple folding), and `ı` and `İ` (Java's `equalsIgnoreCase`).
 */
function foldCase(name: string): string {
  return name.toUpperCase().toLowerCase().replaceAll('\u0307', '');
}

/** As JSON readers of protocol buffers take names: `maxTokens` is `max_tokens` to them. */
function foldForm(name: string): string {
  return foldCase(name).replaceAll(/[_-]/g, '');
}

const foldedNames = new WeakMap<ReadonlyMap<string, Shape>, ReadonlyMap<string, string>>();

/** The member that another name may be taken for. */
function twinOf(name: string, { members, family = members }: Fields): string | undefined {
  if (family.has(name)) return undefined;
  let folded = foldedNames.get(family);
  if (folded === undefined) {
    folded = new Map([...family.keys()].map((known) => [foldCase(known), known]));
    foldedNames.set(family, folded);
  }
  return folded.get(foldCase(name));
}

/** The names in a body. */
interface Named {
  /** Of all but the top-level members: none can be another's twin. */
  lacks(feature: 'unusualName'): boolean;
  readonly spans: ReadonlyMap<string, unknown>;
  readonly skeleton: JsonObject;
}

/** Refuses names that others take for another. */
export class TwinNames {
  readonly #shape: Fields;
  readonly #forms: ReadonlyMap<string, string>;

  /** @param owned top-level members that must not appear in another spelling either (`maxTokens`). */
  constructor(shape: Fields, owned: ReadonlySet<string>) {
    this.#shape = shape;
    this.#forms = new Map([...owned].map((name) => [foldForm(name), name]));
  }

  /**
   * No member may have a name that another reader of JSON takes for one that is read here.
   * @throws GatewayError `invalid_request` with the path of such a member.
   */
  check(source: Named): void {
    if (!source.lacks('unusualName')) return this.#checkAll(source.skeleton);
    for (const key of source.spans.keys()) {
      if (this.#shape.members.has(key)) continue;
      const twin = this.#twinOnTop(key);
      if (twin !== undefined) throw refusal(key, twin, [key]);
    }
  }

  #checkAll(body: JsonObject): void {
    if (knowsAll(body, this.#shape)) return;
    walk(body, this.#shape, ({ fields, key, path }) => {
      const twin = fields === this.#shape ? this.#twinOnTop(key) : twinOf(key, fields);
      if (twin !== undefined) throw refusal(key, twin, path());
    });
  }

  #twinOnTop(key: string): string | undefined {
    return twinOf(key, this.#shape) ?? this.#forms.get(foldForm(key));
  }
}

function refusal(key: string, twin: string, path: FieldPath): GatewayError {
  return invalidRequest(
    `The key "${key}" is read as "${twin}" by servers that match names loosely; send "${twin}" instead, or neither.`,
    path,
  );
}

/**
 * Notes each unknown member, once for each kind of object, since a history may repeat it in hundreds of
 * messages. Members of the body itself are noted by the request writer.
 */
export function noteStrangers(body: JsonObject, shape: Fields, notes: Notes): void {
  const noted = new Map<Fields, Set<string>>();
  walk(body, shape, ({ fields, key, value, path }) => {
    if (fields.open || fields === shape || value === null || value === undefined) return;
    const keys = noted.get(fields) ?? new Set();
    noted.set(fields, keys);
    if (keys.has(key)) return;
    keys.add(key);
    notes.lost(path(), 'not known to the model');
  });
}

/** Further names that are noted of one answer. An upstream may write a new one in each event. */
const maxStrangers = 20;
/** A name that can be no secret and no words of the model: those have digits or spaces, or are longer. */
const harmlessName = /^[a-z@$][a-z_.:-]{0,59}\d{0,2}$/i;
const onlyThere = 'only its provider knows it';

/**
 * Notes what an answer has that no reader knows and no other API can show, each once: members of its objects, and types of
 * events and pieces. State of one answer.
 */
export class AnswerStrangers {
  readonly #notes: Notes;
  readonly #noted = new Map<Fields, Set<string>>();
  readonly #types = new Set<string>();
  #count = 0;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  /**
   * Examines a document or an event.
   * @param shape undefined for one that is not examined
   * @param event its type, with which the paths of its members begin
   */
  see(value: JsonObject, shape: Fields | undefined, event?: string): void {
    if (shape === undefined || knowsAll(value, shape)) return;
    walk(value, shape, ({ fields, key, value: item, path }) => {
      if (fields.open || isNothing(item)) return;
      const keys = this.#noted.get(fields) ?? new Set();
      this.#noted.set(fields, keys);
      if (keys.has(key) || this.#count === maxStrangers) return;
      keys.add(key);
      this.#note(event === undefined ? path() : [event, ...path()]);
    });
  }

  /** Notes an event, or a piece of an event, of a type that is not known. */
  type(path: FieldPath, type: string): void {
    if (this.#types.has(type) || this.#count === maxStrangers) return;
    this.#types.add(type);
    this.#note([...path, type]);
  }

  #note(path: FieldPath): void {
    this.#count += 1;
    const shown = path.map((step) =>
      typeof step === 'number' || harmlessName.test(step) ? step : '*',
    );
    this.#notes.lost(shown, onlyThere);
  }
}

/** Notes the strangers of a whole document. @param notes absent where the document itself goes to the client */
export function noteAnswerStrangers(body: JsonObject, shape: Fields, notes?: Notes): void {
  if (notes !== undefined) new AnswerStrangers(notes).see(body, shape);
}

/** How many objects around nothing are nothing, too. */
const maxNothingDepth = 4;

/** What servers write for nothing, also as all members of an object. */
function isNothing(value: Json | undefined, depth = maxNothingDepth): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true;
  if (!isInner(value)) return false;
  return Object.values(value).every((item) => depth > 0 && isNothing(item, depth - 1));
}
