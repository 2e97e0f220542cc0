/** Properties: what is written is read again, and every stream has exactly one ending. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { Conversation, Part, ToolCallPart, Turn } from '../../../src/core/conversation.ts';
import type { NewId } from '../../../src/core/runtime.ts';
import {
  collect,
  replay,
  type FinishReason,
  type Generation,
  type GenerationEvent,
} from '../../../src/core/generation.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';
import { answerContext, framesOf, readAll, writeStream } from './answer-context.ts';
import { anyCharacter } from '../../support/any-character.ts';

const words = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 });
/** Blank texts are left out of a translated turn (B3), so that nothing of them comes back. */
const spoken = words.filter((text) => text.trim() !== '');
const textPart = words.map((text): Part => ({ type: 'text', text }));
const refusalPart = words.map((text): Part => ({ type: 'refusal', text }));
const reasoningPart = fc
  .record({ text: fc.string({ unit: anyCharacter, maxLength: 8 }), signature: fc.option(words) })
  .filter(({ text, signature }) => text !== '' || signature !== null)
  .map(({ text, signature }): Part =>
    signature === null ? { type: 'reasoning', text } : { type: 'reasoning', text, signature },
  );
const encryptedPart = words.map((encrypted): Part => ({ type: 'reasoning', text: '', encrypted }));
const argumentsJson = fc.oneof(
  fc.dictionary(words, fc.jsonValue({ maxDepth: 1 })).map((value) => JSON.stringify(value)),
  words.filter((text) => text.trim() !== ''),
);

/** Neighbours of one kind would be one part on the wire; ids are unique as servers make them. */
function answerParts(parts: readonly Part[]): readonly Part[] {
  const kept: Part[] = [];
  let calls = 0;
  for (const part of parts) {
    const last = kept.at(-1);
    if (part.type === last?.type && (part.type === 'text' || part.type === 'refusal')) continue;
    kept.push(part.type === 'tool-call' ? { ...part, id: `call_${calls++}` } : part);
  }
  return kept;
}

const callPart = fc
  .record({ name: fc.constantFrom('f', 'g', 'h'), argumentsJson })
  .map((call): Part => ({ type: 'tool-call', id: '', ...call }));

const parts = fc
  .array(fc.oneof(textPart, refusalPart, reasoningPart, encryptedPart, callPart), { maxLength: 6 })
  .map(answerParts);

const usage = fc
  .record({ fresh: fc.nat(), read: fc.nat(), write: fc.nat(), output: fc.nat(), think: fc.nat() })
  .map(({ fresh, read, write, output, think }) => ({
    freshInputTokens: fresh,
    cacheReadTokens: read,
    cacheWriteTokens: write,
    outputTokens: output + think,
    reasoningTokens: think,
  }));

function finishFor(
  kind: 'natural' | 'length' | 'content-filter',
  list: readonly Part[],
): FinishReason {
  if (kind === 'length') return { kind, raw: 'length' };
  if (kind === 'content-filter') return { kind, raw: 'content_filter' };
  return list.some((part) => part.type === 'tool-call')
    ? { kind: 'tool-calls', raw: 'tool_calls' }
    : { kind: 'stop', raw: 'stop' };
}

const generation = fc
  .record({
    parts,
    usage,
    kind: fc.constantFrom('natural' as const, 'length' as const, 'content-filter' as const),
  })
  .map(({ parts, usage, kind }): Generation => ({
    id: 'chatcmpl-1',
    model: 'my-model',
    parts,
    finish: finishFor(kind, parts),
    usage,
  }));

/** The same generation as a stream: texts cut in two, part by part. */
function streamed({ parts, finish, usage }: Generation, cut: number): readonly GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: 'start', id: 'chatcmpl-1', model: 'up' }];
  parts.forEach((part, index) => events.push(...streamedPart(part, index, cut)));
  if (usage !== undefined) events.push({ type: 'usage', usage });
  events.push({ type: 'finish', reason: finish });
  return events;
}

