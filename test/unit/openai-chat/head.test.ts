import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { spellPath } from '../../../src/dialects/openai-chat/fields.ts';

const user = { role: 'user', content: 'hi' };
const base = { model: 'm', messages: [user] };

function head(more: JsonObject) {
  return openaiChatClient.readHead({ ...base, ...more });
}

/** The path of the refusal. */
function refused(more: JsonObject, code = 'invalid_request'): string {
  try {
    head(more);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.code, code);
    assert.ok(error.message !== '');
    return spellPath(error.path ?? []);
  }
  return assert.fail(`should be refused: ${JSON.stringify(more).slice(0, 200)}`);
}

function assistant(...ids: readonly string[]): JsonObject {
  return {
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    })),
  };
}

function result(id: string): JsonObject {
  return { role: 'tool', tool_call_id: id, content: 'r' };
}

function fn(name: string, more: JsonObject = {}): JsonObject {
  return { type: 'function', function: { name, ...more } };
}

describe('what the head says', () => {
  test('the smallest request', () => {
    assert.deepEqual(head({}), { model: 'm', stream: false, wantsUsageFrame: false });
  });

  test('stream, usage and the cap', () => {
    assert.deepEqual(
      head({ stream: true, stream_options: { include_usage: true }, max_tokens: 7 }),
      { model: 'm', stream: true, wantsUsageFrame: true, maxOutputTokens: 7 },
    );
    assert.equal(head({ max_completion_tokens: 9 }).maxOutputTokens, 9);
    assert.equal(head({ max_completion_tokens: 9, max_tokens: 9 }).maxOutputTokens, 9);
    assert.equal(head({ max_tokens: 1e9 }).maxOutputTokens, 1e9);
  });

  test('B42 null means absent everywhere', () => {
    const keys =
      'stream stream_options max_tokens max_completion_tokens temperature top_p n stop seed tools ' +
      'tool_choice functions function_call response_format metadata user parallel_tool_calls';
    const nulls = Object.fromEntries(keys.split(' ').map((key) => [key, null]));
    assert.deepEqual(head(nulls), { model: 'm', stream: false, wantsUsageFrame: false });
  });

  test('A4 unknown fields, part types and nested keys are none of its business', () => {
    head({
      brand_new: { a: 1 },
      messages: [
        { role: 'user', content: [{ type: 'video_url', video_url: { url: 'x' } }], odd: true },
        { role: 'assistant', content: '', reasoning_content: 'x', refusal: null, audio: null },
      ],
      tools: [{ type: 'web_search', web_search: {} }, fn('f', { odd: 1 })],
      tool_choice: { type: 'function', function: { name: 'unknown-here' } },
    });
  });

  test('what clients send and must pass', () => {
    head({
      stop: ['a', 'b', 'c', 'd', 'e'],
      top_k: -1,
      store: false,
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'be kind' }] },
        user,
        user,
        { role: 'assistant', content: '' },
        { role: 'assistant', content: null },
        { role: 'user', content: [{ type: 'image_url', image_url: 'data:image/png;base64,AAAA' }] },
        assistant('a', 'b'),
        result('b'),
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: '' }] },
        { role: 'assistant', content: null, function_call: { name: 'g', arguments: '{}' } },
        { role: 'function', name: 'g', content: null },
      ],
      tools: [],
      tool_choice: 'auto',
    });
  });

  test('B6 ids that come again in a later turn are allowed', () => {
    head({ messages: [assistant('a'), result('a'), user, assistant('a'), result('a')] });
  });
});

