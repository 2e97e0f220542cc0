import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { answer, calls, hi, messagesOf, result, says, use } from './conversation-pieces.ts';
import { answered, eventsOf, streamed, translate } from './translating.ts';

describe('§3.9, B6 ids', () => {
  const document = (...ids: readonly string[]): JsonObject => ({
    id: 'c',
    choices: [
      {
        index: 0,
        message: {
          tool_calls: ids.map((id) => ({ id, function: { name: 'f', arguments: '{}' } })),
        },
        finish_reason: 'stop',
      },
    ],
  });

  test('B6 an engine that says call_0 each turn: unique for the client, paired again upstream', () => {
    let messages: JsonObject[] = [hi];
    const seen: string[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const request = { messages, tools: [{ name: 'f', input_schema: { type: 'object' } }] };
      const translated = translate('messages', request);
      const document1 = answered('messages', translated, document('call_0', 'call_1'));
      const stream = streamed('messages', translated, [
        {
          id: 'c',
          choices: [
            {
              index: 0,
              delta: {
                tool_calls: ['call_0', 'call_1'].map((id, index) => ({
                  index,
                  id,
                  function: { name: 'f', arguments: '{}' },
                })),
              },
              finish_reason: 'stop',
            },
          ],
        },
      ]);
      const content = document1['content'];
      assert.ok(Array.isArray(content));
      const ids: string[] = content.map((block) => String(block.id));
      const streamIds = eventsOf(stream)
        .filter(({ type }) => type === 'content_block_start')
        .map(({ content_block: block }) => (isObject(block) ? block['id'] : ''));
      assert.deepEqual(streamIds, ids, 'the same in streams');
      seen.push(...ids);
      messages = [
        ...messages,
        { role: 'assistant', content },
        says('user', ...ids.map((id) => result(id, 'r'))),
      ];
    }
    assert.equal(new Set(seen).size, 6);
    const upstream = messagesOf('messages', messages);
    const called = upstream.flatMap(({ tool_calls: list }) =>
      Array.isArray(list) ? list.map(({ id }) => id) : [],
    );
    const answers = upstream.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]));
    assert.deepEqual(answers, called);
    assert.equal(new Set(called).size, 6);
  });

  test('B6 chat clients see unique ids too', () => {
    const messages = [hi, calls('toolu_1'), answer('toolu_1', 'r')];
    const translated = translate('chat', { messages });
    const block = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };
    const shown = answered('chat', translated, {
      id: 'm',
      content: [block, { ...block, id: 'other' }, { ...block, id: '' }],
      stop_reason: 'tool_use',
    });
    const ids = [...JSON.stringify(shown).matchAll(/"id":"([^"]+)","type":"function"/g)].map(
      (match) => match[1],
    );
    assert.equal(new Set([...ids, 'toolu_1', '']).size, 5);
    assert.equal(ids[1], 'other', 'unchanged where it is new');
  });

  test('B6 Mistral: nine letters and digits, calls and results alike', () => {
    const written = messagesOf(
      'messages',
      [hi, says('assistant', use('toolu_01ABC')), says('user', result('toolu_01ABC', 'r'))],
      { nineCharacterToolIds: true },
    );
    const id = written[2]?.['tool_call_id'];
    assert.match(String(id), /^[a-zA-Z0-9]{9}$/);
    assert.match(JSON.stringify(written[1]), new RegExp(`"id":"${String(id)}"`));
  });

  test('B6 ids that the messages API refuses are rewritten, the same in call and result', () => {
    const written = messagesOf('chat', [
      hi,
      calls('f:0', 'f:1'),
      answer('f:1', '1'),
      answer('f:0', '0'),
    ]);
    const [first, second] = [...JSON.stringify(written[1]).matchAll(/"id":"([\w-]+)"/g)];
    assert.deepEqual(
      written[2],
      says('user', result(first?.[1] ?? '', '0'), result(second?.[1] ?? '', '1')),
    );
  });
});

