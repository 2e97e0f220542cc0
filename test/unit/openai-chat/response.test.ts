import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part, Tool } from '../../../src/core/conversation.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import type { AnswerContext } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { FinishReason, Generation } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { allowedToolName } from '../../../src/dialects/shared/tool-names.ts';
import { answerContext } from './answer-context.ts';

function read(message: JsonObject, choice: JsonObject = {}, more: JsonObject = {}): Generation {
  return openaiChatUpstream.readResponse(
    {
      id: 'chatcmpl-1',
      created: 5,
      model: 'up',
      choices: [{ index: 0, message, finish_reason: 'stop', ...choice }],
      ...more,
    },
    chatTraits,
  );
}

function refused(body: JsonObject): string {
  try {
    openaiChatUpstream.readResponse(body, chatTraits);
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error.code;
  }
  return assert.fail('should be refused');
}

describe('reading', () => {
  test('text, refusal, annotations', () => {
    const annotation = {
      type: 'url_citation',
      url_citation: { url: 'https://a.example', title: 'A' },
    };
    assert.deepEqual(read({ content: 'hi', refusal: null, annotations: [annotation] }).parts, [
      {
        type: 'text',
        text: 'hi',
        citations: [
          {
            url: 'https://a.example',
            title: 'A',
            native: { dialect: 'openai-chat', value: annotation },
          },
        ],
      },
    ]);
    assert.deepEqual(read({ content: null, refusal: 'no' }).parts, [
      { type: 'refusal', text: 'no' },
    ]);
    assert.deepEqual(read({ content: '' }).parts, []);
  });

  test('B10 B11 calls in every spelling, finish by what is there', () => {
    const generation = read({
      content: null,
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
        { function: { name: 'g', arguments: { y: 2 } } },
        { id: 'c', type: 'custom', custom: { name: 'c', input: 'free' } },
      ],
    });
    assert.equal(generation.finish.kind, 'tool-calls');
    const calls = generation.parts.map((part) => part.type === 'tool-call' && part);
    assert.deepEqual(
      calls.map((call) => call !== false && [call.name, call.argumentsJson]),
      [
        ['f', '{"x":1}'],
        ['g', '{"y":2}'],
        ['c', '{"input":"free"}'],
      ],
    );
    assert.match(String(calls[1] !== false && calls[1]?.id), /^call_/);
  });

  test('R-15 a free text at whose end the answer was cut has no end', () => {
    const custom = (id: string): JsonObject => ({
      id,
      type: 'custom',
      custom: { name: 'c', input: 'x\n' },
    });
    const message = { content: null, tool_calls: [custom('a'), custom('b')] };
    assert.deepEqual(
      read(message, { finish_reason: 'length' }).parts.map(
        (part) => part.type === 'tool-call' && part.argumentsJson,
      ),
      ['{"input":"x\\n"}', '{"input":"x\\n'],
    );
  });

  test('deprecated function_call', () => {
    const { parts, finish } = read(
      { content: null, function_call: { name: 'f', arguments: '{}' } },
      { finish_reason: 'function_call' },
    );
    assert.equal(parts[0]?.type, 'tool-call');
    assert.equal(finish.kind, 'tool-calls');
  });

  test('D7 reasoning comes first, structured before plain', () => {
    const details = [
      { type: 'reasoning.text', text: 'r', signature: 's', format: 'anthropic-claude-v1' },
    ];
    assert.deepEqual(read({ content: 'x', reasoning: 'r', reasoning_details: details }).parts, [
      { type: 'reasoning', text: 'r', signature: 's' },
      { type: 'text', text: 'x' },
    ]);
  });

  test('finish: a missing one in a whole answer is a natural end, for no known reason', () => {
    assert.deepEqual(read({ content: 'x' }, { finish_reason: null }).finish, { kind: 'other' });
    assert.deepEqual(read({ content: 'x' }, { stop_reason: 'END' }).finish, {
      kind: 'stop-sequence',
      raw: 'stop',
      sequence: 'END',
    });
    assert.equal(read({ content: 'x' }, { stop_reason: 128009 }).finish.kind, 'stop');
  });

  test('F62 the first of several choices', () => {
    const choices = [
      { index: 1, message: { content: 'b' } },
      { index: 0, message: { content: 'a' } },
    ];
    assert.deepEqual(read({}, {}, { choices }).parts, [{ type: 'text', text: 'a' }]);
  });

  const bad: readonly (readonly [string, JsonObject, string])[] = [
    ['choices empty', { choices: [] }, 'upstream_invalid'],
    ['nothing', {}, 'upstream_invalid'],
    ['no message', { choices: [{ index: 0 }] }, 'upstream_invalid'],
    ['choices is text', { choices: 'x' }, 'upstream_invalid'],
    ['error', { error: { message: 'slow', code: 429 } }, 'rate_limited'],
    ['xAI', { code: 'x', error: 'boom' }, 'upstream_unavailable'],
    [
      'vLLM',
      { object: 'error', message: 'm', code: 404, type: 'NotFoundError' },
      'model_not_found',
    ],
    ['detail', { detail: 'boom' }, 'upstream_unavailable'],
    [
      'in the choice',
      { choices: [{ index: 0, message: {}, error: { code: 503, message: 'm' } }] },
      'overloaded',
    ],
    [
      'finish says so',
      { choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'error' }] },
      'upstream_unavailable',
    ],
  ];
  for (const [name, body, code] of bad) {
    test(`F24 ${name} → ${code}`, () => assert.equal(refused(body), code));
  }
});

