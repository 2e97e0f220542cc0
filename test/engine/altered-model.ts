/** The tiny model with another chat template and other metadata, as a file of its own. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { tinyModel } from '../../src/local-models/model-folder.ts';

const stringType = 8;
const floatType = 6;
const countOffset = 16;
const firstPairOffset = 24;
const alignment = 32;

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(bytes.length));
  return Buffer.concat([length, bytes]);
}

function type(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(number);
  return bytes;
}

function float(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

export interface Alterations {
  readonly template: (original: string) => string;
  /** More metadata. */
  readonly floats?: { readonly [key: string]: number };
}

export function writeAlteredModel(path: string, { template, floats = {} }: Alterations): void {
  const original = readFileSync(tinyModel.path);
  const key = Buffer.concat([text('tokenizer.chat_template'), type(stringType)]);
  const at = original.indexOf(key) + key.length;
  assert.ok(at > key.length);
  const length = Number(original.readBigUInt64LE(at));
  const old = original.subarray(at + 8, at + 8 + length).toString();
  const pairs = Object.entries(floats).map(([name, value]) =>
    Buffer.concat([text(name), type(floatType), float(value)]),
  );
  const added = pairs.reduce((sum, pair) => sum + pair.length, 0);
  let changed = `${template(old)}{##}`;
  // The weights begin at a multiple of 32 bytes: what goes before them grows by such a multiple. In a
  // comment, which no prompt shows.
  while ((Buffer.byteLength(changed) - length + added) % alignment !== 0) {
    changed = changed.replace(/#\}$/, ' #}');
  }
  const count = original.readBigUInt64LE(countOffset) + BigInt(pairs.length);
  const head = Buffer.from(original.subarray(0, firstPairOffset));
  head.writeBigUInt64LE(count, countOffset);
  const before = original.subarray(firstPairOffset, at);
  const after = original.subarray(at + 8 + length);
  const bytes = [head, ...pairs, before, text(changed), after];
  writeFileSync(path, Buffer.concat(bytes));
}
