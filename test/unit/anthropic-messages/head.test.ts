import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { refusalOf } from './answer-context.ts';

const user = { role: 'user', content: 'Hi' };
const base: JsonObject = { model: 'm', max_tokens: 10, messages: [user] };
const readHead = (changes: JsonObject) => anthropicMessagesClient.readHead({ ...base, ...changes });
const refused = (changes: JsonObject): string => refusalOf(() => readHead(changes));

function call(id: string): JsonObject {
  return { type: 'tool_use', id, name: 'f', input: {} };
}
function result(id: string): JsonObject {
  return { type: 'tool_result', tool_use_id: id, content: 'ok' };
}
function tool(name: string): JsonObject {
  return { name, input_schema: { type: 'object' } };
}

describe('head', () => {
  test('the fields that the gateway decides on', () => {
    assert.deepEqual(readHead({ stream: true }), {
      model: 'm',
      stream: true,
      maxOutputTokens: 10,
      wantsUsageFrame: true,
    });
    assert.equal(readHead({}).stream, false, 'A9 absent is false');
  });

  test('null counts as absent for optional fields', () => {
    const nulls = ['stream', 'system', 'temperature', 'top_p', 'top_k', 'stop_sequences', 'tools'];
    for (const key of [...nulls, 'tool_choice', 'thinking', 'output_config', 'metadata']) {
      readHead({ [key]: null });
    }
  });

  test('A4 what a newer client sends passes', () => {
    readHead({
      brand_new: { a: 1 },
      thinking: { type: 'telepathic', display: 'updates' },
      output_config: { effort: 'extreme', shiny: true },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      messages: [
        { ...user, output_config: { effort: 'low' } },
        { role: 'assistant', content: [{ type: 'hologram', x: 1 }] },
        { role: 'user', content: [{ type: 'text', text: 'x', brand_new: true }] },
      ],
      tools: [
        { name: 'DeferredToolPlaceholder', defer_loading: true },
        { ...tool('g'), eager_input_streaming: true },
        { type: 'web_search_20250305', name: 'web_search' },
        { type: 'mcp_toolset', mcp_server_name: 's' },
      ],
    });
  });

  test('A1 A4 an instruction may set an effort and say nothing', () => {
    readHead({ messages: [user, { role: 'system', output_config: { effort: 'low' } }] });
  });

  test('clients 2.1 a thread is refused with the code that makes the SDK resend', () => {
    let refusal: unknown;
    try {
      readHead({ thread: { type: 'create' } });
    } catch (error) {
      refusal = error;
    }
    assert.ok(refusal instanceof GatewayError);
    const { status, body } = anthropicMessagesClient.writeError(refusal, 'req_1');
    assert.equal(status, 400);
    const error = body['error'];
    assert.ok(typeof error === 'object' && error !== null);
    assert.deepEqual(Reflect.get(error, 'details'), {
      error_code: 'thread_unsupported_request',
      unsupported: ['thread'],
    });
    assert.equal(Reflect.get(error, 'type'), 'invalid_request_error');
  });
});

