/** G8: what each key holds is exact, however many keys come and go. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tally } from '../../../src/core/tally.ts';

test('G8 sums go up and down by name', () => {
  const tally = new Tally();
  tally.add('a', 2);
  tally.add('b', 1);
  tally.add('a', -1);
  assert.deepEqual([tally.of('a'), tally.of('b'), tally.of('c')], [1, 1, 0]);
});

test('G8 names of nothing make room, and no other does', () => {
  const tally = new Tally();
  for (let i = 0; i < 10_000; i++) {
    tally.add(`gone-${i}`, 1);
    tally.add(`gone-${i}`, -1);
    if (i % 5 === 0) tally.add(`kept-${i}`, i + 1);
  }
  for (let i = 0; i < 10_000; i += 5) assert.equal(tally.of(`kept-${i}`), i + 1);
  assert.equal(tally.of('gone-1'), 0);
});