describe('fields', () => {
  const rows: readonly (readonly [string, JsonObject, string])[] = [
    ...[0, -1, 1.5, '100', true, {}].map((value): [string, JsonObject, string] => [
      'B42',
      { max_tokens: value },
      'max_tokens',
    ]),
    ['B42', { max_completion_tokens: 0 }, 'max_completion_tokens'],
    ['B44', { max_tokens: 5, max_completion_tokens: 6 }, 'max_tokens'],
    ['B45', { temperature: 2.1 }, 'temperature'],
    ['B45', { temperature: -0.1 }, 'temperature'],
    ['B41', { temperature: '1' }, 'temperature'],
    ['B45', { top_p: 1.1 }, 'top_p'],
    ['B45', { top_p: 'NaN' }, 'top_p'],
    ['B45', { top_k: -2 }, 'top_k'],
    ['B45', { top_k: 1.5 }, 'top_k'],
    ['B46', { n: 0 }, 'n'],
    ['B46', { n: 9 }, 'n'],
    ['B46', { n: 10_000 }, 'n'],
    ['B47', { stop: Array.from({ length: 100 }, (_, i) => `s${i}`) }, 'stop'],
    ['B47', { stop: '' }, 'stop'],
    ['B47', { stop: ['a', ''] }, 'stop[1]'],
    ['B47', { stop: 5 }, 'stop'],
    ['B47', { stop: [5] }, 'stop[0]'],
    ['B47', { stop: 'x'.repeat(1_000_000) }, 'stop'],
    ['B48', { stream: 'true' }, 'stream'],
    ['B48', { stream: 1 }, 'stream'],
    ['B48', { stream_options: 'x' }, 'stream_options'],
    ['B48', { stream_options: { include_usage: 1 } }, 'stream_options.include_usage'],
    ['B49', { model: undefined }, 'model'],
    ['B49', { model: null }, 'model'],
    ['B49', { model: 5 }, 'model'],
    ['B49', { model: '' }, 'model'],
    ['B49', { model: 'x'.repeat(10_240) }, 'model'],
    ['B49', { model: 'a\u0000b' }, 'model'],
    [
      'B66',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])) },
      'metadata',
    ],
    ['B66', { metadata: { k: 1 } }, 'metadata.k'],
    ['B66', { metadata: { k: { a: 'b' } } }, 'metadata.k'],
    ['B66', { metadata: { k: 'x'.repeat(513) } }, 'metadata.k'],
    ['B66', { metadata: { ['k'.repeat(65)]: 'v' } }, 'metadata'],
    ['B66', { user: 'x'.repeat(1_000_000) }, 'user'],
    ['B66', { user: 5 }, 'user'],
    ['B58', { response_format: 'json' }, 'response_format'],
    ['B58', { response_format: { type: 'haiku' } }, 'response_format.type'],
    ['B58', { response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [
      'B58',
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'response_format.json_schema.schema',
    ],
    ['B41', { seed: 1.5 }, 'seed'],
    ['B41', { parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
  ];
  for (const [id, more, path] of rows) {
    test(`${id} ${JSON.stringify(more).slice(0, 60)}`, () => assert.equal(refused(more), path));
  }

  test('B41 an integer with more digits than a double holds is called an integer', () => {
    const long = JSON.rawJSON('9007199254740993');
    const rows: readonly (readonly [JsonObject, RegExp])[] = [
      [{ n: long }, /must be between 1 and 8/],
      [{ max_tokens: long }, /is too large/],
      [{ temperature: long }, /must be between 0 and 2/],
      [{ stream: long }, /expected a boolean, but got an integer/],
      [{ seed: JSON.rawJSON('99999999999999999999') }, /is too large/],
    ];
    for (const [more, message] of rows) assert.throws(() => head(more), { message });
  });

  test('B58 a schema of 1 MB is too large', () => {
    const schema = { type: 'object', description: 'x'.repeat(1_000_000) };
    const more = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } };
    assert.equal(refused(more, 'too_large'), 'response_format.json_schema.schema');
  });
});

