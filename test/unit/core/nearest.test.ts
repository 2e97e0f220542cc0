import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearest } from '../../../src/core/nearest.ts';

test('a short name with two letters in the wrong order is one slip from the right one', () => {
  const commands = ['start', 'status', 'tail', 'keys'];
  assert.equal(nearest('strat', commands), 'start');
  assert.equal(nearest('tial', commands), 'tail');
  assert.equal(nearest('stauts', commands), 'status');
  assert.equal(nearest('frobnicate', commands), undefined);
});
