/**
 * Frames of the clouds that only continue a text are recognised and not parsed. What is read of them is what a parse
 * finds: texts, counts of each frame, and all that comes between.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { StreamReader } from '../../src/core/dialect.ts';
import type { GenerationEvent } from '../../src/core/generation.ts';
import { ConverseStreamReader } from '../../src/dialects/bedrock-converse/answer/stream-read.ts';
import { GeminiStreamReader } from '../../src/dialects/gemini/answer/stream-read.ts';
import { GatewayError } from '../../src/core/errors.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { EventFrames } from '../../src/providers/clouds/aws/event-frames.ts';
import { eventMessage, invokeChunk } from '../upstream/aws.ts';
import { anyCharacter } from '../support/any-character.ts';

const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 12 }),
  fc.constantFrom('"', '\\', '\n', '"usageMetadata":{}', '","p":"x', ' '),
);

interface Sent {
  readonly event?: string;
  readonly value: JsonObject;
}

/** The events of each frame. @param written each JSON text, by its position */
function eventsOf(
  reader: StreamReader,
  frames: readonly Sent[],
  written: (value: JsonObject, at: number) => string,
): readonly (readonly GenerationEvent[])[] {
  const bytes = Buffer.alloc(0);
  const read = frames.map(({ event, value }, at) =>
    reader.read({ bytes, event, data: written(value, at) }),
  );
  return [...read, reader.end()];
}

/** Spaces at the beginning of a different number in each frame: no frame is like the one before. */
const neverAlike = (value: JsonObject, at: number): string =>
  ' '.repeat(at + 1) + JSON.stringify(value);
const usual = (value: JsonObject): string => JSON.stringify(value);

/** Equal but for reports of counts that say nothing new. */
function withoutRepeats(events: readonly (readonly GenerationEvent[])[]): readonly unknown[] {
  let last = '';
  return events.flat().filter((event) => {
    if (event.type !== 'usage') return true;
    const said = JSON.stringify(event.usage);
    const isNew = said !== last;
    last = said;
    return isNew;
  });
}

const counts = fc.record(
  {
    promptTokenCount: fc.constantFrom(7, 8),
    candidatesTokenCount: fc.nat(5),
    totalTokenCount: fc.nat(9),
    promptTokensDetails: fc.constantFrom([{ modality: 'TEXT', tokenCount: 7 }], []),
  },
  { noNullPrototype: true },
);
const geminiPart: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ text }, { noNullPrototype: true }) },
  fc.record({ text, thought: fc.constant(true) }, { noNullPrototype: true }),
  fc.constant({ text: '', thoughtSignature: 'c2ln' }),
  fc.constant({ functionCall: { name: 'f', args: { a: 1 } } }),
);
const geminiChunk: fc.Arbitrary<Sent> = fc
  .record({
    parts: fc.array(geminiPart, { minLength: 1, maxLength: 2 }),
    usage: fc.option(counts, { nil: undefined, freq: 5 }),
    tail: fc.constantFrom<JsonObject>({ modelVersion: 'm', responseId: 'r' }, {}),
  })
  .map(({ parts, usage, tail }) => ({
    value: {
      candidates: [{ content: { parts, role: 'model' }, index: 0 }],
      ...(usage === undefined ? {} : { usageMetadata: usage }),
      ...tail,
    },
  }));
