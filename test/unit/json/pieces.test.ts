import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseClientBody, type JsonSource } from '../../../src/core/client-body.ts';
import { Pieces } from '../../../src/json/pieces.ts';

/** A body that is short enough to be parsed here. */
function parsed(...given: Parameters<typeof parseClientBody>): JsonSource {
  const source = parseClientBody(...given);
  assert.ok(source !== undefined);
  return source;
}

const text = '{"model":"größe/ü", "stop":["\\u0041"], "messages":[{"role":"user"}]}';

/** The text cut at each place of `cuts`. */
function cut(bytes: Buffer, ...cuts: readonly number[]): Pieces {
  const ends = [...cuts, bytes.length];
  return new Pieces(ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)));
}

describe('bytes in pieces', () => {
  const bytes = Buffer.from('abcdefgh');

  test('what lies between two offsets is not copied, whatever the pieces', () => {
    for (let at = 0; at <= bytes.length; at++) {
      const pieces = cut(bytes, at);
      for (let from = 0; from <= bytes.length; from++) {
        for (let to = from; to <= bytes.length; to++) {
          const found = pieces.between(from, to);
          assert.deepEqual(Buffer.concat(found), bytes.subarray(from, to));
          for (const piece of found) assert.equal(piece.buffer, bytes.buffer);
        }
      }
      assert.deepEqual(pieces.whole(), bytes);
    }
  });

  test('G5 put together, they are there once', () => {
    const pieces = cut(bytes, 3, 5);
    const whole = pieces.whole();
    assert.deepEqual(pieces.list, [whole]);
    assert.equal(pieces.whole(), whole);
    assert.deepEqual(Buffer.concat(pieces.between(2, 6)), bytes.subarray(2, 6));
  });

  test('a mark is found in a piece and over any seams', () => {
    for (let a = 0; a <= bytes.length; a++) {
      for (let b = a; b <= bytes.length; b++) {
        const pieces = cut(bytes, a, b);
        assert.ok(pieces.includes(Buffer.from('cdef')));
        assert.ok(!pieces.includes(Buffer.from('cdee')));
        assert.ok(!pieces.includes(Buffer.from('dcef')));
      }
    }
    const each = new Pieces([...bytes].map((byte) => Buffer.of(byte)));
    assert.ok(each.includes(Buffer.from('cdef')));
    assert.ok(!each.includes(Buffer.from('cdff')));
  });
});

describe('B26 a body in pieces is read as if it came in one', () => {
  test('cut at every byte, with a mark of the byte order before it', async () => {
    for (const mark of ['', '\ufeff']) {
      const bytes = Buffer.from(mark + text);
      const owned = new Set(['model']);
      const whole = parsed(bytes, owned);
      for (let at = 0; at <= bytes.length; at++) {
        const source = parsed(cut(bytes, at), owned);
        assert.deepEqual(source.value, JSON.parse(text));
        assert.deepEqual([...source.spans], [...whole.spans]);
        assert.equal(source.bodyStart, whole.bodyStart);
        assert.equal(source.bytes.toString(), text);
        source.forget();
        assert.deepEqual(source.value, JSON.parse(text));
      }
    }
  });

  test('what was parsed keeps nothing of the memory in which it was parsed', async () => {
    const first = parsed(cut(Buffer.from('{"a":"first"}'), 3), new Set());
    parsed(cut(Buffer.from('{"a":"other"}'), 3), new Set());
    first.forget();
    assert.deepEqual(first.value, { a: 'first' });
    assert.equal(first.pieces.toString(), '{"a":"first"}');
  });
});
