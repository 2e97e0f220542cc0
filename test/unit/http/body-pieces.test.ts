import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BodyPieces } from '../../../src/http/body.ts';

describe('G5 pieces of a body', () => {
  test('whatever their sizes, they are put together in their order', () => {
    const sizes = [
      1, 3, 16_383, 16_384, 1, 40_000, 5, 65_535, 2, 2, 16_383, 16_383, 16_383, 16_383,
    ];
    for (let from = 0; from < sizes.length; from++) {
      const pieces = new BodyPieces();
      const wanted: Buffer[] = [];
      for (const [i, size] of sizes.slice(from).entries()) {
        const piece = Buffer.alloc(size, i + 1);
        wanted.push(Buffer.from(piece));
        pieces.add(piece);
        // A copy must not follow what it was copied from; what is long is not copied.
        if (size < 16_384 && i > 0) piece.fill(0);
      }
      const whole = Buffer.concat(wanted);
      assert.deepEqual(pieces.all(whole.length).whole(), whole);
    }
  });

  test('a long body is there once, and only when it comes', () => {
    const length = 64 * 1024 ** 2;
    const silent = Array.from({ length: 1000 }, () => new BodyPieces(length));
    assert.equal(silent.length, 1000);
    const before = process.memoryUsage.rss();
    const pieces = new BodyPieces(length);
    for (let i = 0; i < 1024; i++) pieces.add(numbered(i));
    const all = pieces.all(length);
    const cost = process.memoryUsage.rss() - before;
    assert.ok(cost < 1.5 * length, `${cost} bytes`);
    const whole = all.whole();
    assert.equal(whole.length, length);
    for (let i = 0; i < 1024; i++) assert.equal(whole.readUInt32LE(i * 65_536), i);
  });

  test('one of a known length that is parsed on the event loop is joined as it comes', () => {
    const length = 1024 ** 2;
    const pieces = new BodyPieces(length);
    const piece = Buffer.alloc(65_536);
    for (let i = 0; i < 16; i++) {
      piece.writeUInt32LE(i);
      // The first ones are not copied at once.
      pieces.add(i < 2 ? Buffer.from(piece) : piece);
    }
    const { list } = pieces.all(length);
    assert.equal(list.length, 1);
    for (let i = 0; i < 16; i++) assert.equal(list[0]?.readUInt32LE(i * 65_536), i);
  });

  test('G10 who announces much and sends little has no place for all of it', () => {
    const before = process.memoryUsage().arrayBuffers;
    const dripped = Array.from({ length: 500 }, () => new BodyPieces(1024 ** 2));
    for (const pieces of dripped) for (let i = 0; i < 5; i++) pieces.add(Buffer.from('a'));
    const cost = process.memoryUsage().arrayBuffers - before;
    assert.ok(cost < 500 * 4 * 1024, `${cost} bytes`);
    assert.equal(dripped[0]?.all(5).toString(), 'aaaaa');
  });

  test('a long body of a known length is whole, wherever its pieces end', () => {
    const length = 300_000;
    const whole = Buffer.from(Array.from({ length }, (_, i) => i % 251));
    for (const size of [7, 1000, 16_384, 65_536, 131_071, 131_072, 131_073, length]) {
      const pieces = new BodyPieces(length);
      for (let at = 0; at < length; at += size) {
        const piece = Buffer.from(whole.subarray(at, at + size));
        pieces.add(piece);
      }
      const { list } = pieces.all(length);
      assert.equal(list.length, 1);
      assert.ok(list[0]?.equals(whole), `in pieces of ${size}`);
    }
  });

  test('a short body in two pieces keeps no room of a long one', () => {
    const [first, second] = [Buffer.allocUnsafeSlow(1448), Buffer.allocUnsafeSlow(9000)];
    for (const told of [0, 10_448]) {
      const pieces = new BodyPieces(told);
      pieces.add(first);
      pieces.add(second);
      const kept = pieces.all(10_448).list.map(({ buffer }) => buffer.byteLength);
      assert.ok(Math.max(...kept) < 16_384, String(kept));
    }
  });

  test('one piece is what came, without a copy', () => {
    const pieces = new BodyPieces();
    const piece = Buffer.from('{}');
    pieces.add(piece);
    assert.equal(pieces.all(2).whole(), piece);
  });

  test('a body that comes byte by byte costs little more than its bytes', () => {
    const pieces = new BodyPieces();
    const before = process.memoryUsage();
    for (let i = 0; i < 500_000; i++) pieces.add(Buffer.allocUnsafeSlow(64).subarray(0, 1));
    const after = process.memoryUsage();
    assert.equal(pieces.all(500_000).whole().length, 500_000);
    const cost = after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers;
    assert.ok(cost < 40_000_000, `${cost} bytes`);
  });
});

function numbered(i: number): Buffer {
  const piece = Buffer.alloc(65_536);
  piece.writeUInt32LE(i);
  return piece;
}
