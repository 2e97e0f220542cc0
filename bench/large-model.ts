/**
 * A model that is large enough for its arithmetic to matter, and says nothing: the tokenizer and the
 * template of the tiny model around random weights. What it costs does not depend on what it says.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/** 157 million weights, 4 bits each as in most files that people run: some ten milliseconds a token. */
const layers = 16;
const width = 896;
const inner = 2432;
const heads = 14;
const context = 4096;

/** Value types of GGUF by their size in bytes; strings (8) and lists (9) say theirs themselves. */
const sizes: { readonly [type: number]: number } = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};
const uint32Type = 4;
const stringType = 8;
const listType = 9;
const float32Tensor = 0;
const q4Tensor = 2;
const alignment = 32;

const replaced: ReadonlyMap<string, number> = new Map([
  ['llama.block_count', layers],
  ['llama.embedding_length', width],
  ['llama.feed_forward_length', inner],
  ['llama.attention.head_count', heads],
  ['llama.attention.head_count_kv', heads],
  ['llama.rope.dimension_count', width / heads],
  ['llama.context_length', context],
]);

interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Writes the model; `tokenizerOf` is a llama model in GGUF. Returns the size of the file. */
export function writeLargeModel(path: string, tokenizerOf: string): number {
  const { pairs, count, vocabulary } = readPairs(readFileSync(tokenizerOf));
  const tensors = tensorsOf(vocabulary);
  const file = openSync(path, 'w');
  let size = 0;
  const write = (bytes: Uint8Array): void => {
    for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
    size += bytes.length;
  };
  write(Buffer.concat([Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(count), pairs]));
  let offset = 0;
  for (const tensor of tensors) {
    const { name, shape } = tensor;
    const type = shape.length === 1 ? float32Tensor : q4Tensor;
    write(
      Buffer.concat([text(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)]),
    );
    offset += bytesOf(tensor);
  }
  write(Buffer.alloc((alignment - (size % alignment)) % alignment));
  const random = randomBlocks();
  for (const tensor of tensors)
    write(tensor.shape.length === 1 ? ones(width) : random(bytesOf(tensor)));
  closeSync(file);
  return size;
}

function tensorsOf(vocabulary: number): readonly Tensor[] {
  const square = [width, width];
  const all: Tensor[] = [
    { name: 'token_embd.weight', shape: [width, vocabulary] },
    { name: 'output_norm.weight', shape: [width] },
  ];
  for (let layer = 0; layer < layers; layer++) {
    const add = (name: string, shape: readonly number[]): void =>
      void all.push({ name: `blk.${layer}.${name}.weight`, shape });
    add('attn_norm', [width]);
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) add(name, square);
    add('ffn_norm', [width]);
    add('ffn_gate', [width, inner]);
    add('ffn_up', [width, inner]);
    add('ffn_down', [inner, width]);
  }
  return all;
}

/** Q4_0: 32 weights are a 16-bit scale and 16 bytes. */
const blockBytes = 18;
/** Of evenly spread numbers from -8 to 7. */
const deviation = 4.6;

function bytesOf({ shape }: Tensor): number {
  const weights = shape.reduce((product, length) => product * length, 1);
  return shape.length === 1 ? weights * 4 : (weights / 32) * blockBytes;
}

/** Pseudorandom blocks, always the same; scaled so that a row retains the size of what it is given. */
function randomBlocks(): (bytes: number) => Uint8Array {
  let state = 0x9e3779b9;
  const scale = halfOf(1 / (deviation * Math.sqrt(width)));
  return (length) => {
    const bytes = new Uint8Array(length);
    const words = new Uint32Array(bytes.buffer, 0, Math.floor(length / 4));
    for (let i = 0; i < words.length; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[i] = state;
    }
    for (let at = 0; at < length; at += blockBytes) bytes.set(scale, at);
    return bytes;
  };
}

/** A small positive number as a 16-bit float. */
function halfOf(value: number): Uint8Array {
  const exponent = Math.floor(Math.log2(value));
  const fraction = Math.round((value / 2 ** exponent - 1) * 1024);
  const bits = ((exponent + 15) << 10) | fraction;
  return Uint8Array.of(bits & 0xff, bits >> 8);
}

interface Pairs {
  readonly pairs: Buffer;
  readonly count: number;
  readonly vocabulary: number;
}

/** The key-value pairs as they are, but for the numbers of the architecture. */
function readPairs(file: Buffer): Pairs {
  const count = Number(file.readBigUInt64LE(16));
  const pairs: Buffer[] = [];
  let vocabulary = 0;
  let at = 24;
  for (let i = 0; i < count; i++) {
    const from = at;
    const length = Number(file.readBigUInt64LE(at));
    const key = file.toString('utf8', at + 8, at + 8 + length);
    at += 8 + length;
    const type = file.readUInt32LE(at);
    at += 4;
    if (key === 'tokenizer.ggml.tokens') vocabulary = Number(file.readBigUInt64LE(at + 4));
    at += valueLength(file, at, type);
    const number = replaced.get(key);
    pairs.push(
      number === undefined
        ? file.subarray(from, at)
        : Buffer.concat([text(key), u32(uint32Type), u32(number)]),
    );
  }
  return { pairs: Buffer.concat(pairs), count, vocabulary };
}

function valueLength(file: Buffer, at: number, type: number): number {
  if (type === stringType) return 8 + Number(file.readBigUInt64LE(at));
  if (type !== listType) return sizes[type] ?? 0;
  const inside = file.readUInt32LE(at);
  const count = Number(file.readBigUInt64LE(at + 4));
  let length = 12;
  for (let i = 0; i < count; i++) length += valueLength(file, at + length, inside);
  return length;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function ones(count: number): Uint8Array {
  return new Uint8Array(new Float32Array(count).fill(1).buffer);
}
