/** G8: what each key holds is exact, however many keys come and go. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CounterMap } from '../../../src/core/counter-map.ts';

test('G8 sums go up and down by name', () => {
  const counters = new CounterMap();
  counters.add('a', 2);
  counters.add('b', 1);
  counters.add('a', -1);
  assert.deepEqual([counters.of('a'), counters.of('b'), counters.of('c')], [1, 1, 0]);
});

test('G8 names of nothing make room, and no other does', () => {
  const counters = new CounterMap();
  for (let i = 0; i < 10_000; i++) {
    counters.add(`gone-${i}`, 1);
    counters.add(`gone-${i}`, -1);
    if (i % 5 === 0) counters.add(`kept-${i}`, i + 1);
  }
  for (let i = 0; i < 10_000; i += 5) assert.equal(counters.of(`kept-${i}`), i + 1);
  assert.equal(counters.of('gone-1'), 0);
});
