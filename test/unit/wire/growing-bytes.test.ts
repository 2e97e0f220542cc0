/** What is kept of a stream that does not go on is small, whatever it came with (G9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrowingBytes } from '../../../src/wire/sse.ts';

/** One read of a connection. */
const read = 64 * 1024;

function chunk(length: number, from = 0): Buffer {
  const bytes = Buffer.allocUnsafeSlow(length);
  for (let i = 0; i < length; i++) bytes[i] = (from + i) & 0xff;
  return bytes;
}

test('G9 the beginning of a frame keeps no read alive, neither its own nor one before it', () => {
  const growing = new GrowingBytes();
  const first = growing.with(chunk(read));
  growing.keep(first.subarray(read - 5000));
  const second = growing.with(chunk(read, read));
  assert.equal(second.length, 5000 + read);
  // Not twice as much: it is long enough to be no copy too many.
  assert.equal(second.buffer.byteLength, second.length);
  assert.ok(second.equals(chunk(5000 + read, read - 5000)));
  growing.keep(second.subarray(second.length - 5000));
  const kept = growing.taken();
  assert.ok(kept !== undefined && kept.equals(chunk(5000, 2 * read - 5000)));
  assert.ok(kept.buffer.byteLength < 4 * 5000, `${kept.buffer.byteLength} bytes kept`);
});

test('S22 what grows by small chunks is not copied anew for each', () => {
  const growing = new GrowingBytes();
  const memories = new Set<ArrayBufferLike>();
  const length = 1024 * 1024;
  for (let at = 0; at < length; at += 512) {
    const bytes = growing.with(chunk(512, at));
    if (bytes.length > 4096) memories.add(bytes.buffer);
    growing.keep(bytes);
  }
  assert.ok(memories.size <= 10, `${memories.size} copies`);
  assert.ok(growing.taken()?.equals(chunk(length)));
});
