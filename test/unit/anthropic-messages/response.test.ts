import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Part } from '../../../src/core/conversation.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { FinishReason, Usage } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { messagesTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { unseal } from '../../../src/dialects/shared/seals.ts';
import { truncatedInput } from '../../../src/dialects/shared/request/tools.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { chatUpstream, testSealer } from '../../support/sealing.ts';
import { answerContext, generationOf, noted, translated } from './answer-context.ts';

const { writeResponse } = anthropicMessagesClient;
const readResponse = (body: JsonObject) =>
  anthropicMessagesUpstream.readResponse(body, messagesTraits);

const native: JsonObject = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [
    { type: 'thinking', thinking: 'hm', signature: 'sig' },
    { type: 'redacted_thinking', data: 'e' },
    { type: 'text', text: 'So.' },
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: { x: 1 } },
    { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: {
    input_tokens: 3,
    cache_creation_input_tokens: 12_304,
    cache_creation: { ephemeral_5m_input_tokens: 304, ephemeral_1h_input_tokens: 12_000 },
    cache_read_input_tokens: 0,
    output_tokens: 550,
    output_tokens_details: { thinking_tokens: 20 },
    server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
    service_tier: 'standard',
  },
};

describe('reading', () => {
  test('every kind of block, and the four classes of tokens (F2)', () => {
    const generation = readResponse(native);
    assert.deepEqual(generation, {
      id: 'msg_1',
      model: 'claude',
      parts: [
        { type: 'reasoning', text: 'hm', signature: 'sig' },
        { type: 'reasoning', text: '', encrypted: 'e' },
        { type: 'text', text: 'So.' },
        { type: 'tool-call', id: 'toolu_1', name: 'f', argumentsJson: '{"x":1}' },
        {
          type: 'opaque',
          dialect: 'anthropic-messages',
          value: { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
        },
      ],
      finish: { kind: 'tool-calls', raw: 'tool_use' },
      usage: {
        freshInputTokens: 3,
        cacheReadTokens: 0,
        cacheWriteTokens: 12_304,
        cacheWriteLongTokens: 12_000,
        outputTokens: 550,
        reasoningTokens: 20,
        webSearches: 2,
        serviceTier: 'standard',
        raw: native['usage'],
      },
    });
  });

  test('R-15 a call at the end of an answer that was cut has no whole arguments', () => {
    const told = (stop: string, input: Json): readonly unknown[] => {
      const content = ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'f', input }));
      return readResponse({ ...native, content, stop_reason: stop }).parts.map(
        (part) => part.type === 'tool-call' && part.argumentsJson,
      );
    };
    assert.deepEqual(told('tool_use', { x: 1 }), ['{"x":1}', '{"x":1}']);
    for (const stop of ['max_tokens', 'model_context_window_exceeded', 'refusal']) {
      assert.deepEqual(told(stop, { x: 1 }), ['{"x":1}', '{"x":1,']);
      assert.deepEqual(told(stop, {}), ['{}', '']);
    }
    // Servers that send text send the arguments as far as the model wrote them.
    assert.deepEqual(told('max_tokens', '{"x":1'), ['{"x":1', '{"x":1']);
  });

  test('null and absent counts are unknown, impossible ones too (F57)', () => {
    const usage = { input_tokens: 1, cache_read_input_tokens: null, output_tokens: -5 };
    assert.deepEqual(readResponse({ ...native, usage }).usage, {
      freshInputTokens: 1,
      raw: usage,
    });
    assert.equal(readResponse({ ...native, usage: {} }).usage, undefined);
  });

  test('F24 an error inside a 200, and no answer at all', () => {
    const codeOf = (body: JsonObject): string | undefined => {
      try {
        readResponse(body);
      } catch (error) {
        if (error instanceof GatewayError) return error.code;
      }
      return undefined;
    };
    const error = { type: 'overloaded_error', message: 'Overloaded' };
    assert.equal(codeOf({ type: 'error', error }), 'overloaded');
    assert.equal(codeOf({ error: { type: 'rate_limit_error', message: 'x' } }), 'rate_limited');
    assert.equal(codeOf({}), 'upstream_invalid');
  });
});