describe('B42–B49 fields', () => {
  const rows: readonly (readonly [id: string, changes: JsonObject, path: string])[] = [
    ['B42', { max_tokens: -1 }, 'max_tokens'],
    ['B42', { max_tokens: 1.5 }, 'max_tokens'],
    ['B42', { max_tokens: '100' }, 'max_tokens'],
    ['B42', { max_tokens: null }, 'max_tokens'],
    ['B45', { temperature: 1.1 }, 'temperature'],
    ['B45', { temperature: '0.5' }, 'temperature'],
    ['B45', { top_p: -0.1 }, 'top_p'],
    ['B45', { top_k: 1.5 }, 'top_k'],
    ['B47', { stop_sequences: 'x' }, 'stop_sequences'],
    ['B47', { stop_sequences: ['a', 5] }, 'stop_sequences.1'],
    ['B47', { stop_sequences: [''] }, 'stop_sequences.0'],
    ['B47', { stop_sequences: ['x'.repeat(5000)] }, 'stop_sequences.0'],
    ['B48', { stream: 1 }, 'stream'],
    ['B48', { stream: 'true' }, 'stream'],
    ['B49', { model: 5 }, 'model'],
    ['B49', { model: '' }, 'model'],
    ['B49', { model: 'a\nb' }, 'model'],
    ['B49', { model: 'x'.repeat(10_000) }, 'model'],
    ['B52', { system: 5 }, 'system'],
    ['B52', { system: [{ type: 'text' }] }, 'system.0.text'],
    ['B58', { output_config: { format: { type: 'json_schema' } } }, 'output_config.format.schema'],
    ['B58', { output_format: { type: 'haiku' } }, 'output_format.type'],
    ['B66', { metadata: { user_id: 5 } }, 'metadata.user_id'],
    ['B66', { metadata: { user_id: 'x'.repeat(513) } }, 'metadata.user_id'],
    ['B66', { metadata: 'me' }, 'metadata'],
    ['2.2', { thinking: { type: 'enabled' } }, 'thinking.budget_tokens'],
    ['2.2', { thinking: 'on' }, 'thinking'],
  ];
  for (const [id, changes, path] of rows) {
    test(`${id} ${JSON.stringify(changes).slice(0, 60)}`, () => {
      assert.ok(refused(changes).startsWith(`${path}: `), refused(changes));
    });
  }

  test('B43 max_tokens is required, in the words of the native service', () => {
    const { max_tokens: _cap, ...body } = base;
    assert.equal(
      refusalOf(() => anthropicMessagesClient.readHead(body)),
      'max_tokens: Field required',
    );
  });

  test('max_tokens 0 warms a cache: legal natively, refused where nothing can be warmed', () => {
    assert.equal(readHead({ max_tokens: 0 }).maxOutputTokens, 0);
  });
});

describe('B51–B53 messages', () => {
  const rows: readonly (readonly [id: string, messages: JsonObject[string], path: string])[] = [
    ['B51', [], 'messages'],
    ['B51', 'Hi', 'messages'],
    ['B51', [user, null], 'messages.1'],
    ['B52', [{ role: 'wizard', content: 'x' }], 'messages.0.role'],
    ['B52', [{ content: 'x' }], 'messages.0.role'],
    ['B53', [{ role: 'user' }], 'messages.0.content'],
    ['B53', [{ role: 'user', content: 5 }], 'messages.0.content'],
    ['A1', [user, { role: 'system' }], 'messages.1.content'],
    ['A1', [user, { role: 'system', output_config: {} }], 'messages.1.content'],
    ['A1', [user, { ...user, role: 'system', output_config: 5 }], 'messages.1.output_config'],
    [
      'A1',
      [user, { role: 'system', output_config: { effort: 5 } }],
      'messages.1.output_config.effort',
    ],
    ['B53', [{ role: 'user', content: [[]] }], 'messages.0.content.0'],
    ['B53', [{ role: 'user', content: [{ text: 'x' }] }], 'messages.0.content.0.type'],
    [
      'B53',
      [{ role: 'user', content: [{ type: 'text', text: null }] }],
      'messages.0.content.0.text',
    ],
    ['B53', [{ role: 'user', content: [{ type: 'image' }] }], 'messages.0.content.0.source'],
    ['B53', [{ role: 'user', content: [call('a')] }], 'messages.0.content.0'],
    ['B53', [{ role: 'assistant', content: [result('a')] }], 'messages.0.content.0'],
    [
      'B53',
      [{ role: 'assistant', content: [{ ...call('a'), input: '{}' }] }],
      'messages.0.content.0.input',
    ],
  ];
  for (const [id, messages, path] of rows) {
    test(`${id} ${JSON.stringify(messages)}`, () => {
      const refusal = refused({ messages: messages ?? null });
      assert.ok(refusal.startsWith(`${path}: `), refusal);
    });
  }

  test('B52 the first turn is not the assistant’s', () => {
    const refusal = refused({ messages: [{ role: 'assistant', content: 'Well' }, user] });
    assert.ok(refusal.startsWith('messages.0.role: '), refusal);
  });

  test('A1 system turns in mid-conversation are legal', () => {
    readHead({ messages: [user, { role: 'system', content: [{ type: 'text', text: 'x' }] }] });
  });

  const sources: readonly (readonly [id: string, source: JsonObject, path: string])[] = [
    ['B59', { type: 'base64', media_type: 'image/svg+xml', data: 'AAAA' }, 'media_type'],
    ['B59', { type: 'base64', data: 'AAAA' }, 'media_type'],
  ];
  for (const [id, source, path] of sources) {
    test(`${id} image ${JSON.stringify(source).slice(0, 70)}`, () => {
      const content = [{ type: 'image', source }];
      const refusal = refused({ messages: [{ role: 'user', content }] });
      assert.ok(refusal.startsWith(`messages.0.content.0.source.${path}: `), refusal);
    });
  }
});

