import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { GgufProblem, readGgufFile, readGgufHeader } from '../../../src/local-models/gguf.ts';
import { quantizationOf } from '../../../src/local-models/model-file.ts';
import { tinyModel } from '../../../src/local-models/model-folder.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { ggufBytes, ordinary, type GgufForm } from './gguf-file.ts';

function read(bytes: Buffer) {
  return readGgufHeader(bytes, bytes.length);
}

function problem(bytes: Buffer): string {
  try {
    read(bytes);
  } catch (error) {
    if (error instanceof GgufProblem) return error.message;
    throw error;
  }
  throw new Error('the file was read');
}

test('§4 the header says architecture, context, parameters, quantisation and template', () => {
  assert.deepEqual(read(ggufBytes()), {
    architecture: 'qwen3',
    parameters: 1024 * 3 + 1024,
    contextLength: 40_960,
    quantization: 'Q4_K_M',
    hasChatTemplate: true,
  });
});

test('§4 the model that ships', async () => {
  assert.deepEqual(await readGgufFile(tinyModel.path), {
    architecture: 'llama',
    parameters: 2_152_480,
    contextLength: 2048,
    quantization: 'Q8_0',
    hasChatTemplate: true,
  });
});

test('§4 a header longer than the first read is read on', async () => {
  const folder = temporaryFolder('gguf');
  const path = join(folder, 'large.gguf');
  const texts = Array.from({ length: 300_000 }, (_, i) => `token ${i}`);
  const entries = { ...ordinary, 'tokenizer.ggml.tokens': { type: 9, of: 8, texts } as const };
  writeFileSync(path, ggufBytes({ entries }));
  assert.equal((await readGgufFile(path)).contextLength, 40_960);
});

const wrong: readonly (readonly [string, Buffer, RegExp])[] = [
  ['a page of HTML', Buffer.from('<!doctype html><title>Not found</title>'), /is not a GGUF file/],
  ['nothing but the magic', Buffer.from('GGUF'), /cut off/],
  ['an old version', ggufBytes({ version: 1 }), /version 1/],
  ['big-endian', ggufBytes({ version: 0x03000000 }), /big-endian/],
  ['tensors missing', ggufBytes({ dataBytes: 0 }), /cut off: tensors are missing/],
  ['no tensors', ggufBytes({ tensors: [] }), /vocabulary only/],
  ['no architecture', ggufBytes({ entries: {} }), /architecture/],
  [
    'a part of a split model',
    ggufBytes({ entries: { ...ordinary, 'split.count': { type: 2, number: 3 } } }),
    /one part of a split model.*--merge/,
  ],
  [
    'a projector',
    ggufBytes({ entries: { 'general.architecture': { type: 8, text: 'clip' } } }),
    /projector/,
  ],
  [
    'an adapter',
    ggufBytes({ entries: { ...ordinary, 'general.type': { type: 8, text: 'adapter' } } }),
    /its type is adapter/,
  ],
  [
    'tensors beyond all sense',
    ggufBytes({ tensors: [{ name: 'x', dimensions: [2 ** 30, 2 ** 30] }] }),
    /larger than any model/,
  ],
];

describe('§4 foreign and damaged files are distinguished', () => {
  for (const [name, bytes, message] of wrong) {
    test(name, () => assert.match(problem(bytes), message));
  }

  test('a length that leads beyond the end of the file', () => {
    const bytes = ggufBytes();
    bytes.writeBigUInt64LE(2n ** 40n, 24);
    assert.match(problem(bytes), /damaged or cut off/);
  });

  test('an empty file and one cut at each place of its header', async () => {
    const folder = temporaryFolder('gguf');
    const whole = ggufBytes();
    for (let length = 0; length < whole.length - 4096; length += 7) {
      const path = join(folder, 'cut.gguf');
      writeFileSync(path, whole.subarray(0, length));
      await assert.rejects(readGgufFile(path), GgufProblem, `at ${length}`);
    }
  });
});

test('§4 any bytes end as facts or as a GgufProblem', () => {
  const whole = ggufBytes();
  const readable = (bytes: Buffer): boolean => {
    try {
      read(bytes);
    } catch (error) {
      if (!(error instanceof GgufProblem)) throw error;
    }
    return true;
  };
  const spot = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
  fc.assert(
    fc.property(fc.array(spot, { minLength: 1, maxLength: 12 }), (spots) => {
      const bytes = Buffer.from(whole);
      for (const [place, value] of spots) bytes[place] = value;
      return readable(bytes);
    }),
    { numRuns: 3000, interruptAfterTimeLimit: 5000 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (tail) =>
      readable(Buffer.concat([whole.subarray(0, 8), tail])),
    ),
    { numRuns: 2000, interruptAfterTimeLimit: 5000 },
  );
});

test('§4 lists within lists come to an end', () => {
  const form: GgufForm = { entries: {}, tensors: [] };
  const bytes = ggufBytes(form);
  bytes.writeBigUInt64LE(1n, 16);
  const nested = Buffer.alloc(12 * 1000);
  for (let i = 0; i < 1000; i += 1) {
    nested.writeUInt32LE(9, i * 12);
    nested.writeBigUInt64LE(1n, i * 12 + 4);
  }
  const key = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0x6b, 9, 0, 0, 0]);
  assert.match(problem(Buffer.concat([bytes.subarray(0, 24), key, nested])), /nested too deep/);
});

test('the quantisation in file names', () => {
  const names: readonly (readonly [string, string | undefined])[] = [
    ['Qwen3-0.6B-Q8_0.gguf', 'Q8_0'],
    ['gemma-3-1b-it-q4_k_m.gguf', 'Q4_K_M'],
    ['Qwen3-4B-Instruct-2507-UD-Q4_K_XL.gguf', 'UD-Q4_K_XL'],
    ['BF16/model-BF16.gguf', 'BF16'],
    ['model.IQ4_XS.gguf', 'IQ4_XS'],
    ['ggml-model-f16.gguf', 'F16'],
    ['model.gguf', undefined],
  ];
  for (const [name, quantization] of names) assert.equal(quantizationOf(name), quantization, name);
});
