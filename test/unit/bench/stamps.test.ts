import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lateness, percentile } from '../../../bench/percentile.ts';
import { streamFrames } from '../../../bench/bodies.ts';
import { blankStamp, stamped, StampReader } from '../../../bench/stamps.ts';

test('issue 7.1: percentiles are values that were measured, and of nothing there is none', () => {
  const values = Array.from({ length: 100 }, (_, i) => i + 1);
  assert.equal(percentile(values, 0.5), 51);
  assert.equal(percentile(values, 0.99), 100);
  assert.equal(percentile([7], 0.99), 7);
  assert.ok(Number.isNaN(percentile([], 0.5)));
  assert.deepEqual(lateness([5, 1, 3, 2, 4]), { p50: 3, p99: 5 });
});

for (const dialect of ['openai-chat', 'anthropic-messages'] as const) {
  test(`issue 7.1: the time that a ${dialect} chunk was due is read alike however its bytes are split`, () => {
    const [content = ''] = streamFrames(dialect, 3, blankStamp).contents;
    const times = [1_234_567_890, 42, 9_999_999_999_999];
    const bytes = Buffer.concat(times.map((us) => stamped(Buffer.from(content), us)));
    for (const step of [1, 2, 5, 16, 17, 250, bytes.length]) {
      const reader = new StampReader();
      const found: number[] = [];
      for (let at = 0; at < bytes.length; at += step) {
        found.push(...reader.push(bytes.subarray(at, at + step)));
      }
      assert.deepEqual(found, times, `split by ${step}`);
    }
  });
}

test('issue 7.1: a stamp that another framing cuts in two is omitted, not read wrongly', () => {
  const chunk = stamped(Buffer.from(`~${blankStamp} text`), 123_456);
  const cut = Buffer.concat([chunk.subarray(0, 9), Buffer.from('\r\n20\r\n'), chunk.subarray(9)]);
  assert.deepEqual(new StampReader().push(Buffer.concat([cut, chunk])), [123_456]);
});

test('issue 7.1: a stamp leaves the chunk that it was made from as it is', () => {
  const chunk = Buffer.from(`~${blankStamp}`);
  assert.equal(stamped(chunk, 5).toString(), `~${'0'.repeat(15)}5`);
  assert.equal(chunk.toString(), `~${blankStamp}`);
});
