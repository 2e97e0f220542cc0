import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PressureLevel, type Situation, type Step } from '../../../../src/http/overload/load.ts';

const calm: Situation = {
  rssBytes: 0,
  heapShare: 0,
  delayMs: 0,
  busy: 0,
  memoryBytes: 1000,
  idle: false,
  now: 0,
};

function stepAt(ladder: PressureLevel, situation: Partial<Situation>): Step {
  ladder.update({ ...calm, ...situation });
  return ladder.step;
}

test('G7 steps at 85, 92 and 97 percent of resident memory or heap', () => {
  for (const [share, step] of [
    [849, 0],
    [850, 1],
    [919, 1],
    [920, 2],
    [969, 2],
    [970, 3],
  ] as const) {
    assert.equal(stepAt(new PressureLevel(), { rssBytes: share }), step);
    assert.equal(stepAt(new PressureLevel(), { heapShare: share / 1000 }), step);
  }
});

test('G7 a step is left three points below where it was entered', () => {
  const ladder = new PressureLevel();
  assert.equal(stepAt(ladder, { rssBytes: 970 }), 3);
  assert.equal(stepAt(ladder, { rssBytes: 941 }), 3);
  assert.equal(stepAt(ladder, { rssBytes: 939 }), 2);
  assert.equal(stepAt(ladder, { rssBytes: 889 }), 1);
  assert.equal(stepAt(ladder, { rssBytes: 821 }), 1);
  assert.equal(stepAt(ladder, { rssBytes: 819 }), 0);
  assert.equal(stepAt(ladder, { rssBytes: 821 }), 0);
});

test('G7 a loop that is later than 200 ms for a second is the first step, never more', () => {
  const ladder = new PressureLevel();
  assert.equal(stepAt(ladder, { delayMs: 9000, now: 0 }), 0);
  assert.equal(stepAt(ladder, { delayMs: 201, now: 999 }), 0);
  assert.equal(stepAt(ladder, { delayMs: 9000, now: 1000 }), 1);
  assert.equal(stepAt(ladder, { delayMs: 200, now: 1250 }), 0);
  assert.equal(stepAt(ladder, { delayMs: 201, now: 1500 }), 0);
});

test('G7 memory that nobody uses refuses nobody: without a call the second step is never held', () => {
  const ladder = new PressureLevel();
  assert.equal(stepAt(ladder, { rssBytes: 990, idle: true }), 1);
  assert.equal(stepAt(ladder, { rssBytes: 990 }), 3);
  assert.equal(stepAt(ladder, { rssBytes: 990, idle: true }), 1);
});

test('G7 reports when the step changes, and only then', () => {
  const ladder = new PressureLevel();
  assert.equal(ladder.update(calm), false);
  assert.equal(ladder.update({ ...calm, rssBytes: 860 }), true);
  assert.equal(ladder.update({ ...calm, rssBytes: 870 }), false);
  assert.equal(ladder.update({ ...calm, rssBytes: 100 }), true);
});