function streamedPart(part: Part, index: number, cut: number): readonly GenerationEvent[] {
  const halves = (text: string): readonly string[] =>
    [text.slice(0, cut), text.slice(cut)].filter((half) => half !== '');
  const deltas = (field: 'text' | 'arguments' | 'signature', text: string): GenerationEvent[] =>
    halves(text).map((delta) => ({ type: 'part-delta', index, field, delta }));
  const whole: GenerationEvent = { type: 'part-start', index, part };
  const end: GenerationEvent = { type: 'part-end', index };
  if (part.type === 'tool-call') {
    const begun: GenerationEvent = { ...whole, part: { ...part, argumentsJson: '' } };
    return [begun, ...deltas('arguments', part.argumentsJson), end];
  }
  if (part.type === 'reasoning' && part.encrypted === undefined) {
    const begun: GenerationEvent = { ...whole, part: { type: 'reasoning', text: '' } };
    return [begun, ...deltas('text', part.text), ...deltas('signature', part.signature ?? ''), end];
  }
  if (part.type === 'text' || part.type === 'refusal') {
    return [{ ...whole, part: { ...part, text: '' } }, ...deltas('text', part.text), end];
  }
  return [whole, end];
}

function withoutRaw(read: Generation | undefined): Generation | undefined {
  if (read?.usage === undefined) return read;
  const { raw: _raw, ...counts } = read.usage;
  return { ...read, usage: counts };
}

describe('answers', () => {
  test('conservation: stream → chat writer → chat reader gives the same answer', () => {
    fc.assert(
      fc.property(generation, fc.integer({ min: 1, max: 6 }), (original, cut) => {
        const text = writeStream(streamed(original, cut));
        assert.deepEqual(withoutRaw(collect(readAll(framesOf(text)))), original);
      }),
    );
  });

  test('conservation: a replayed document is the same stream', () => {
    fc.assert(
      fc.property(generation, (original) => {
        const text = writeStream(replay(original));
        assert.deepEqual(withoutRaw(collect(readAll(framesOf(text)))), original);
      }),
    );
  });

  test('conservation: document → chat writer → chat reader, by kinds', () => {
    const byKind = ({ parts, ...rest }: Generation) => ({
      ...rest,
      reasoning: parts.filter((part) => part.type === 'reasoning'),
      calls: parts.filter((part) => part.type === 'tool-call'),
      text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
      refusal: parts.map((part) => (part.type === 'refusal' ? part.text : '')).join(''),
    });
    // Several unsigned blocks are one text on the wire.
    const separable = generation.filter(
      ({ parts }) =>
        parts.filter((part) => part.type === 'reasoning').length < 2 ||
        parts.some((part) => part.type === 'reasoning' && part.signature !== undefined),
    );
    fc.assert(
      fc.property(separable, (original) => {
        const written = openaiChatClient.writeResponse(original, answerContext());
        const read = withoutRaw(openaiChatUpstream.readResponse(written, chatTraits));
        assert.ok(read !== undefined);
        assert.deepEqual(byKind(read), byKind(original));
      }),
    );
  });

  test('E4 any cut of any stream has exactly one ending, and it is an error before the finish', () => {
    fc.assert(
      fc.property(generation, fc.double({ min: 0, max: 1, noNaN: true }), (original, share) => {
        const bytes = Buffer.from(writeStream(streamed(original, 2)));
        const splitter = new SseSplitter();
        const cut = bytes.subarray(0, Math.floor(bytes.length * share));
        const frames = splitter.push(cut);
        const events = readAll(frames);
        const endings = events.filter((event) => event.type === 'finish' || event.type === 'error');
        assert.equal(endings.length, 1);
        const last = endings[0];
        const finished =
          cut.includes('"finish_reason":"') &&
          frames.some((frame) => frame.data?.includes('"finish_reason":"'));
        assert.equal(last?.type, finished ? 'finish' : 'error');
      }),
    );
  });

  test('readers throw nothing but GatewayError, and nothing comes after an ending', () => {
    const values = fc.jsonValue({ maxDepth: 3 });
    const delta = fc.dictionary(
      fc.constantFrom(
        'content',
        'reasoning_details',
        'tool_calls',
        'refusal',
        'annotations',
        'function_call',
      ),
      values,
    );
    const odd = fc.oneof(
      values,
      fc.record({
        choices: fc.array(
          fc.record({ index: fc.constantFrom(0, 1, null), delta, finish_reason: values }),
        ),
        usage: values,
      }),
    );
    fc.assert(
      fc.property(fc.array(odd), (chunks) => {
        const reader = openaiChatUpstream.streamReader(chatTraits);
        let endings = 0;
        try {
          const text = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
          for (const frame of framesOf(text)) {
            for (const event of reader.read(frame)) {
              if (event.type === 'finish' || event.type === 'error') endings += 1;
            }
          }
          for (const event of reader.end()) {
            if (event.type === 'finish' || event.type === 'error') endings += 1;
          }
          assert.equal(endings, 1);
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
        }
      }),
    );
  });

  test('documents and error bodies of any shape: GatewayError or an answer', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 400, max: 599 }), (value, status) => {
        assert.ok(
          openaiChatUpstream.readError(status, JSON.stringify(value)) instanceof GatewayError,
        );
        const body = { choices: [{ index: 0, message: value }], usage: value };
        try {
          openaiChatUpstream.readResponse(body, chatTraits);
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
        }
      }),
    );
  });
});