describe('B54 calls and results', () => {
  const assistant = (...blocks: readonly JsonObject[]): JsonObject => ({
    role: 'assistant',
    content: blocks,
  });
  const answer = (...blocks: readonly JsonObject[]): JsonObject => ({
    role: 'user',
    content: blocks,
  });
  const text = { type: 'text', text: 'x' };

  const rows: readonly (readonly [name: string, messages: JsonObject[], refusal: RegExp])[] = [
    ['a result without a call', [answer(result('a'))], /^messages\.0\.content\.0: unexpected/],
    [
      'a result of an earlier turn',
      [user, assistant(call('a')), answer(result('a')), assistant(text), answer(result('a'))],
      /^messages\.4\.content\.0: unexpected/,
    ],
    [
      'a call without a result',
      [user, assistant(call('a')), user],
      /^messages\.1: .*without `tool_result` blocks.*: a\./,
    ],
    [
      'one of two results missing',
      [user, assistant(call('a'), call('b')), answer(result('a')), assistant(text)],
      /^messages\.1: .*: b\./,
    ],
    ['a call that ends the messages', [user, assistant(call('a'))], /^messages\.1: /],
    [
      'one id twice in a turn',
      [user, assistant(call('a'), call('a')), answer(result('a'))],
      /^messages\.1\.content\.1\.id: .*unique/,
    ],
    [
      'one id twice in a conversation',
      [user, assistant(call('a')), answer(result('a')), assistant(call('a')), answer(result('a'))],
      /^messages\.3\.content\.0\.id: .*unique/,
    ],
    [
      'B4 two results for one call',
      [user, assistant(call('a')), answer(result('a'), result('a'))],
      /^messages\.2\.content\.1: .*single result/,
    ],
    [
      'text before the result',
      [user, assistant(call('a')), answer(text, result('a'))],
      /^messages\.2\.content\.1: /,
    ],
  ];
  for (const [name, messages, refusal] of rows) {
    test(name, () => assert.match(refused({ messages }), refusal));
  }

  test('B5 results that are spread over user messages', () => {
    readHead({
      messages: [
        user,
        assistant(call('a'), call('b')),
        answer(result('b'), text),
        answer(result('a')),
      ],
    });
  });

  test('A3 a system message between a call and its result', () => {
    readHead({
      messages: [
        user,
        assistant(call('a')),
        { role: 'system', content: 'Note.' },
        answer(result('a')),
      ],
    });
  });
});

describe('B56, B57 tools', () => {
  const many = Array.from({ length: 1000 }, (_, i) => tool(`t${i}`));
  const rows: readonly (readonly [id: string, changes: JsonObject, path: string])[] = [
    ['B56 1,000 tools', { tools: many }, 'tools'],
    ['B56 duplicate names', { tools: [tool('f'), tool('f')] }, 'tools.1.name'],
    ['B56 a space in a name', { tools: [tool('my tool')] }, 'tools.0.name'],
    ['B56 no name', { tools: [{ input_schema: {} }] }, 'tools.0.name'],
    ['B56 no schema', { tools: [{ name: 'f' }] }, 'tools.0.input_schema'],
    ['B56 an object', { tools: {} }, 'tools'],
    [
      'B57 a missing tool',
      { tools: [tool('f')], tool_choice: { type: 'tool', name: 'g' } },
      'tool_choice.name',
    ],
    [
      'B57 unknown choice',
      { tools: [tool('f')], tool_choice: { type: 'sometimes' } },
      'tool_choice.type',
    ],
    ['B57 a choice without tools', { tool_choice: { type: 'any' } }, 'tool_choice'],
  ];
  for (const [name, changes, path] of rows) {
    test(name, () => assert.ok(refused(changes).startsWith(`${path}: `), refused(changes)));
  }

  test('B56 schemas are passed on, never compiled or followed', () => {
    const loop = {
      type: 'object',
      properties: { a: { $ref: '#' }, b: { type: 'string', pattern: '(a+)+$' } },
    };
    readHead({ tools: [{ name: 'f', input_schema: loop }] });
  });
});