describe('§3.6 arguments', () => {
  const withArguments = (args: string, count = 1): JsonObject => ({
    messages: [
      hi,
      {
        role: 'assistant',
        tool_calls: Array.from({ length: count }, (_, i) => ({
          id: `c${i}`,
          type: 'function',
          function: { name: 'f', arguments: args },
        })),
      },
      ...Array.from({ length: count }, (_, i) => answer(`c${i}`, 'r')),
    ],
  });

  test('G11 B36 arguments hide no depth that a body may not have', () => {
    const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
    for (const args of [deep, deep.slice(0, 50_000)]) {
      assert.throws(() => translate('chat', withArguments(args)), {
        code: 'too_large',
        path: ['messages', 1, 'tool_calls'],
      });
    }
  });

  test('G11 B38 the arguments of all calls together hide no mass of values', () => {
    const many = `{"a":[${'1,'.repeat(30_000)}1]}`;
    translate('chat', withArguments(many, 3));
    assert.throws(() => translate('chat', withArguments(many, 4)), { code: 'too_large' });
  });

  test('G11 S20 F-9 an answer whose arguments are too deep to be parsed is an error, as in a stream', () => {
    const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: deep } };
    const asked = translate('messages', { messages: [hi] });
    const body = {
      id: 'c',
      choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'tool_calls' }],
    };
    assert.throws(() => answered('messages', asked, body), { code: 'upstream_invalid' });
  });

  const rows: readonly (readonly [string, JsonObject, number])[] = [
    ['', {}, 0],
    ['  ', {}, 0],
    ['{"a":1}', { a: 1 }, 0],
    ['[1]', { value: [1] }, 1],
    ['"x"', { value: 'x' }, 1],
    ['{"a":', { _raw: '{"a":' }, 1],
  ];
  for (const [args, input, noted] of rows) {
    test(`§3.6 ${JSON.stringify(args)} in the history and in answers`, () => {
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: args } };
      const translated = translate('chat', {
        messages: [hi, { role: 'assistant', tool_calls: [call] }, answer('a', 'r')],
      });
      assert.match(JSON.stringify(translated.body), new RegExp(escaped(JSON.stringify(input))));
      assert.equal(translated.notes.length, noted);
      const asked = translate('messages', { messages: [hi] });
      const body = {
        id: 'c',
        choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'tool_calls' }],
      };
      if (args.startsWith('{') && noted > 0) {
        // F-9: an answer of them is an error, as it is in a stream.
        assert.throws(() => answered('messages', asked, body), { code: 'upstream_invalid' });
        return;
      }
      const document = answered('messages', asked, body);
      assert.deepEqual(document['content'], [{ ...use('a', input), caller: { type: 'direct' } }]);
      assert.equal(document['stop_reason'], 'tool_use');
    });
  }

  test('§3.6, B12 cut off by the limit: the complete members, max_tokens', () => {
    const asked = translate('messages', { messages: [hi], max_tokens: 7 });
    const args = '{"a":1,"b":"hal';
    const call = { id: 'a', function: { name: 'f', arguments: args } };
    for (const [finish, usage] of [
      ['length', { prompt_tokens: 1, completion_tokens: 3 }],
      // Some servers say tool_calls although the limit was reached.
      ['tool_calls', { prompt_tokens: 1, completion_tokens: 7 }],
    ] as const) {
      const document = answered('messages', asked, {
        id: 'c',
        choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: finish }],
        usage,
      });
      assert.deepEqual(document['content'], [
        { ...use('a', { a: 1 }), caller: { type: 'direct' } },
      ]);
      assert.equal(document['stop_reason'], 'max_tokens');
      const delta = { tool_calls: [{ index: 0, ...call }] };
      const stream = streamed('messages', asked, [
        { id: 'c', choices: [{ index: 0, delta, finish_reason: finish }], usage },
      ]);
      assert.match(stream, /"stop_reason":"max_tokens"/);
    }
  });

  test('B10 arguments that are no text', () => {
    const asked = translate('messages', { messages: [hi] });
    for (const [args, input] of [
      [{ a: 1 }, { a: 1 }],
      [[1], { value: [1] }],
      [null, {}],
    ] as const) {
      const call = { id: 'a', function: { name: 'f', arguments: args } };
      const document = answered('messages', asked, {
        id: 'c',
        choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'stop' }],
      });
      assert.deepEqual(document['content'], [{ ...use('a', input), caller: { type: 'direct' } }]);
    }
  });
});

function escaped(pattern: string): string {
  return pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