interface Written {
  readonly body: JsonObject;
  readonly choice: JsonObject;
  readonly message: JsonObject;
}

function write(changes: Partial<Generation>, context: AnswerContext = answerContext()): Written {
  const generation: Generation = {
    id: 'x1',
    model: 'up',
    parts: [],
    finish: { kind: 'stop' },
    ...changes,
  };
  const body = openaiChatClient.writeResponse(generation, context);
  const choices = body['choices'];
  const choice: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : undefined;
  assert.ok(isObject(choice) && isObject(choice['message']));
  return { body, choice, message: choice['message'] };
}

function withTools(tools: readonly Tool[], more: Partial<Conversation> = {}): AnswerContext {
  const conversation: Conversation = {
    system: [],
    turns: [],
    tools,
    sampling: {},
    output: { type: 'text' },
    extras: {},
    ...more,
  };
  return answerContext({ conversation });
}

const text = (content: string): Part => ({ type: 'text', text: content });
const call = (name: string, argumentsJson = '{}', id = 'a'): Part => ({
  type: 'tool-call',
  id,
  name,
  argumentsJson,
});

describe('writing', () => {
  test('everything that callers rely on is there', () => {
    const usage = {
      freshInputTokens: 3,
      cacheReadTokens: 0,
      cacheWriteTokens: 12_304,
      outputTokens: 550,
    };
    assert.deepEqual(write({ parts: [text('a'), text('b')], usage }).body, {
      id: 'chatcmpl-x1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'my-model',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'ab', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 12_307,
        completion_tokens: 550,
        total_tokens: 12_857,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 12_304 },
      },
    });
  });

  test('ids: kept, prefixed or made', () => {
    assert.equal(write({ id: 'chatcmpl-7' }).body['id'], 'chatcmpl-7');
    assert.equal(write({ id: 'msg_7' }).body['id'], 'chatcmpl-msg_7');
    assert.equal(write({ id: '' }).body['id'], 'chatcmpl-1');
  });

  test('calls: no content, no empty arguments, ids for those without', () => {
    const { message, choice } = write({ parts: [call('f', ''), call('g', '{"x":1}', '')] });
    assert.equal(message['content'], null);
    assert.deepEqual(message['tool_calls'], [
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } },
      { id: 'call_1', type: 'function', function: { name: 'g', arguments: '{"x":1}' } },
    ]);
    assert.equal(choice['finish_reason'], 'tool_calls');
  });

  test('without calls there is no tool_calls member', () => {
    assert.equal('tool_calls' in write({ parts: [text('a')] }).message, false);
  });

  test('B7 the client’s own tool names come back', () => {
    const name = `mcp__${'x'.repeat(85)}`;
    const short = allowedToolName(name, 64);
    const { message } = write({ parts: [call(short)] }, withTools([{ name, schema: {} }]));
    assert.match(JSON.stringify(message), new RegExp(`"${name}"`));
  });

  test('custom calls are unwrapped', () => {
    const { message } = write(
      { parts: [call('c', '{"input":"free \\"text\\""}')] },
      withTools([{ name: 'c', schema: {}, freeText: true }]),
    );
    assert.deepEqual(message['tool_calls'], [
      { id: 'a', type: 'custom', custom: { name: 'c', input: 'free "text"' } },
    ]);
  });

  test('the deprecated form is answered in the deprecated form', () => {
    const legacy = { name: 'f', schema: {}, extras: { 'openai-chat': { legacy_function: true } } };
    const { message, choice } = write({ parts: [call('f')] }, withTools([legacy]));
    assert.deepEqual(message['function_call'], { name: 'f', arguments: '{}' });
    assert.equal('tool_calls' in message, false);
    assert.equal(choice['finish_reason'], 'function_call');
  });

  test('§5.2 reasoning: text for display, details for the way back', () => {
    const parts: readonly Part[] = [
      { type: 'reasoning', text: 'a', signature: 's1' },
      { type: 'reasoning', text: '', encrypted: 'blob' },
      { type: 'reasoning', text: 'b', signature: 's2' },
      text('x'),
    ];
    const { message } = write({ parts });
    assert.equal(message['reasoning_content'], 'a\n\nb');
    const format = 'anthropic-claude-v1';
    assert.deepEqual(message['reasoning_details'], [
      { type: 'reasoning.text', text: 'a', signature: 's1', format, index: 0 },
      { type: 'reasoning.encrypted', data: 'blob', format, index: 1 },
      { type: 'reasoning.text', text: 'b', signature: 's2', format, index: 2 },
    ]);
    const unsigned = write({ parts: [{ type: 'reasoning', text: 'a' }, text('x')] }).message;
    assert.equal('reasoning_details' in unsigned, false);
    const hidden = write({ parts }, withTools([], { reasoning: { hidden: true } })).message;
    assert.equal('reasoning_content' in hidden || 'reasoning_details' in hidden, false);
  });

  test('citations become annotations with their span in UTF-16 units', () => {
    const citation = (url?: string) => ({
      ...(url === undefined ? {} : { url, title: 'T' }),
      native: { dialect: 'anthropic-messages' as const, value: {} },
    });
    const context = answerContext();
    const { message } = write(
      {
        parts: [
          text('🦀 '),
          { type: 'text', text: 'cats', citations: [citation('https://a.example'), citation()] },
        ],
      },
      context,
    );
    assert.deepEqual(message['annotations'], [
      {
        type: 'url_citation',
        url_citation: { start_index: 3, end_index: 7, url: 'https://a.example', title: 'T' },
      },
    ]);
    assert.ok(context.notes instanceof NoteList);
    assert.equal(context.notes.all.length, 1);
  });

  test('server tools of the upstream stay hidden', () => {
    const block: Part = {
      type: 'opaque',
      dialect: 'anthropic-messages',
      value: { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
    };
    assert.ok(!JSON.stringify(write({ parts: [block, text('x')] }).body).includes('web_search'));
  });

  const finishes: readonly (readonly [FinishReason, readonly Part[], string])[] = [
    [{ kind: 'stop' }, [text('x')], 'stop'],
    [{ kind: 'stop' }, [call('f')], 'tool_calls'],
    [{ kind: 'tool-calls' }, [call('f')], 'tool_calls'],
    [{ kind: 'tool-calls' }, [text('x')], 'stop'],
    [{ kind: 'length' }, [call('f')], 'length'],
    [{ kind: 'context-window' }, [text('x')], 'length'],
    [{ kind: 'pause' }, [text('x')], 'length'],
    [{ kind: 'content-filter' }, [text('x')], 'content_filter'],
    [{ kind: 'other', raw: 'new' }, [text('x')], 'stop'],
  ];
  for (const [finish, parts, expected] of finishes) {
    test(`B11 B12 B13 ${finish.kind} → ${expected}`, () => {
      assert.equal(write({ finish, parts }).choice['finish_reason'], expected);
    });
  }

  test('a matched stop sequence is named', () => {
    const { choice } = write({ finish: { kind: 'stop-sequence', sequence: 'END' } });
    assert.equal(choice['finish_reason'], 'stop');
    assert.equal(choice['stop_reason'], 'END');
  });

  test('B13 the explanation of a refusal', () => {
    const finish: FinishReason = { kind: 'content-filter', details: { explanation: 'not that' } };
    assert.equal(write({ finish }).message['refusal'], 'not that');
    assert.equal(
      write({ finish, parts: [{ type: 'refusal', text: 'no' }] }).message['refusal'],
      'no',
    );
  });

  for (const [tier, expected] of [
    ['standard', 'default'],
    ['batch', 'default'],
    ['priority', 'priority'],
    ['constructor', undefined],
  ]) {
    test(`service tier ${String(tier)}`, () => {
      const usage = { outputTokens: 1, ...(tier === undefined ? {} : { serviceTier: tier }) };
      assert.equal(write({ usage }).body['service_tier'], expected);
    });
  }
});
