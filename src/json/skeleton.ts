/**
 * The skeleton of a long body: its JSON without what makes bodies long, for all code that only examines how a request
 * is made. A walk in WebAssembly (`walk.wat`, decision 0044) writes it, finds the top-level members and sets feature
 * flags. It supports well-formed bodies without rare forms only; other bodies have no skeleton and are parsed whole.
 *
 * In `messages` and `tools`, a long string that is `content`, `text`, `arguments`, `description` or `thinking` is
 * replaced by a short one; a tool's `parameters` or `input_schema` and a call's `input` are empty. Types of values stay.
 */
import { isUtf8 } from 'node:buffer';
import type { Pieces } from './pieces.ts';
import { maxBytesAtOnce, maxTokensAtOnce, type Span } from './scan.ts';
import { walkProgram } from './walk-program.ts';

/**
 * Texts whose presence in the bytes says something about a body before it is read as a value, as they are written:
 * quotes and escapes included. `walk.wat` has the same list.
 */
export const featureTexts = {
  /** The beginning of all escapes of letters and digits. Most bodies have none. */
  escape: ['\\u00'],
  /** Words that are in every part that is not text, in both formats and in the extensions of engines. */
  media: [
    '"input_audio"',
    '"image_url"',
    '"image"',
    '"file"',
    '"document"',
    '"video_url"',
    '"video"',
    '"audio_url"',
    '"audio"',
  ],
  cacheControl: ['"cache_control"'],
  /** The longer lifetime of a prompt cache. */
  hour: ['"1h"'],
  /** The ends of member names that hold addresses or base64 (`body-media.ts`). */
  address: [
    'url"',
    'Url"',
    'URL"',
    'urls"',
    'uri"',
    'uris"',
    '"links"',
    '"file_data"',
    '"data"',
    '"video"',
    '"audio"',
    '"image"',
  ],
  /** The beginning of texts that the gateway sealed: reasoning of another provider. */
  sealed: ['"gw1.'],
} as const satisfies { readonly [feature: string]: readonly string[] };

/** A feature that can be searched for in the bytes. */
export type Feature = keyof typeof featureTexts;

/**
 * `unusualName` is a member name with an upper-case letter or a character that is not ASCII, outside of schemas of
 * tools and inputs of calls. Only the walk finds it.
 */
export type WalkFeature = Feature | 'unusualName';

/** The bit of each feature in the walk's flags. */
export const featureBits: { readonly [F in WalkFeature]: number } = {
  escape: 1,
  media: 2,
  cacheControl: 4,
  hour: 8,
  sealed: 16,
  unusualName: 32,
  address: 64,
};

export interface WalkedBody {
  /** JSON of an object. */
  readonly skeleton: string;
  readonly spans: ReadonlyMap<string, Span>;
  readonly bodyStart: number;
  readonly tokens: number;
  /** No key occurs twice in an object, and no number has more digits than a double holds. */
  readonly unambiguous: true;
  readonly longNumbers: false;
  /** No key is written with an escape. */
  readonly plainKeys: true;
  /** Bits of the features that the body has. */
  readonly features: number;
}

/** A shorter body is parsed whole in the same time. */
const minLength = 16 * 1024;

/** Offsets in the memory of `walk.wat`. */
const offsets = {
  tokens: 0,
  members: 4,
  bodyStart: 8,
  features: 12,
  memberRows: 1024,
  text: 128 * 1024,
} as const;
const bytesPerMember = 16;
/** Zero bytes after the text, at which every loop of the walk ends. */
const sentinelBytes = 32;
/** A page of WebAssembly's memory. */
const pageBytes = 64 * 1024;
const unsupported = -1;

interface Walk {
  readonly run: (length: number) => number;
  /** The memory of the program with room for a text of this length and its skeleton; undefined = there is none. */
  readonly memory: (length: number) => Buffer | undefined;
}

declare const WebAssembly: {
  /** @throws Error where WebAssembly or its vectors are missing. */
  readonly Module: new (bytes: Uint8Array) => object;
  /** @throws RangeError where the memory cannot be allocated. */
  readonly Instance: new (module: object) => {
    readonly exports: {
      readonly run: Walk['run'];
      readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
    };
  };
};

let walk: Walk | undefined;
/** WebAssembly is missing, or its memory of 2.3 MB cannot be allocated. */
let isImpossible = false;

/** What is walked over at most. */
export interface WalkBounds {
  /** The memory of the program grows to twice of that, and stays. */
  readonly bytes: number;
  readonly tokens: number;
}

const onEventLoop: WalkBounds = { bytes: maxBytesAtOnce, tokens: maxTokensAtOnce };

/** Undefined for a body that is short, beyond the bounds or unsupported, which may still be valid. */
export function walkOver(pieces: Pieces, most = onEventLoop): WalkedBody | undefined {
  const { length } = pieces;
  if (length < minLength || length > most.bytes || isImpossible) return undefined;
  walk ??= startWalk();
  const memory = walk?.memory(length);
  if (walk === undefined || memory === undefined) return undefined;
  const end = offsets.text + length;
  const skeleton = end + sentinelBytes;
  pieces.copy(memory, offsets.text);
  memory.fill(0, end, end + sentinelBytes);
  if (!isUtf8(memory.subarray(offsets.text, end))) return undefined;
  const skeletonLength = walk.run(length);
  if (skeletonLength === unsupported) return undefined;
  const tokens = memory.readInt32LE(offsets.tokens);
  if (tokens > most.tokens) return undefined;
  return {
    skeleton: memory.toString('utf8', skeleton, skeleton + skeletonLength),
    spans: spansIn(memory),
    bodyStart: memory.readInt32LE(offsets.bodyStart),
    tokens,
    unambiguous: true,
    longNumbers: false,
    plainKeys: true,
    features: memory.readInt32LE(offsets.features),
  };
}

function startWalk(): Walk | undefined {
  try {
    const program = new WebAssembly.Module(Buffer.from(walkProgram, 'base64'));
    const { run, memory: own } = new WebAssembly.Instance(program).exports;
    let memory = Buffer.from(own.buffer);
    const withRoom = (length: number): Buffer | undefined => {
      const missing = offsets.text + 2 * length + sentinelBytes - memory.length;
      if (missing <= 0) return memory;
      try {
        own.grow(Math.ceil(missing / pageBytes));
        memory = Buffer.from(own.buffer);
        return memory;
      } catch {
        return undefined;
      }
    };
    return { run, memory: withRoom };
  } catch {
    isImpossible = true;
    return undefined;
  }
}

function spansIn(memory: Buffer): ReadonlyMap<string, Span> {
  const spans = new Map<string, Span>();
  const end = offsets.memberRows + bytesPerMember * memory.readInt32LE(offsets.members);
  for (let row = offsets.memberRows; row < end; row += bytesPerMember) {
    const from = offsets.text + memory.readInt32LE(row);
    const key = memory.toString('utf8', from, from + memory.readInt32LE(row + 4));
    spans.set(key, { start: memory.readInt32LE(row + 8), end: memory.readInt32LE(row + 12) });
  }
  return spans;
}
