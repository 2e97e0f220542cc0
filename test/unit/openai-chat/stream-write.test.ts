import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part } from '../../../src/core/conversation.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import type { AnswerContext } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { listAt, objectAt, textAt } from '../../support/members.ts';
import { answerContext, framesOf, writeStream } from './answer-context.ts';

const start: GenerationEvent = { type: 'start', id: 'x1', model: 'up' };
const stop: GenerationEvent = { type: 'finish', reason: { kind: 'stop' } };

function begin(index: number, part: Part): GenerationEvent {
  return { type: 'part-start', index, part };
}

function add(
  index: number,
  delta: string,
  field: 'text' | 'arguments' | 'signature' = 'text',
): GenerationEvent {
  return { type: 'part-delta', index, field, delta };
}

function end(index: number): GenerationEvent {
  return { type: 'part-end', index };
}

function chunksOf(text: string): readonly JsonObject[] {
  return framesOf(text)
    .map((frame) => tryParseObject(frame.data ?? ''))
    .filter((chunk) => chunk !== undefined);
}

/** The deltas of the only choice, with its finish reason as the last one. */
function deltasOf(events: readonly GenerationEvent[], context?: AnswerContext): readonly unknown[] {
  return chunksOf(writeStream(events, context)).flatMap((chunk) => {
    const choices = chunk['choices'];
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
    if (!isObject(choice)) return [];
    return choice['finish_reason'] === null ? [choice['delta']] : [choice['finish_reason']];
  });
}

function withConversation(changes: Partial<Conversation>): AnswerContext {
  const conversation: Conversation = {
    system: [],
    turns: [],
    tools: [],
    sampling: {},
    output: { type: 'text' },
    extras: {},
    ...changes,
  };
  return answerContext({ conversation });
}

function isDelta(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

const role = { role: 'assistant', content: '', refusal: null };
const empty: Part = { type: 'text', text: '' };
const f: Part = { type: 'tool-call', id: 'a', name: 'f', argumentsJson: '' };

describe('frames', () => {
  test('a plain stream, byte for byte', () => {
    const events = [start, begin(0, empty), add(0, 'Hi'), end(0), stop];
    const head =
      '{"id":"chatcmpl-x1","object":"chat.completion.chunk","created":1700000000,"model":"my-model",';
    assert.equal(
      writeStream(events, answerContext({ wantsUsageFrame: false })),
      [
        `data: ${head}"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}`,
        `data: ${head}"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}]}`,
        `data: ${head}"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`,
        'data: [DONE]',
        '',
      ].join('\n\n'),
    );
  });

  test('E6 F1 the usage chunk exactly when asked for, last, with empty choices', () => {
    const usage: GenerationEvent = {
      type: 'usage',
      usage: { freshInputTokens: 40, cacheReadTokens: 60 },
    };
    const more: GenerationEvent = { type: 'usage', usage: { outputTokens: 7, reasoningTokens: 2 } };
    const events = [start, usage, begin(0, empty), add(0, 'x'), end(0), stop, more];
    const chunks = chunksOf(writeStream(events));
    assert.deepEqual(chunks.at(-1)?.['choices'], []);
    assert.deepEqual(chunks.at(-1)?.['usage'], {
      prompt_tokens: 100,
      completion_tokens: 7,
      total_tokens: 107,
      prompt_tokens_details: { cached_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 2 },
    });
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk['usage'] === null));
    const without = writeStream(events, answerContext({ wantsUsageFrame: false }));
    assert.ok(!without.includes('usage'));
  });

  test('the role comes once, with the first part, also when there is no part', () => {
    const writer = openaiChatClient.streamWriter(answerContext());
    assert.equal(writer.write(start), '');
    assert.equal(writer.write({ type: 'usage', usage: { outputTokens: 1 } }), '');
    assert.match(writer.write(begin(0, empty)), /"role":"assistant"/);
    assert.deepEqual(deltasOf([start, stop]), [role, 'stop']);
  });

  test('id, created and model are the same on every chunk', () => {
    const chunks = chunksOf(writeStream([start, begin(0, empty), add(0, 'x'), end(0), stop]));
    for (const key of ['id', 'created', 'model', 'object']) {
      assert.equal(new Set(chunks.map((chunk) => chunk[key])).size, 1, key);
    }
    assert.match(writeStream([{ ...start, id: '' }, stop]), /"id":"chatcmpl-1"/);
  });

  test('EM an error is one error frame', () => {
    const writer = openaiChatClient.streamWriter(answerContext());
    writer.write(start);
    const error = new GatewayError('overloaded', 'busy');
    assert.equal(
      writer.write({ type: 'error', error }),
      openaiChatClient.writeStreamError(error, 'req_1'),
    );
  });

  test('B64 lone surrogates stay escapes, other text is itself', () => {
    const text = writeStream([start, begin(0, empty), add(0, 'a\ud800b 你好🦀 "\n'), end(0), stop]);
    assert.ok(text.includes('"a\\ud800b 你好🦀 \\"\\n"'));
  });

  test('keep-alives are comments', () => {
    assert.equal(openaiChatClient.keepAlive(false), ': ping\n\n');
  });
});

