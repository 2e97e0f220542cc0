import assert from 'node:assert/strict';
import { test } from 'node:test';
import { middlePairs } from '../../../bench/alternating.ts';
import { failedMeasurement } from '../../../bench/measure.ts';

const costing = (subjectUs: number, failures = 0) => ({
  ...failedMeasurement('none'),
  requests: 1,
  subjectUs,
  failures,
});

test('issue 25: what a key adds is that of the middle pairs, and failed calls are never left out', () => {
  const pairs = Array.from({ length: 20 }, (_, i) => ({
    own: costing(300 - i),
    plain: costing(200),
  }));
  const kept = middlePairs(pairs).map(({ own, plain }) => own.subjectUs - plain.subjectUs);
  assert.deepEqual(kept, [86, 87, 88, 89, 90, 91, 92, 93, 94, 95]);
  const failed = [...pairs.slice(1), { own: costing(900, 1), plain: costing(200) }];
  assert.equal(middlePairs(failed).length, 20);
});