describe('writing', () => {
  test('a document has every member that clients read', () => {
    const generation = generationOf([{ type: 'text', text: 'Hi' }]);
    assert.deepEqual(writeResponse(generation, answerContext()), {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'my-model',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      container: null,
      usage: {
        input_tokens: 7,
        cache_creation_input_tokens: null,
        cache_read_input_tokens: null,
        output_tokens: 3,
        output_tokens_details: null,
        server_tool_use: null,
        cache_creation: null,
        service_tier: null,
        inference_geo: null,
      },
    });
  });

  test('what was read is written as it was', () => {
    const {
      content,
      stop_reason: stop,
      usage,
    } = writeResponse(readResponse(native), answerContext());
    assert.deepEqual(stop, 'tool_use');
    assert.ok(Array.isArray(native['content']));
    const expected = native['content'].map((block) =>
      isObject(block) && block['type'] === 'tool_use'
        ? { ...block, caller: { type: 'direct' } }
        : block,
    );
    assert.deepEqual(content, expected);
    assert.ok(isObject(usage) && isObject(native['usage']));
    for (const [key, value] of Object.entries(native['usage'])) assert.deepEqual(usage[key], value);
  });

  const content = (parts: readonly Part[], context = answerContext()): Json =>
    writeResponse(generationOf(parts), context)['content'] ?? null;

  test('7.2 nothing said is content []', () => {
    const nothing: readonly Part[] = [
      { type: 'text', text: '' },
      { type: 'reasoning', text: '' },
      { type: 'refusal', text: '' },
    ];
    assert.deepEqual(content(nothing), []);
  });

  test('3.6 arguments that are no object are wrapped, a cut call keeps its members', () => {
    const notes = new NoteList();
    const call = (argumentsJson: string): Part => ({
      type: 'tool-call',
      id: 'a',
      name: 'f',
      argumentsJson,
    });
    const input = (argumentsJson: string, finish: FinishReason = { kind: 'stop' }): Json => {
      const generation = generationOf([call(argumentsJson)], { finish });
      const blocks = writeResponse(generation, answerContext({ notes }))['content'];
      assert.ok(Array.isArray(blocks) && isObject(blocks[0]));
      return blocks[0]['input'] ?? null;
    };
    assert.deepEqual(input(''), {});
    assert.deepEqual(input('[1]'), { value: [1] });
    assert.deepEqual(input('no JSON'), { _raw: 'no JSON' });
    assert.throws(() => input('{"x": tru'), { code: 'upstream_invalid' }, 'F-9 as in a stream');
    assert.deepEqual(input('{"a":1,"b":"cu', { kind: 'length' }), { a: 1 });
    assert.deepEqual(noted(notes), ['content changed', 'content changed']);
  });

  const cuts: readonly (readonly [string, unknown])[] = [
    ['{"x":', {}],
    ['{"a":{"b":[1,2', { a: { b: [1] } }],
    ['{"a":"x,{","b":1,"c', { a: 'x,{', b: 1 }],
    ['{"a":{"b":1}', { a: { b: 1 } }],
    ['{"a":"\\"', {}],
    ['nonsense', undefined],
  ];
  for (const [text, expected] of cuts) {
    test(`3.6 cut: ${text}`, () => assert.deepEqual(truncatedInput(text), expected));
  }

  test('§5.4 foreign reasoning is sealed; encrypted alone becomes redacted thinking', () => {
    const parts: readonly Part[] = [
      { type: 'reasoning', text: 'hm' },
      {
        type: 'reasoning',
        text: '',
        encrypted: 'e',
        extras: { 'openai-chat': { format: 'x', id: 'r1' } },
      },
    ];
    const blocks = content(parts, translated());
    assert.ok(Array.isArray(blocks) && blocks.every(isObject));
    const [thinking, redacted] = blocks;
    assert.equal(thinking?.['thinking'], 'hm');
    const opened = (text: Json | undefined) =>
      unseal(String(text), testSealer, 'anthropic-messages');
    assert.deepEqual(opened(thinking?.['signature']), { origin: chatUpstream });
    assert.equal(redacted?.['type'], 'redacted_thinking');
    assert.deepEqual(opened(redacted?.['data']), {
      origin: chatUpstream,
      encrypted: 'e',
      extras: { format: 'x', id: 'r1' },
    });
    const hidden = content(parts, translated({ reasoning: { hidden: true } }));
    assert.ok(Array.isArray(hidden) && isObject(hidden[0]));
    assert.equal(hidden[0]['thinking'], '');
  });

  const endings: readonly (readonly [FinishReason, readonly Part[], JsonObject])[] = [
    [{ kind: 'stop' }, [], { stop_reason: 'end_turn', stop_sequence: null, stop_details: null }],
    [
      { kind: 'stop-sequence', sequence: 'END' },
      [],
      { stop_reason: 'stop_sequence', stop_sequence: 'END', stop_details: null },
    ],
    [
      { kind: 'stop-sequence' },
      [],
      { stop_reason: 'end_turn', stop_sequence: null, stop_details: null },
    ],
    [
      { kind: 'length' },
      [],
      { stop_reason: 'max_tokens', stop_sequence: null, stop_details: null },
    ],
    [
      { kind: 'context-window' },
      [],
      { stop_reason: 'model_context_window_exceeded', stop_sequence: null, stop_details: null },
    ],
    [{ kind: 'pause' }, [], { stop_reason: 'pause_turn', stop_sequence: null, stop_details: null }],
    [
      { kind: 'content-filter' },
      [{ type: 'refusal', text: 'No.' }],
      {
        stop_reason: 'refusal',
        stop_sequence: null,
        stop_details: { type: 'refusal', category: null, explanation: 'No.' },
      },
    ],
    [
      { kind: 'content-filter', details: { type: 'refusal', category: 'cyber' } },
      [],
      {
        stop_reason: 'refusal',
        stop_sequence: null,
        stop_details: { type: 'refusal', category: 'cyber' },
      },
    ],
    [
      { kind: 'other', raw: 'odd' },
      [],
      { stop_reason: 'end_turn', stop_sequence: null, stop_details: null },
    ],
  ];
  for (const [finish, parts, expected] of endings) {
    test(`B13 ${JSON.stringify(finish)}`, () => {
      const body = writeResponse(generationOf(parts, { finish }), answerContext());
      const { stop_reason, stop_sequence, stop_details } = body;
      assert.deepEqual({ stop_reason, stop_sequence, stop_details }, expected);
    });
  }

  test('F3 F55 usage: cache splits, tiers, and an estimate where nothing was reported', () => {
    const usageOf = (usage: Usage | undefined): JsonObject => {
      const { usage: _none, ...generation } = generationOf([]);
      const whole = usage === undefined ? generation : { ...generation, usage };
      const written = writeResponse(whole, answerContext())['usage'];
      assert.ok(isObject(written));
      return written;
    };
    const written = usageOf({
      freshInputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 10,
      cacheWriteLongTokens: 4,
      serviceTier: 'default',
    });
    assert.deepEqual(written['cache_creation'], {
      ephemeral_5m_input_tokens: 6,
      ephemeral_1h_input_tokens: 4,
    });
    assert.equal(written['cache_read_input_tokens'], 0);
    assert.equal(written['service_tier'], 'standard');
    assert.equal(usageOf({ serviceTier: 'priority' })['service_tier'], 'priority');
    assert.equal(usageOf(undefined)['input_tokens'], 11);
  });
});
