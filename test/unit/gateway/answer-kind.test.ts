/** What an answer is by its first bytes, where its headers do not say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindOf } from '../../../src/gateway/answer/answer-body.ts';

const mark = '\uFEFF';

test('the first bytes tell a document from a stream, as soon as they are enough', () => {
  const kinds = ['{"id":1}', 'data: {}', 'event: x', 'dat', '<html>', ''].map((text) =>
    kindOf(Buffer.from(text)),
  );
  assert.deepEqual(kinds, ['document', 'stream', 'stream', 'unknown', 'neither', 'unknown']);
});

test('a byte order mark may come in pieces', () => {
  const bytes = Buffer.from(mark);
  const kinds = [1, 2].map((length) => kindOf(bytes.subarray(0, length)));
  assert.deepEqual(kinds, ['unknown', 'unknown']);
  assert.equal(kindOf(Buffer.from([0xef, 0x41])), 'neither');
});
