/**
 * Reads what a GGUF file says of itself: its header only, never its tensors. Files come from strangers,
 * so every length is checked against the file's size before it is believed, nothing is kept but the
 * few values that are wanted, and whatever is wrong ends as one `GgufProblem`.
 */
import { open, stat } from 'node:fs/promises';
import { type LocalModelFacts, quantizationName } from './model-file.ts';

// Whether a model reasons, by words of its chat template that the engine uses as well.

/** As `src/engine/scanners.ts`; a test holds both against each other. */
const closingTags = ['</think>', '</thinking>', '</seed:think>', '[/THINK]'];

/** @param template Jinja, as it is in the file; undefined = the file has none. */
export function reasoningFacts(
  template: string | undefined,
): Pick<LocalModelFacts, 'reasoning' | 'reasoningLevels'> {
  if (template === undefined || !closingTags.some((tag) => template.includes(tag))) return {};
  return {
    reasoning: /\benable_thinking\b/u.test(template) ? 'switchable' : 'always',
    ...(/\breasoning_effort\b/u.test(template) ? { reasoningLevels: true } : {}),
  };
}

/** Why a file is not a model that the engine can load; a sentence without its subject: "is …". */
export class GgufProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'GgufProblem';
  }
}

/** Vocabularies of 260,000 entries with their merges make headers of 12 MB. */
const maxHeaderBytes = 64 * 2 ** 20;
const firstReadBytes = 2 ** 20;
const maxEntries = 65_536;
const maxTensors = 1_000_000;
const maxTextBytes = 256;
/** The longest chat templates in use have 20 KB. */
const maxTemplateBytes = 2 ** 20;
const maxNesting = 4;
const defaultAlignment = 32;

/** @throws GgufProblem, or the file system's error. */
export async function readGgufFile(path: string): Promise<LocalModelFacts> {
  const found = await stat(path);
  // To open a pipe is to wait for its writer.
  if (!found.isFile() && !found.isDirectory()) throw new GgufProblem('is not a regular file');
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size === 0) throw new GgufProblem('is empty');
    for (let wanted = firstReadBytes; ; wanted *= 4) {
      const length = Math.min(wanted, size, maxHeaderBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
      const facts = readGgufHeader(buffer.subarray(0, bytesRead), size);
      if (facts !== undefined) return facts;
      if (length === size || bytesRead < length) throw new GgufProblem('is cut off in its header');
      if (length === maxHeaderBytes) throw new GgufProblem('has a header beyond 64 MiB');
    }
  } finally {
    await file.close();
  }
}

/** Whether bytes begin as a GGUF file does. */
export function beginsAsGguf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 4)).toString('latin1') === 'GGUF';
}

/**
 * @param bytes the beginning of the file.
 * @param fileBytes size of the whole file.
 * @returns undefined when the header is longer than `bytes`.
 * @throws GgufProblem
 */
export function readGgufHeader(bytes: Buffer, fileBytes: number): LocalModelFacts | undefined {
  if (bytes.length < Math.min(fileBytes, 4)) return undefined;
  if (!beginsAsGguf(bytes)) throw new GgufProblem('is not a GGUF file');
  try {
    const cursor = new Cursor(bytes, fileBytes);
    const version = cursor.u32();
    if (version !== 2 && version !== 3) {
      if (version === 0x02000000 || version === 0x03000000) {
        throw new GgufProblem('is in big-endian byte order, which the engine does not read');
      }
      throw new GgufProblem(`has version ${version} of the GGUF format; 2 and 3 are known`);
    }
    const tensors = cursor.u64();
    const entries = cursor.u64();
    if (entries > maxEntries || tensors > maxTensors) {
      throw new GgufProblem('is damaged: its header counts more entries than any model has');
    }
    const found = readEntries(cursor, entries);
    checkKind(found, tensors);
    const parameters = readTensors(cursor, tensors, found.numbers.get('general.alignment'));
    return factsOf(found, parameters);
  } catch (error) {
    if (error instanceof EndOfBytes) return undefined;
    throw error;
  }
}

class EndOfBytes extends Error {}

/** A cursor in the header; it moves forward only. */
class Cursor {
  position = 4;
  readonly fileBytes: number;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer, fileBytes: number) {
    this.#bytes = bytes;
    this.fileBytes = fileBytes;
  }

  skip(length: number): number {
    const start = this.position;
    if (length > this.fileBytes - start) {
      throw new GgufProblem('is damaged or cut off: a length in its header leads beyond its end');
    }
    if (start + length > this.#bytes.length) throw new EndOfBytes();
    this.position = start + length;
    return start;
  }

  u32(): number {
    return this.#bytes.readUInt32LE(this.skip(4));
  }

  /** Numbers beyond 2^53 are none that a file means. */
  u64(): number {
    const start = this.skip(8);
    const value =
      this.#bytes.readUInt32LE(start) + this.#bytes.readUInt32LE(start + 4) * 0x1_0000_0000;
    if (value > Number.MAX_SAFE_INTEGER) {
      throw new GgufProblem('is damaged: a number in its header is out of range');
    }
    return value;
  }

  /** The text when it is short enough to be wanted, else ''; either way it is behind. */
  text(maxBytes = maxTextBytes): string {
    const length = this.u64();
    const start = this.skip(length);
    return length > maxBytes ? '' : this.#bytes.toString('utf8', start, start + length);
  }

  integer(type: number): number | undefined {
    const start = this.position;
    const size = sizes.get(type) ?? 0;
    this.skip(size);
    if (type === 4) return this.#bytes.readUInt32LE(start);
    if (type === 5) return this.#bytes.readInt32LE(start);
    if (type === 2) return this.#bytes.readUInt16LE(start);
    if (type === 0) return this.#bytes[start];
    if (type !== 10 && type !== 11) return undefined;
    const value = this.#bytes.readBigInt64LE(start);
    return value < 0 || value > Number.MAX_SAFE_INTEGER ? undefined : Number(value);
  }
}

