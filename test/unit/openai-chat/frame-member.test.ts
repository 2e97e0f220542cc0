import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFrameMember } from '../../../src/dialects/openai-chat/relay/answer.ts';
import { findMember } from '../../../src/json/scan.ts';
import { assertLinear } from '../../support/linear.ts';

const key = Buffer.from('"model"');

/** What stands there, or undefined. */
function found(text: string): string | undefined {
  const bytes = Buffer.from(text);
  const span = findMember(bytes, 0, key);
  return span && bytes.subarray(span.start, span.end).toString();
}

test('I5 a member is found at the top level only, behind any number of the same name within others', () => {
  assert.equal(found('{"model":"m"}'), '"m"');
  assert.equal(found('{"x":[{"model":"a"},{"model":"b"}],"model":"m"}'), '"m"');
  assert.equal(found('{"x":{"model":"a"},"y":[[{"model":"b"}]]}'), undefined);
  assert.equal(found('{"x":"{\\"model\\":1","y":{"model":"a"},"model":"m"}'), '"m"');
  assert.equal(found('{"x":{"y":1}},"z":{"model":"a"}'), undefined);
  assert.equal(found('{"model":{"a":{}'), undefined);
  assert.equal(found('{"x":"]}","model":"m","y":{"model":"a"}}'), '"m"');
  const frame = Buffer.from('data: {"x":[{"model":"a"}],"model":"m"}\n\n');
  const span = findFrameMember(frame, key);
  assert.equal(span && frame.subarray(span.start, span.end).toString(), '"m"');
});

test('S22 thousands of members of the same name within others cost the length of the frame', () => {
  assertLinear((size) => {
    findMember(Buffer.from(`{"x":[${'{"model":1},'.repeat(size)}1],"model":"m"}`), 0, key);
  });
});