describe('parts', () => {
  test('B6 B15 calls: identity once, dense indexes, arguments in fragments', () => {
    const g: Part = { ...f, id: 'b', name: 'g' };
    assert.deepEqual(
      deltasOf([
        start,
        begin(0, f),
        add(0, '{"x":', 'arguments'),
        begin(1, g),
        add(1, '{}', 'arguments'),
        add(0, '1}', 'arguments'),
        end(0),
        end(1),
        { type: 'finish', reason: { kind: 'tool-calls' } },
      ]),
      [
        { role: 'assistant', content: null, refusal: null },
        {
          tool_calls: [
            { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } },
          ],
        },
        { tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] },
        {
          tool_calls: [
            { index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '' } },
          ],
        },
        { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '1}' } }] },
        'tool_calls',
      ],
    );
  });

  test('arguments are never empty in total, also for a part that was not ended', () => {
    for (const events of [[end(0)], []]) {
      const deltas = deltasOf([start, begin(0, f), ...events, stop]);
      assert.deepEqual(deltas.slice(-2), [
        { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
        'tool_calls',
      ]);
    }
  });

  const calls = [
    { name: 'a bare call', free: false, given: '', cut: '', whole: '{}' },
    { name: 'a free text', free: true, given: '{"input":"say \\"h', cut: 'say "h' },
    { name: 'a whole free text', free: true, given: '{"input":"x"}', cut: 'x', whole: 'x' },
  ];
  for (const { name, free, given, cut, whole = given } of calls) {
    test(`R-15 ${name} within which the answer was cut, in a stream and in a document`, () => {
      const context = withConversation({ tools: [{ name: 'f', schema: {}, freeText: free }] });
      const called = { type: 'tool-call', id: 'a', name: 'f', argumentsJson: given } as const;
      for (const [kind, shown] of [
        ['length', cut],
        ['tool-calls', whole],
      ] as const) {
        const finish = { kind } as const;
        const generation = { id: 'x', model: 'up', parts: [called], finish };
        const document = openaiChatClient.writeResponse(generation, context);
        const message = objectAt(listAt(document, 'choices')[0] ?? {}, 'message');
        const deltas = deltasOf(
          [
            start,
            begin(0, { ...called, argumentsJson: '' }),
            add(0, given, 'arguments'),
            end(0),
            { type: 'finish', reason: finish },
          ],
          context,
        );
        const textOf = (call: JsonObject): string =>
          textAt(objectAt(call, 'function'), 'arguments') +
          textAt(objectAt(call, 'custom'), 'input');
        assert.equal(listAt(message, 'tool_calls').map(textOf).join(), shown, kind);
        const pieces = deltas.filter(isDelta).flatMap((delta) => listAt(delta, 'tool_calls'));
        assert.equal(pieces.map(textOf).join(''), shown, kind);
      }
    });
  }

  test('custom calls are unwrapped when they are complete', () => {
    const context = withConversation({ tools: [{ name: 'f', schema: {}, freeText: true }] });
    const deltas = deltasOf(
      [
        start,
        begin(0, f),
        add(0, '{"input":"fr', 'arguments'),
        add(0, 'ee"}', 'arguments'),
        end(0),
        stop,
      ],
      context,
    );
    assert.deepEqual(deltas.slice(1), [
      { tool_calls: [{ index: 0, id: 'a', type: 'custom', custom: { name: 'f', input: '' } }] },
      { tool_calls: [{ index: 0, custom: { input: 'free' } }] },
      'tool_calls',
    ]);
  });

  test('the deprecated form', () => {
    const extras = { 'openai-chat': { legacy_function: true } };
    const context = withConversation({ tools: [{ name: 'f', schema: {}, extras }] });
    const deltas = deltasOf(
      [start, begin(0, f), add(0, '{}', 'arguments'), end(0), begin(1, f), end(1), stop],
      context,
    );
    assert.deepEqual(deltas.slice(1), [
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{}' } },
      'function_call',
    ]);
  });

  test('§5.2 reasoning: display and details in step, constants once', () => {
    const thinking: Part = { type: 'reasoning', text: '' };
    const deltas = deltasOf([
      start,
      begin(0, thinking),
      add(0, 'a'),
      add(0, 'b'),
      add(0, 'sig', 'signature'),
      end(0),
      begin(1, { type: 'reasoning', text: '', encrypted: 'blob' }),
      end(1),
      begin(2, thinking),
      add(2, 'c'),
      add(2, 'sig2', 'signature'),
      end(2),
      stop,
    ]);
    const type = 'reasoning.text';
    const format = 'anthropic-claude-v1';
    assert.deepEqual(deltas.slice(1, -1), [
      { reasoning_content: 'a', reasoning_details: [{ index: 0, type, text: 'a' }] },
      { reasoning_content: 'b', reasoning_details: [{ index: 0, type, text: 'b' }] },
      { reasoning_details: [{ index: 0, type, signature: 'sig', format }] },
      { reasoning_details: [{ type: 'reasoning.encrypted', data: 'blob', format, index: 1 }] },
      { reasoning_content: '\n\nc', reasoning_details: [{ index: 2, type, text: 'c' }] },
      { reasoning_details: [{ index: 2, type, signature: 'sig2', format }] },
    ]);
  });

  test('hidden reasoning leaves no trace', () => {
    const context = withConversation({ reasoning: { hidden: true } });
    const events = [start, begin(0, { type: 'reasoning', text: 'a' }), add(0, 'b'), end(0), stop];
    assert.deepEqual(deltasOf(events, context), [role, 'stop']);
  });

  test('citations come with the end of their text, with an index', () => {
    const citation = {
      url: 'https://a.example',
      native: { dialect: 'anthropic-messages' as const, value: {} },
    };
    const deltas = deltasOf([
      start,
      begin(0, empty),
      add(0, '12'),
      end(0),
      begin(1, empty),
      add(1, '345'),
      { type: 'part-citation', index: 1, citation },
      end(1),
      stop,
    ]);
    assert.deepEqual(deltas.at(-2), {
      annotations: [
        {
          index: 0,
          type: 'url_citation',
          url_citation: { start_index: 2, end_index: 5, url: 'https://a.example', title: '' },
        },
      ],
    });
  });

  test('B13 refusals, and the explanation of one', () => {
    const refusal: Part = { type: 'refusal', text: 'No' };
    assert.deepEqual(deltasOf([start, begin(0, refusal), add(0, '.'), end(0), stop]), [
      role,
      { refusal: 'No' },
      { refusal: '.' },
      'stop',
    ]);
    const reason = { kind: 'content-filter', details: { explanation: 'not that' } } as const;
    assert.deepEqual(deltasOf([start, { type: 'finish', reason }]), [
      role,
      { refusal: 'not that' },
      'content_filter',
    ]);
  });

  test('a stop sequence is named in the finish chunk', () => {
    const reason = { kind: 'stop-sequence', sequence: 'END' } as const;
    assert.match(writeStream([start, { type: 'finish', reason }]), /"stop_reason":"END"/);
  });

  test('server tools of the upstream stay hidden', () => {
    const value = { type: 'server_tool_use', name: 'web_search' };
    const hidden: Part = { type: 'opaque', dialect: 'anthropic-messages', value };
    assert.deepEqual(deltasOf([start, begin(0, hidden), add(0, '{}', 'arguments'), end(0), stop]), [
      role,
      'stop',
    ]);
  });
});
