/**
 * The outline of a body: its value without what makes bodies long, for everybody who only looks how a request is
 * made. Made by a walk in WebAssembly (decision 0028), which takes well-formed bodies only; for all others there
 * is none, and they are read as ever.
 *
 * In `messages` and `tools` an outline has another text where a long one stands as `content`, `text`, `arguments`,
 * `description` or `thinking`, and nothing inside of a tool's `parameters` or `input_schema` and a call's `input`.
 * The kind of value is always the one that stands there.
 */
import { isUtf8 } from 'node:buffer';
import { maxBytesAtOnce, maxTokensAtOnce, type Span } from './json-bytes.ts';
import type { Pieces } from './pieces.ts';
import { jsonWalk, places, sentinelBytes } from './wasm/json-walk.ts';

export interface Outline {
  /** JSON of an object. */
  readonly outline: string;
  readonly spans: ReadonlyMap<string, Span>;
  readonly bodyStart: number;
  readonly tokens: number;
  /** No key stands twice in an object, and no number has more digits than a double holds. */
  readonly unambiguous: true;
  readonly longNumbers: false;
  /** No key is written with an escape. */
  readonly plainKeys: true;
  /** The bits of the marks that stand in it (`json-marks.ts`). */
  readonly marks: number;
}

/** Below that a whole parse is as quick. */
const shortestText = 16 * 1024;

interface Walk {
  readonly run: (length: number) => number;
  readonly memory: Buffer;
}

declare const WebAssembly: {
  /** @throws Error where there is no WebAssembly with vectors. */
  readonly Module: new (bytes: Uint8Array) => object;
  /** @throws RangeError where there is no room for the memory. */
  readonly Instance: new (module: object) => {
    readonly exports: {
      readonly run: Walk['run'];
      readonly memory: { readonly buffer: ArrayBuffer };
    };
  };
};

let walk: Walk | undefined;
/** Where there is no WebAssembly, or no room for its memory. */
let impossible = false;

/** Undefined for a body that is short, long or odd in any way, which need not be wrong. */
export function outlineOf(pieces: Pieces): Outline | undefined {
  const { length } = pieces;
  if (length < shortestText || length > maxBytesAtOnce || impossible) return undefined;
  walk ??= begin();
  if (walk === undefined) return undefined;
  const { run, memory } = walk;
  const end = places.text + length;
  pieces.copy(memory, places.text);
  memory.fill(0, end, end + sentinelBytes);
  if (!isUtf8(memory.subarray(places.text, end))) return undefined;
  const outlined = run(length);
  if (outlined === -1) return undefined;
  const tokens = memory.readInt32LE(places.tokens);
  if (tokens > maxTokensAtOnce) return undefined;
  return {
    outline: memory.toString('utf8', places.outline, places.outline + outlined),
    spans: spansIn(memory),
    bodyStart: memory.readInt32LE(places.bodyStart),
    tokens,
    unambiguous: true,
    longNumbers: false,
    plainKeys: true,
    marks: memory.readInt32LE(places.marks),
  };
}

function begin(): Walk | undefined {
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(jsonWalk()));
    return { run: exports.run, memory: Buffer.from(exports.memory.buffer) };
  } catch {
    impossible = true;
    return undefined;
  }
}

function spansIn(memory: Buffer): ReadonlyMap<string, Span> {
  const spans = new Map<string, Span>();
  const end = places.memberTable + 16 * memory.readInt32LE(places.members);
  for (let at = places.memberTable; at < end; at += 16) {
    const from = places.text + memory.readInt32LE(at);
    const key = memory.toString('utf8', from, from + memory.readInt32LE(at + 4));
    spans.set(key, { start: memory.readInt32LE(at + 8), end: memory.readInt32LE(at + 12) });
  }
  return spans;
}
