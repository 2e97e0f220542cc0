/** Long bodies, made text in steps: `JSON.stringify` of 30 MB would hold up all other calls for 0.3 s (G11). */
import type { Json, JsonObject } from './conversation.ts';
import { nextTurn } from './steps.ts';

/** So many characters become bytes at once. */
const pieceLength = 512 * 1024;
/** What weighs no more becomes text at once: so many values, half a megabyte of text, or some of both. */
const mostAtOnce = 4000;
const charactersPerValue = 128;
/** So many of those are made between two turns of the others. */
const partsPerTurn = 8;

/** The bytes of `JSON.stringify(body)`; the event loop has its turn between parts of it, however deep they lie. */
export async function jsonInSteps(body: JsonObject): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let text = '';
  let parts = 0;
  for (const part of new Writer().texts(body)) {
    text += part;
    parts += 1;
    if (parts % partsPerTurn === 0) await nextTurn();
    if (text.length < pieceLength) continue;
    await nextTurn();
    pieces.push(Buffer.from(text));
    text = '';
    await nextTurn();
  }
  pieces.push(Buffer.from(text));
  return Buffer.concat(pieces);
}

/** What may be long in itself. */
type Divisible = JsonObject | readonly Json[] | string;

class Writer {
  /** Containers that weigh more than becomes text at once; they are weighed once. */
  readonly #heavy = new Set<JsonObject | readonly Json[]>();

  *texts(value: Divisible): Generator<string> {
    if (this.#weightOf(value) <= mostAtOnce) yield JSON.stringify(value);
    else if (typeof value === 'string') yield* this.#pieces(value);
    else if (isArray(value)) yield* this.#items(value);
    else yield* this.#members(value);
  }

  /** Of one long string. */
  *#pieces(text: string): Generator<string> {
    yield '"';
    for (let from = 0; from < text.length;) {
      const end = from + pieceLength;
      // Half of a pair would become an escape.
      const to = isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
      yield inner(JSON.stringify(text.slice(from, to)));
      from = to;
    }
    yield '"';
  }

  *#items(items: readonly Json[]): Generator<string> {
    let before = '[';
    for (const group of this.#groups(items, (item) => item)) {
      const [only] = group;
      yield before;
      if (group.length === 1 && isDivisible(only)) yield* this.texts(only);
      else yield inner(JSON.stringify(group));
      before = ',';
    }
    yield ']';
  }

  *#members(members: JsonObject): Generator<string> {
    let before = '{';
    const valueOf = (key: string): Json | undefined => members[key];
    for (const group of this.#groups(Object.keys(members), valueOf)) {
      const present = group.filter((key) => members[key] !== undefined);
      const [key] = present;
      if (key === undefined) continue;
      const only = members[key];
      yield before;
      if (present.length === 1 && isDivisible(only)) {
        yield `${JSON.stringify(key)}:`;
        yield* this.texts(only);
      } else {
        // Not assigned: a key may be `__proto__` (B40).
        yield inner(
          JSON.stringify(Object.fromEntries(present.map((each) => [each, members[each]]))),
        );
      }
      before = ',';
    }
    yield '}';
  }

  /** Neighbours that weigh little, together; what is too heavy, alone. */
  *#groups<T>(all: readonly T[], valueOf: (item: T) => Json | undefined): Generator<readonly T[]> {
    let group: T[] = [];
    let weight = 0;
    for (const item of all) {
      const own = this.#weightOf(valueOf(item));
      if (group.length > 0 && weight + own > mostAtOnce) {
        yield group;
        group = [];
        weight = 0;
      }
      group.push(item);
      weight += own;
    }
    if (group.length > 0) yield group;
  }

  /** Looks no further once it is too much. */
  #weightOf(value: Json | undefined): number {
    if (typeof value === 'string') return 1 + value.length / charactersPerValue;
    if (!isContainer(value)) return 1;
    if (this.#heavy.has(value)) return Number.POSITIVE_INFINITY;
    const weight = isArray(value) ? this.#weightOfItems(value) : this.#weightOfMembers(value);
    if (weight > mostAtOnce) this.#heavy.add(value);
    return weight;
  }

  #weightOfItems(items: readonly Json[]): number {
    let weight = 1;
    for (let i = 0; i < items.length && weight <= mostAtOnce; i += 1) {
      weight += this.#weightOf(items[i]);
    }
    return weight;
  }

  #weightOfMembers(members: JsonObject): number {
    let weight = 1;
    // A list of 100,000 members is not made to look at a few.
    for (const key in members) {
      weight += this.#weightOf(members[key]);
      if (weight > mostAtOnce) break;
    }
    return weight;
  }
}

/** Without its brackets or quotes. */
function inner(text: string): string {
  return text.slice(1, -1);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isDivisible(value: Json | undefined): value is Divisible {
  return typeof value === 'string' || isContainer(value);
}

function isContainer(value: Json | undefined): value is JsonObject | readonly Json[] {
  return typeof value === 'object' && value !== null && !JSON.isRawJSON(value);
}

function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