const noId: NewId = () => assert.fail('no random ids in requests');

/** Turns that alternate, every call answered by the turn behind it. */
const conversation = fc
  .record({
    system: fc.array(
      spoken.map((text): Part => ({ type: 'text', text })),
      { maxLength: 1 },
    ),
    exchanges: fc.array(
      fc.record({
        question: spoken,
        say: fc.option(spoken),
        calls: fc.array(
          fc.record({ name: fc.constantFrom('f', 'g'), argumentsJson, result: words }),
          {
            maxLength: 3,
          },
        ),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    sampling: fc.record(
      {
        maxOutputTokens: fc.integer({ min: 1 }),
        temperature: fc.constantFrom(0, 0.5, 2),
        topP: fc.constantFrom(0.1, 1),
        stop: fc.array(words, { minLength: 1, maxLength: 4 }),
        seed: fc.integer(),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
  })
  .map(({ system, exchanges, sampling }): Conversation => {
    const turns: Turn[] = [];
    let pending: readonly Part[] = [];
    exchanges.forEach(({ question, say, calls }, i) => {
      turns.push({ role: 'user', parts: [...pending, { type: 'text', text: question }] });
      const made = calls.map((call, j): ToolCallPart => ({
        type: 'tool-call',
        id: `call_${i}_${j}`,
        name: call.name,
        argumentsJson: call.argumentsJson,
      }));
      pending = made.map((call, j): Part => ({
        type: 'tool-result',
        callId: call.id,
        failed: false,
        parts: [{ type: 'text', text: calls[j]?.result ?? '' }],
      }));
      const said: readonly Part[] = [{ type: 'text', text: say ?? 'ok' }];
      turns.push({ role: 'assistant', parts: [...said, ...made] });
    });
    turns.push({ role: 'user', parts: [...pending, { type: 'text', text: 'last' }] });
    return { system, turns, tools: [], sampling, output: { type: 'text' }, extras: {} };
  });

describe('requests', () => {
  test('conservation: write, then read, gives the same conversation', () => {
    fc.assert(
      fc.property(conversation, (original) => {
        const notes = new NoteList();
        const ask = { model: 'm', stream: false, traits: chatTraits, newId: noId };
        const written = openaiChatUpstream.writeRequest(original, ask, notes);
        openaiChatClient.readHead(written);
        assert.deepEqual(openaiChatClient.readRequest(written, notes), original);
        assert.deepEqual(notes.all, []);
        assert.equal(
          JSON.stringify(openaiChatUpstream.writeRequest(original, ask, notes)),
          JSON.stringify(written),
        );
      }),
    );
  });

  test('heads and readers throw nothing but GatewayError', () => {
    const part = fc.record({
      type: fc.constantFrom('text', 'image_url', 'file', 'x'),
      text: fc.jsonValue(),
    });
    const message = fc.record({
      role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'function'),
      content: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.array(part)),
      tool_calls: fc.jsonValue({ maxDepth: 2 }),
    });
    const body = fc.record(
      {
        model: fc.constant('m'),
        messages: fc.oneof(fc.array(message), fc.jsonValue()),
        tools: fc.jsonValue({ maxDepth: 3 }),
        tool_choice: fc.jsonValue({ maxDepth: 2 }),
        response_format: fc.jsonValue({ maxDepth: 2 }),
        reasoning: fc.jsonValue({ maxDepth: 1 }),
        stop: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: ['model', 'messages'] },
    );
    fc.assert(
      fc.property(body, (value) => {
        const json: Parameters<typeof openaiChatClient.readHead>[0] = { ...value };
        for (const read of [
          () => openaiChatClient.readHead(json),
          () => openaiChatClient.readRequest(json, new NoteList()),
        ]) {
          try {
            read();
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error;
          }
        }
      }),
    );
  });
});
