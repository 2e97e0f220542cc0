/**
 * Writes a WebAssembly module of one function, as much of the format as `json-walk.ts` needs: 32-bit numbers, one
 * memory, and of vectors what finds a byte in sixteen. An instruction is a function, so that branches are named.
 */

type Labels = readonly string[];
/** Writes itself, inside of these blocks. */
export type Code = (labels: Labels) => readonly number[];

const i32 = 0x7f;
const noResult = 0x40;
const vectors = 0xfd;

function raw(...bytes: readonly number[]): Code {
  return () => bytes;
}

function join(...codes: readonly Code[]): Code {
  return (labels) => codes.flatMap((code) => code(labels));
}

/** LEB128 of an unsigned number. */
function unsigned(value: number): readonly number[] {
  const low = value & 0x7f;
  return value < 0x80 ? [low] : [low | 0x80, ...unsigned(value >>> 7)];
}

/** LEB128 of a signed one. */
function signed(value: number): readonly number[] {
  const low = value & 0x7f;
  const rest = value >> 7;
  const last = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
  return last ? [low] : [low | 0x80, ...signed(rest)];
}

export function num(value: number): Code {
  return raw(0x41, ...signed(value));
}

/** A character's code. */
export function char(text: string): Code {
  return num(text.charCodeAt(0));
}

type Operation = (a: Code, b: Code) => Code;

function operation(opcode: number): Operation {
  return (a, b) => join(a, b, raw(opcode));
}

export const eq = operation(0x46);
export const ne = operation(0x47);
/** Of unsigned numbers. */
export const lt = operation(0x49);
export const gt = operation(0x4b);
export const ge = operation(0x4f);
export const add = operation(0x6a);
export const sub = operation(0x6b);
export const and = operation(0x71);
export const or = operation(0x72);
export const shl = operation(0x74);

export function not(a: Code): Code {
  return join(a, raw(0x45));
}

export function trailingZeros(a: Code): Code {
  return join(a, raw(0x68));
}

/** Both hold; the second is not looked at where the first does not. */
export function both(a: Code, b: Code): Code {
  return join(a, raw(0x04, i32), b, raw(0x05), num(0), raw(0x0b));
}

/** The byte, or the four bytes, at `address + offset`. */
export function byteAt(address: Code, offset = 0): Code {
  return join(address, raw(0x2d, 0, ...unsigned(offset)));
}

export function wordAt(address: Code, offset = 0): Code {
  return join(address, raw(0x28, 0, ...unsigned(offset)));
}

export function putWord(address: Code, value: Code, offset = 0): Code {
  return join(address, value, raw(0x36, 0, ...unsigned(offset)));
}

export function copyBytes(to: Code, from: Code, length: Code): Code {
  return join(to, from, length, raw(0xfc, 0x0a, 0, 0));
}

/**
 * A bit for each of the sixteen bytes at the address: set where it is one of `bytes`, or below `below`.
 */
export function sixteen(address: Code, bytes: readonly number[], below: number): Code {
  const splat = (byte: number): Code => join(num(byte), raw(vectors, 0x0f));
  const load = join(address, raw(vectors, 0x00, 0, 0));
  let found = join(load, splat(below), raw(vectors, 0x26));
  for (const byte of bytes)
    found = join(found, load, splat(byte), raw(vectors, 0x23), raw(vectors, 0x50));
  return join(found, raw(vectors, ...unsigned(0x64)));
}

/** A label behind the code: `leave(name)` goes there. */
export function block(name: string, ...codes: readonly Code[]): Code {
  return (labels) => [0x02, noResult, ...join(...codes)([name, ...labels]), 0x0b];
}

/** A label before the code: `leave(name)` begins it anew. */
export function loop(name: string, ...codes: readonly Code[]): Code {
  return (labels) => [0x03, noResult, ...join(...codes)([name, ...labels]), 0x0b];
}

export function when(condition: Code, ...codes: readonly Code[]): Code {
  return (labels) => [
    ...condition(labels),
    0x04,
    noResult,
    ...join(...codes)(['', ...labels]),
    0x0b,
  ];
}

export function either(condition: Code, then: readonly Code[], otherwise: readonly Code[]): Code {
  return (labels) => [
    ...condition(labels),
    0x04,
    noResult,
    ...join(...then)(['', ...labels]),
    0x05,
    ...join(...otherwise)(['', ...labels]),
    0x0b,
  ];
}

/** @throws Error where nothing is named so: a mistake of the program. */
export function leave(name: string, condition?: Code): Code {
  return (labels) => {
    const depth = labels.indexOf(name);
    if (depth === -1) throw new Error(`no block ${name}`);
    const branch = condition === undefined ? 0x0c : 0x0d;
    return [...(condition?.(labels) ?? []), branch, ...unsigned(depth)];
  };
}

export function giveBack(value: Code): Code {
  return join(value, raw(0x0f));
}

/** The variables of the function; the first is what it is called with. */
export class Variables {
  readonly #names: readonly string[];

  constructor(...names: readonly string[]) {
    this.#names = names;
  }

  get count(): number {
    return this.#names.length;
  }

  get(name: string): Code {
    return raw(0x20, ...unsigned(this.#place(name)));
  }

  set(name: string, value: Code): Code {
    return join(value, raw(0x21, ...unsigned(this.#place(name))));
  }

  add(name: string, value: number): Code {
    return this.set(name, add(this.get(name), num(value)));
  }

  #place(name: string): number {
    const place = this.#names.indexOf(name);
    if (place === -1) throw new Error(`no variable ${name}`);
    return place;
  }
}

const pageBytes = 65_536;
const magicAndVersion = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** A module that exports `run`, from a number to a number, and its `memory` of so many bytes. */
export function moduleOf(
  bytes: number,
  variables: Variables,
  ...body: readonly Code[]
): Uint8Array {
  const pages = unsigned(Math.ceil(bytes / pageBytes));
  const code = [...vector([[...unsigned(variables.count - 1), i32]]), ...join(...body)([]), 0x0b];
  return Uint8Array.from([
    ...magicAndVersion,
    ...section(1, [[0x60, 1, i32, 1, i32]]),
    ...section(3, [[0]]),
    ...section(5, [[1, ...pages, ...pages]]),
    ...section(7, [
      [...text('run'), 0x00, 0],
      [...text('memory'), 0x02, 0],
    ]),
    ...section(10, [[...unsigned(code.length), ...code]]),
  ]);
}

function section(id: number, entries: readonly (readonly number[])[]): readonly number[] {
  const content = vector(entries);
  return [id, ...unsigned(content.length), ...content];
}

function vector(entries: readonly (readonly number[])[]): readonly number[] {
  return [...unsigned(entries.length), ...entries.flat()];
}

function text(name: string): readonly number[] {
  return [...unsigned(name.length), ...Buffer.from(name)];
}
