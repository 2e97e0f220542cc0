import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeftStreams } from '../../../src/gateway/left-streams.ts';

test('F73 at most 64 streams are read on without a client', () => {
  const left = new LeftStreams();
  const taken = Array.from({ length: 65 }, () => left.take());
  assert.equal(taken.filter(Boolean).length, 64);
  left.done();
  assert.equal(left.take(), true);
  assert.equal(left.take(), false);
});
