/** The demonstration model that ships fits its card. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { tryParseObject } from '../../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { readGgufFile } from '../../../src/local-models/gguf.ts';
import { tinyModel } from '../../../src/local-models/model-folder.ts';

const folder = new URL('../../../models/tiny/', import.meta.url);
const card = readFileSync(new URL('README.md', folder), 'utf8');
const file = readFileSync(tinyModel.path);
const sha256 = createHash('sha256').update(file).digest('hex');

function textEntry(key: string, value: string): Buffer {
  return Buffer.concat([lengthOf(key), Buffer.from(key), textType, lengthOf(value), Buffer.from(value)]);
}

const textType = Buffer.from([8, 0, 0, 0]);

function lengthOf(text: string): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return bytes;
}

describe('the file', () => {
  test('§4 is the one that the gateway and the card name, and at most 4 MB', () => {
    assert.equal(sha256, tinyModel.sha256);
    assert.ok(card.includes(`\`${sha256}\``));
    assert.ok(file.length <= 4_000_000);
    assert.ok(card.includes(`${file.length.toLocaleString('en')} bytes`));
  });

  test('§4 says its licence and its template', () => {
    const template = readFileSync(new URL('train/chat_template.jinja', folder), 'utf8');
    assert.ok(file.includes(textEntry('general.license', 'apache-2.0')));
    assert.ok(file.includes(textEntry('tokenizer.chat_template', template)));
  });

  test('§4 has the parameters and the context of the card', async () => {
    const { parameters = 0, contextLength = 0 } = await readGgufFile(tinyModel.path);
    assert.ok(card.includes(`${parameters.toLocaleString('en')} parameters`));
    assert.ok(card.includes(`${contextLength.toLocaleString('en')} tokens`));
  });
});

describe('the scores', () => {
  const scores = tryParseObject(readFileSync(new URL('scores.json', folder), 'utf8')) ?? {};
  const measured = isObject(scores['categories']) ? scores['categories'] : {};
  const claimed = rowsBelow('## What it can do');
  const limited = rowsBelow('## What it cannot do');

  /** The rows of the table in a section, by category: `| meaning | \`category\` | right/total | … |`. */
  function rowsBelow(heading: string): Map<string, string> {
    const section = card.split(`${heading}\n`)[1]?.split('\n## ')[0] ?? '';
    const rows = section.matchAll(/`(?<category>\w+)` \| (?<exact>\d+\/\d+) \|/g);
    return new Map([...rows].map(({ groups = {} }) => [groups['category'] ?? '', groups['exact'] ?? '']));
  }

  function exact(score: unknown): string {
    assert.ok(isObject(score));
    return `${String(score['right'])}/${String(score['total'])}`;
  }

  function share(score: JsonObject[string] | undefined): number {
    assert.ok(isObject(score));
    return Number(score['right']) / Number(score['total']);
  }

  test('§4 are those of this file', () => {
    assert.equal(scores['sha256'], sha256);
    assert.ok(card.includes(exact(scores['all'])));
  });

  test('§4 stand in the card, every category once', () => {
    const told = Object.fromEntries([...claimed, ...limited]);
    const counted = Object.entries(measured).map(([name, score]) => [name, exact(score)]);
    assert.deepEqual(told, Object.fromEntries(counted));
    assert.equal(claimed.size + limited.size, counted.length);
  });

  test('§4 are at least 90 % in what is claimed, and less in what is not', () => {
    assert.ok(claimed.size > 0);
    for (const name of claimed.keys()) assert.ok(share(measured[name]) >= 0.9, name);
    for (const name of limited.keys()) assert.ok(share(measured[name]) < 0.9, name);
  });
});
