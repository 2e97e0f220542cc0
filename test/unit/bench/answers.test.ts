/** The bench must not take a wrong answer for a result. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnswerReader } from '../../../bench/answer-reader.ts';
import { marksPerChunk, requestBody, streamFrames, unaryAnswer } from '../../../bench/bodies.ts';
import { summarize } from '../../../bench/analysis.ts';
import { dialects, type Dialect } from '../../../bench/protocol.ts';
import { faultOfStream, faultOfUnary } from '../../../bench/verify.ts';

function streamText(dialect: Dialect, chunks: number, reported = chunks): string {
  const { opening, contents, closing } = streamFrames(dialect, reported);
  const middle = Array.from({ length: chunks }, (_, i) => contents[i % contents.length]);
  return [...opening, ...middle, ...closing].join('');
}

function chunkedAnswer(text: string): Buffer {
  const frames = text.split(/(?<=\n\n)/);
  const coded = frames.map((f) => `${Buffer.byteLength(f).toString(16)}\r\n${f}\r\n`).join('');
  return Buffer.from(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${coded}0\r\n\r\n`);
}

for (const dialect of dialects) {
  test(`a ${dialect} stream is right only with all chunks, its ending and its counts`, () => {
    const text = streamText(dialect, 40);
    assert.equal(faultOfStream(dialect, text, 40), undefined);
    assert.match(faultOfStream(dialect, text, 41) ?? '', /40 content chunks instead of 41/);
    assert.match(
      faultOfStream(dialect, streamText(dialect, 40, 39), 40) ?? '',
      /usage|content chunks/,
    );
    const cut = text.slice(0, text.trimEnd().lastIndexOf('\n\n') + 2);
    assert.match(faultOfStream(dialect, cut, 40) ?? '', /does not end|content chunks/);
  });

  test(`a whole ${dialect} answer is right only with its counts`, () => {
    const text = unaryAnswer(dialect);
    assert.equal(faultOfUnary(dialect, text), undefined);
    assert.match(faultOfUnary(dialect, text.replace(':57', ':58')) ?? '', /usage/);
    assert.match(faultOfUnary(dialect, '<html>') ?? '', /not a JSON object/);
  });

  test(`a chunked ${dialect} answer is read alike however its bytes are split`, () => {
    const text = streamText(dialect, 3);
    const bytes = chunkedAnswer(text);
    for (const step of [1, 2, 3, 7, 64, bytes.length]) {
      const reader = new AnswerReader();
      let completeAt = -1;
      for (let at = 0; at < bytes.length; at += step) {
        if (reader.push(bytes.subarray(at, at + step))) completeAt = at + step;
      }
      assert.equal(reader.text(), text);
      assert.equal(reader.marks, 3 * marksPerChunk(dialect));
      assert.ok(completeAt >= bytes.length, `split by ${step}`);
    }
  });

  test(`a ${dialect} request has about the size that was asked for`, () => {
    for (const bytes of [1400, 100_000, 1_000_000, 10_000_000]) {
      const size = requestBody(dialect, 'm', { kind: 'unary', bytes }).length;
      assert.ok(Math.abs(size - bytes) < bytes * 0.1, `${size} for ${bytes}`);
    }
  });
}

test('an answer with a length is complete at that length, and the next one starts anew', () => {
  const reader = new AnswerReader();
  for (const body of ['{"a":1}', '{}']) {
    reader.reset();
    const head = `HTTP/1.1 201 Created\r\nContent-Length: ${body.length}\r\n\r\n`;
    assert.equal(reader.push(Buffer.from(head)), false);
    assert.equal(reader.push(Buffer.from(body)), true);
    assert.equal(reader.status, 201);
    assert.equal(reader.text(), body);
  }
});

test('a summary is the median with its extremes, and nothing of nothing', () => {
  assert.deepEqual(summarize([3, 1, 2]), { median: 2, min: 1, max: 3, count: 3 });
  assert.deepEqual(summarize([4, 1, 2, 3]), { median: 2.5, min: 1, max: 4, count: 4 });
  assert.equal(summarize([]), undefined);
});
