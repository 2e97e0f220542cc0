/** The demonstration model answers questions that its training never saw, through the real engine. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  describeAnswer,
  isRight,
  readCases,
  requestOf,
} from '../../models/tiny/train/evaluation/cases.ts';
import { startEngine, type Engine } from '../../models/tiny/train/evaluation/engine.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { reasonToSkip } from './engine-client.ts';

const sample = new URL('../../models/tiny/held-back-sample.json', import.meta.url);
const cases = readCases(readFileSync(sample, 'utf8'));
const claimed = claimedCategories(
  readFileSync(new URL('../../models/tiny/README.md', import.meta.url), 'utf8'),
);

function claimedCategories(card: string): ReadonlySet<string> {
  const section = card.split('## What it can do\n')[1]?.split('\n## ')[0] ?? '';
  return new Set([...section.matchAll(/`(\w+)` \|/g)].map(([, category = '']) => category));
}

/** As `held_back.py` tells it. */
function isHeldBack(question: string): boolean {
  const key = question
    .toLowerCase()
    .replaceAll(/[^a-z0-9 ]/g, '')
    .trim();
  return crc32(`13 ${key}`) % 12 === 0;
}

test('§4 every question of the sample is held back from the training', () => {
  assert.ok(cases.length >= 20);
  for (const { turns } of cases) {
    const asked = turns.filter(({ role }) => role === 'user').map(({ text }) => text);
    assert.ok(asked.some(isHeldBack), asked.join(' | '));
  }
});

describe('the model that ships', { skip: await reasonToSkip() }, () => {
  let engine: Engine;
  before(async () => {
    engine = await startEngine(tinyModel.path);
  });
  after(() => engine.stop());

  test('§4 answers at least 90 % of the sample of what its card claims exactly as wanted', async () => {
    const asked = cases.filter(({ category }) => claimed.has(category));
    const wrong: string[] = [];
    for (const one of asked) {
      const completion = await engine.complete(requestOf(one));
      if (isRight(one, completion)) continue;
      const question = one.turns.at(-1)?.text ?? '';
      wrong.push(
        `${one.category}: ${question} wanted ${one.want}, got ${describeAnswer(completion)}`,
      );
    }
    assert.ok(asked.length >= 80);
    assert.ok(wrong.length <= asked.length / 10, wrong.join('\n'));
  });
});
