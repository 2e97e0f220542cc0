import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DetachedStreams } from '../../../src/gateway/deadlines.ts';

test('F73 at most 64 streams are read on without a client', () => {
  const left = new DetachedStreams(() => 3000);
  const taken = Array.from({ length: 65 }, () => left.take());
  assert.equal(taken.filter(Boolean).length, 64);
  left.done();
  assert.equal(left.take(), true);
  assert.equal(left.take(), false);
});

test('F73 G2 they take a tenth of the places at most', () => {
  let streams = 20;
  const left = new DetachedStreams(() => streams);
  assert.deepEqual([left.take(), left.take(), left.take()], [true, true, false]);
  streams = 30;
  assert.equal(left.take(), true);
  assert.equal(left.take(), false);
  streams = 1;
  for (let i = 0; i < 3; i++) left.done();
  assert.equal(left.take(), true);
  assert.equal(left.take(), false);
});
