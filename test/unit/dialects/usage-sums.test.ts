/** Which parts a server counts beside its sums: its total tells (F3, F4, R-81). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excludedParts } from '../../../src/dialects/shared/usage-sums.ts';

const sums = { input: 60, cached: 40, output: 7, reasoning: 5 };

for (const [name, more, cached, reasoning] of [
  ['within, by the total', { total: 67 }, false, false],
  ['reasoning beside', { total: 72 }, false, true],
  ['cached beside', { total: 107 }, true, false],
  ['both beside', { total: 112 }, true, true],
  ['a total that nothing explains', { total: 1000 }, false, false],
  ['no total', { total: undefined }, false, false],
  [
    'no total, and parts that are larger than their sums',
    { input: 3, output: 2, total: undefined },
    true,
    true,
  ],
  ['a total that leaves out what is cached', { input: 3, total: 10 }, true, false],
  ['a total of the sums, and more reasoning than output', { output: 2, total: 62 }, false, false],
  ['no input', { input: undefined, cached: 0, total: 12 }, false, true],
] as const) {
  test(`F3 R-81 ${name}`, () => {
    assert.deepEqual(excludedParts({ ...sums, ...more }), { cached, reasoning });
  });
}
