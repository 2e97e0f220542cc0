/** Event streams of AWS: what AWS's codec writes is read at any cut, and nothing broken is read (wire/bedrock.md §10.3). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { type EventMessage, EventStreamSplitter } from '../../src/wire/event-stream.ts';
import { eventMessage } from '../upstream/aws.ts';
import { anyCharacter } from '../support/any-character.ts';

const headers = fc.dictionary(
  fc.stringMatching(/^:?[a-z][a-z-]{0,20}$/),
  fc.string({ unit: anyCharacter, maxLength: 30 }),
  { maxKeys: 4, noNullPrototype: true },
);
const messages = fc.array(fc.record({ headers, payload: fc.uint8Array({ maxLength: 300 }) }), {
  minLength: 1,
  maxLength: 6,
});
const cuts = fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 30 });

/** The bytes in parts of these lengths, which are used again and again. */
function cut(bytes: Buffer, lengths: readonly number[]): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length] ?? 1;
    parts.push(bytes.subarray(at, at + length));
    at += length;
  }
  return parts;
}

function shown(read: readonly EventMessage[]): readonly unknown[] {
  return read.map((each) => ({
    headers: Object.fromEntries(each.headers),
    payload: each.payload.toString('hex'),
  }));
}

test('bedrock 2: messages of the codec at any cut', () => {
  fc.assert(
    fc.property(messages, cuts, (sent, lengths) => {
      const bytes = Buffer.concat(
        sent.map((each) => eventMessage(each.headers, Buffer.from(each.payload))),
      );
      const splitter = new EventStreamSplitter();
      const read = cut(bytes, lengths).flatMap((part) => splitter.push(Buffer.from(part)));
      assert.equal(splitter.failure, undefined);
      assert.deepEqual(
        shown(read),
        sent.map((each) => ({
          headers: each.headers,
          payload: Buffer.from(each.payload).toString('hex'),
        })),
      );
    }),
    { numRuns: 200 },
  );
});

test('bedrock 14: no byte can be changed unseen, and what came before is kept', () => {
  fc.assert(
    fc.property(
      messages,
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      cuts,
      (sent, at, by, lengths) => {
        const whole = sent.map((each) => eventMessage(each.headers, Buffer.from(each.payload)));
        const bytes = Buffer.concat(whole);
        const spoiled = at % bytes.length;
        let before = 0;
        let intact = 0;
        for (const message of whole) {
          if (before + message.length > spoiled) break;
          before += message.length;
          intact += 1;
        }
        bytes[spoiled] = (bytes[spoiled] ?? 0) ^ by;
        const splitter = new EventStreamSplitter();
        const read = cut(bytes, lengths).flatMap((part) => splitter.push(Buffer.from(part)));
        assert.equal(read.length, intact);
        assert.equal(splitter.failure?.code, 'upstream_invalid');
      },
    ),
    { numRuns: 300 },
  );
});