const geminiEnd: Sent = {
  value: {
    candidates: [{ content: { parts: [{ text: '!' }], role: 'model' }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 },
  },
};

test('Gemini: frames that are recognised say what a parse of them says', () => {
  fc.assert(
    fc.property(fc.array(geminiChunk, { maxLength: 14 }), (chunks) => {
      const frames = [...chunks, geminiEnd];
      const recognised = eventsOf(new GeminiStreamReader(false), frames, usual);
      const parsed = eventsOf(new GeminiStreamReader(false), frames, neverAlike);
      assert.deepEqual(withoutRepeats(recognised), withoutRepeats(parsed));
    }),
    { numRuns: 400 },
  );
});

test('Gemini: counts that differ from frame to frame are reported with each of them', () => {
  const frames = [1, 2, 3, 4].map((count) => ({
    value: {
      candidates: [{ content: { parts: [{ text: 'a' }], role: 'model' }, index: 0 }],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: count },
    },
  }));
  const events = eventsOf(new GeminiStreamReader(false), frames, usual).flat();
  const told = events.map((event) => event.type === 'usage' && event.usage.outputTokens);
  assert.deepEqual(told.filter(Boolean), [1, 2, 3, 4]);
});

const block = fc.constantFrom(0, 1);
const converseFrame: fc.Arbitrary<Sent> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ block, text, p: fc.stringMatching(/^[a-z]{0,5}$/) }).map((made) => ({
      event: 'contentBlockDelta',
      value: { contentBlockIndex: made.block, delta: { text: made.text }, p: made.p },
    })),
  },
  block.map((contentBlockIndex) => ({ event: 'contentBlockStop', value: { contentBlockIndex } })),
  fc.record({ block, text }).map((made) => ({
    event: 'contentBlockDelta',
    value: { contentBlockIndex: made.block, delta: { reasoningContent: { text: made.text } } },
  })),
);
const converseEnd: readonly Sent[] = [
  { event: 'messageStop', value: { stopReason: 'end_turn' } },
  { event: 'metadata', value: { usage: { inputTokens: 3, outputTokens: 4 } } },
];

test('Converse: frames that are recognised say what a parse of them says', () => {
  fc.assert(
    fc.property(fc.array(converseFrame, { maxLength: 14 }), (made) => {
      const frames = [...made, ...converseEnd];
      const recognised = eventsOf(new ConverseStreamReader(), frames, usual);
      const parsed = eventsOf(new ConverseStreamReader(), frames, neverAlike);
      assert.deepEqual(recognised, parsed);
    }),
    { numRuns: 400 },
  );
});

test('InvokeModel: an event that is decoded into its frame is the one of a parse', () => {
  const event = fc.record({
    type: fc.constantFrom('content_block_delta', 'content_block_stop', 'ping'),
    text,
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), (events) => {
      const frames = new EventFrames(() => new GatewayError('upstream_unavailable', 'unused'));
      const read = frames.push(Buffer.concat(events.map((each) => invokeChunk(each))));
      assert.deepEqual(
        read.map((frame) => [frame.event, frame.data, frame.bytes.toString('utf8')]),
        events.map((each) => {
          const data = JSON.stringify(each);
          return [each.type, data, `event: ${each.type}\ndata: ${data}\n\n`];
        }),
      );
    }),
    { numRuns: 300 },
  );
});

test('InvokeModel: bytes in an unusual wrapping are read by a parse', () => {
  const event = '{"type":"ping","text":"a"}';
  const encoded = Buffer.from(event).toString('base64');
  const odd = [
    `{"bytes":"${encoded}"}`,
    `{"p":"abc","bytes":"${encoded}"}`,
    `{ "bytes": "${encoded}" }`,
    `{"bytes":"${encoded.replace('e', String.raw`\u0065`)}","p":"a"}`,
    `{"bytes":"${encoded.replace(/=+$/, '')}","p":"a"}`,
    `{"bytes":"bm90aGluZw==","bytes":"${encoded}"}`,
  ];
  for (const payload of odd) {
    const frames = new EventFrames(() => new GatewayError('upstream_unavailable', 'unused'));
    const chunk = eventMessage({ ':event-type': 'chunk', ':message-type': 'event' }, payload);
    const read = frames.push(Buffer.concat([invokeChunk({ type: 'ping' }), chunk]));
    assert.deepEqual([read[1]?.event, read[1]?.data], ['ping', event], payload);
  }
});
