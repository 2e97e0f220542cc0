import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lonePoints } from '../../../dashboard/src/components/lone-points.ts';

test('issue 8.1 points of a chart without neighbours are found, and no others', () => {
  assert.deepEqual(lonePoints([]), []);
  assert.deepEqual(lonePoints([5]), [0]);
  assert.deepEqual(lonePoints([null, null, 3]), [2]);
  assert.deepEqual(lonePoints([1, null, 2, 3, undefined, 0, null]), [0, 5]);
  assert.deepEqual(lonePoints([1, 2, 3]), []);
});