const typeText = 8;
const typeList = 9;
/** Bytes of the types that have a fixed size, by their numbers in the format. */
const sizes: ReadonlyMap<number, number> = new Map([
  [0, 1],
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 4],
  [5, 4],
  [6, 4],
  [7, 1],
  [10, 8],
  [11, 8],
  [12, 8],
]);

/** The entries that are wanted, by their keys. */
interface Found {
  readonly texts: Map<string, string>;
  readonly numbers: Map<string, number>;
}

const templateKey = 'tokenizer.chat_template';
const wantedTexts: ReadonlyMap<string, number> = new Map([
  ['general.architecture', maxTextBytes],
  ['general.type', maxTextBytes],
  [templateKey, maxTemplateBytes],
]);
const wantedNumbers = /^(general\.(file_type|alignment)|split\.count|.{1,64}\.context_length)$/;

function readEntries(cursor: Cursor, count: number): Found {
  const found: Found = { texts: new Map(), numbers: new Map() };
  for (let i = 0; i < count; i += 1) {
    const key = cursor.text();
    const type = cursor.u32();
    const maxBytes = wantedTexts.get(key);
    if (type === typeText && maxBytes !== undefined) {
      found.texts.set(key, cursor.text(maxBytes));
    } else if (sizes.has(type) && wantedNumbers.test(key)) {
      const value = cursor.integer(type);
      if (value !== undefined) found.numbers.set(key, value);
    } else {
      skipValue(cursor, type, 0);
    }
  }
  return found;
}

function skipValue(cursor: Cursor, type: number, nesting: number): void {
  const size = sizes.get(type);
  if (size !== undefined) cursor.skip(size);
  else if (type === typeText) cursor.skip(cursor.u64());
  else if (type === typeList) skipList(cursor, nesting);
  else throw new GgufProblem(`is damaged: a value in its header has the unknown type ${type}`);
}

function skipList(cursor: Cursor, nesting: number): void {
  if (nesting === maxNesting) throw new GgufProblem('is damaged: its header is nested too deep');
  const type = cursor.u32();
  const count = cursor.u64();
  const size = sizes.get(type);
  if (size !== undefined) {
    cursor.skip(count * size);
    return;
  }
  // Each element has at least a length of eight bytes, so the file's size bounds the loop.
  if (count > cursor.fileBytes / 8) {
    throw new GgufProblem('is damaged or cut off: a list in its header is longer than the file');
  }
  for (let i = 0; i < count; i += 1) skipValue(cursor, type, nesting + 1);
}

function checkKind({ texts, numbers }: Found, tensors: number): void {
  const type = texts.get('general.type') ?? 'model';
  const architecture = texts.get('general.architecture') ?? '';
  if ((numbers.get('split.count') ?? 0) > 1) {
    throw new GgufProblem(
      'is one part of a split model; join the parts with llama.cpp: llama-gguf-split --merge FIRST-PART WHOLE.gguf',
    );
  }
  if (architecture === 'clip' || type === 'mmproj') {
    throw new GgufProblem('is a projector for images, no language model');
  }
  if (type !== 'model') throw new GgufProblem(`holds no model by itself (its type is ${type})`);
  if (architecture === '') throw new GgufProblem('does not name the architecture of its model');
  if (tensors === 0) throw new GgufProblem('holds a vocabulary only, no model');
}

/** Sums the parameters. @throws GgufProblem when the data of a tensor begins after the file's end. */
function readTensors(cursor: Cursor, count: number, alignment = defaultAlignment): number {
  let parameters = 0;
  let last = 0;
  for (let i = 0; i < count; i += 1) {
    cursor.text();
    const dimensions = cursor.u32();
    if (dimensions > 8) throw new GgufProblem('is damaged: a tensor has too many dimensions');
    let elements = 1;
    for (let d = 0; d < dimensions; d += 1) elements *= cursor.u64();
    cursor.skip(4);
    last = Math.max(last, cursor.u64());
    parameters += elements;
  }
  if (!Number.isSafeInteger(parameters)) {
    throw new GgufProblem('is damaged: its tensors are larger than any model');
  }
  const padding = Math.max(1, alignment);
  const start = Math.ceil(cursor.position / padding) * padding;
  if (start + last >= cursor.fileBytes) {
    throw new GgufProblem('is cut off: tensors are missing at its end');
  }
  return parameters;
}

function factsOf({ texts, numbers }: Found, parameters: number): LocalModelFacts {
  const architecture = texts.get('general.architecture') ?? '';
  const contextLength = numbers.get(`${architecture}.context_length`);
  const fileType = numbers.get('general.file_type');
  const quantization = fileType === undefined ? undefined : quantizationName(fileType);
  return {
    architecture,
    parameters,
    ...(contextLength === undefined || contextLength < 1 ? {} : { contextLength }),
    ...(quantization === undefined ? {} : { quantization }),
    hasChatTemplate: texts.has(templateKey),
    ...reasoningFacts(texts.get(templateKey)),
  };
}