describe('messages', () => {
  const rows: readonly (readonly [string, string, unknown, string])[] = [
    ['B51', 'missing', undefined, 'messages'],
    ['B51', 'empty', [], 'messages'],
    ['B51', 'a string', 'hi', 'messages'],
    ['B51', 'null item', [user, null], 'messages[1]'],
    ['B52', 'unknown role', [{ role: 'wizard', content: 'x' }], 'messages[0].role'],
    ['B52', 'no role', [{ content: 'x' }], 'messages[0].role'],
    ['B52', 'system is a number', [{ role: 'system', content: 5 }], 'messages[0].content'],
    ['B53', 'number', [{ role: 'user', content: 5 }], 'messages[0].content'],
    ['B53', 'null', [{ role: 'user', content: null }], 'messages[0].content'],
    ['B53', 'no parts', [{ role: 'user', content: [] }], 'messages[0].content'],
    ['B53', 'nested array', [{ role: 'user', content: [[]] }], 'messages[0].content[0]'],
    ['B53', 'part without type', [{ role: 'user', content: [{}] }], 'messages[0].content[0].type'],
    [
      'B53',
      'text null',
      [{ role: 'user', content: [{ type: 'text', text: null }] }],
      'messages[0].content[0].text',
    ],
    ['B54', 'orphan tool', [user, result('x')], 'messages[1].tool_call_id'],
    [
      'B54',
      'answered twice',
      [assistant('a'), result('a'), result('a')],
      'messages[2].tool_call_id',
    ],
    ['B54', 'no id', [assistant('a'), { role: 'tool', content: 'x' }], 'messages[1].tool_call_id'],
    ['B54', 'result missing', [user, assistant('a', 'b'), result('a'), user], 'messages[1]'],
    ['B54', 'result missing at the end', [user, assistant('a')], 'messages[1]'],
    [
      'B54',
      'user between results',
      [assistant('a', 'b'), result('a'), user, result('b')],
      'messages[0]',
    ],
    [
      'B54',
      'twice in one turn',
      [assistant('a', 'a'), result('a')],
      'messages[0].tool_calls[1].id',
    ],
    [
      'B54',
      'call without name',
      [{ role: 'assistant', tool_calls: [{ id: 'a', function: {} }] }],
      'messages[0].tool_calls[0].function.name',
    ],
    [
      'B55',
      'arguments as object',
      [{ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: {} } }] }],
      'messages[0].tool_calls[0].function.arguments',
    ],
  ];
  for (const [id, name, messages, path] of rows) {
    test(`${id} ${name}`, () => {
      const body = { ...base, messages };
      try {
        openaiChatClient.readHead(tryParseObject(JSON.stringify(body)) ?? {});
      } catch (error) {
        assert.ok(error instanceof GatewayError);
        assert.equal(spellPath(error.path ?? []), path);
        return;
      }
      assert.fail('should be refused');
    });
  }

  test('B51 100,000 messages are too many', () => {
    refused({ messages: Array.from({ length: 100_000 }, () => user) }, 'too_large');
  });
});

describe('tools', () => {
  const f = fn('f');
  const choose = (name: string) => ({ type: 'function', function: { name } });
  const rows: readonly (readonly [string, JsonObject, string])[] = [
    ['B56', { tools: {} }, 'tools'],
    ['B56', { tools: Array.from({ length: 1000 }, (_, i) => fn(`f${i}`)) }, 'tools'],
    ['B56', { tools: [f, f] }, 'tools[1].function.name'],
    ['B56', { tools: [fn('my tool')] }, 'tools[0].function.name'],
    ['B56', { tools: [fn('')] }, 'tools[0].function.name'],
    ['B56', { tools: [fn('x'.repeat(129))] }, 'tools[0].function.name'],
    ['B56', { tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name'],
    ['B56', { tools: [{ type: 'function' }] }, 'tools[0].function'],
    ['B56', { tools: [fn('f', { parameters: 'x' })] }, 'tools[0].function.parameters'],
    ['B56', { functions: [{ name: 'a' }, { name: 'a' }] }, 'functions[1].name'],
    ['B57', { tools: [f], tool_choice: choose('g') }, 'tool_choice.function.name'],
    ['B57', { tools: [f], tool_choice: 'sometimes' }, 'tool_choice'],
    ['B57', { tools: [f], tool_choice: 5 }, 'tool_choice'],
    ['B57', { tool_choice: 'required' }, 'tool_choice'],
    ['B57', { functions: [{ name: 'a' }], function_call: { name: 'b' } }, 'function_call.name'],
    [
      'B57',
      {
        tools: [f],
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [choose('f'), choose('g')] },
        },
      },
      'tool_choice.allowed_tools.tools[1].function.name',
    ],
  ];
  for (const [id, more, path] of rows) {
    test(`${id} ${JSON.stringify(more).slice(0, 70)}`, () => assert.equal(refused(more), path));
  }

  test('B56 a schema that refers to itself, or holds a slow pattern, is passed on', () => {
    const schema = {
      type: 'object',
      properties: { next: { $ref: '#' }, text: { type: 'string', pattern: '^(a+)+$' } },
    };
    head({ tools: [fn('f', { parameters: schema })] });
  });
});
