import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { messagesTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { collected, framesOf, frameText, readEvents, readStreamText } from './answer-context.ts';

const start: JsonObject = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    model: 'claude',
    content: [],
    usage: { input_tokens: 9, cache_read_input_tokens: 4, output_tokens: 1 },
  },
};
const open = (index: number, block: JsonObject): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block: block,
});
const delta = (index: number, value: JsonObject): JsonObject => ({
  type: 'content_block_delta',
  index,
  delta: value,
});
const stop = (index: number): JsonObject => ({ type: 'content_block_stop', index });
const ending = (reason: string | null, more: JsonObject = {}): JsonObject => ({
  type: 'message_delta',
  delta: { stop_reason: reason, stop_sequence: null },
  usage: { output_tokens: 5 },
  ...more,
});
const last: JsonObject = { type: 'message_stop' };
const textBlock = [
  open(0, { type: 'text', text: '' }),
  delta(0, { type: 'text_delta', text: 'Hello' }),
  stop(0),
];

function errorOf(events: readonly GenerationEvent[]): GatewayError {
  const endings = events.filter(({ type }) => type === 'finish' || type === 'error');
  assert.equal(endings.length, 1, 'one ending');
  const found = events.at(-1);
  assert.ok(found?.type === 'error', JSON.stringify(found));
  return found.error;
}

describe('a stream', () => {
  test('text, usage and finish, in this order', () => {
    assert.deepEqual(
      readEvents([start, { type: 'ping' }, ...textBlock, ending('end_turn'), last]),
      [
        { type: 'start', id: 'msg_1', model: 'claude' },
        {
          type: 'usage',
          usage: {
            freshInputTokens: 9,
            cacheReadTokens: 4,
            raw: { input_tokens: 9, cache_read_input_tokens: 4 },
          },
        },
        { type: 'part-start', index: 0, part: { type: 'text', text: '' } },
        { type: 'part-delta', index: 0, field: 'text', delta: 'Hello' },
        { type: 'part-end', index: 0 },
        {
          type: 'usage',
          usage: {
            freshInputTokens: 9,
            cacheReadTokens: 4,
            outputTokens: 5,
            raw: { input_tokens: 9, cache_read_input_tokens: 4, output_tokens: 5 },
          },
        },
        { type: 'finish', reason: { kind: 'stop', raw: 'end_turn' } },
      ],
    );
  });

  test('F2 F56 counts replace, null and missing ones leave what was', () => {
    const usage = { input_tokens: 40, cache_read_input_tokens: null, output_tokens: 7 };
    const generation = collected(
      readEvents([start, ending(null), ending('end_turn', { usage }), last]),
    );
    assert.deepEqual(generation?.usage, {
      freshInputTokens: 40,
      cacheReadTokens: 4,
      outputTokens: 7,
    });
  });

  test('D1 D2 thinking, signature, redacted thinking, interleaved with text', () => {
    const generation = collected(
      readEvents([
        start,
        open(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'hm' }),
        delta(0, { type: 'thinking_delta', thinking: '' }),
        delta(0, { type: 'signature_delta', signature: 'sig==' }),
        stop(0),
        open(1, { type: 'redacted_thinking', data: 'secret' }),
        stop(1),
        open(2, { type: 'thinking', thinking: '', signature: '' }),
        delta(2, { type: 'signature_delta', signature: 'only' }),
        stop(2),
        open(3, { type: 'text', text: 'So' }),
        delta(3, { type: 'text_delta', text: '.' }),
        stop(3),
        ending('end_turn'),
        last,
      ]),
    );
    assert.deepEqual(generation?.parts, [
      { type: 'reasoning', text: 'hm', signature: 'sig==' },
      { type: 'reasoning', text: '', encrypted: 'secret' },
      { type: 'reasoning', text: '', signature: 'only' },
      { type: 'text', text: 'So.' },
    ]);
  });

  test('calls: fragments, no arguments, arguments at the start', () => {
    const tool = (id: string, input: JsonObject): JsonObject => ({
      type: 'tool_use',
      id,
      name: 'f',
      input,
    });
    const generation = collected(
      readEvents([
        start,
        open(0, tool('a', {})),
        delta(0, { type: 'input_json_delta', partial_json: '' }),
        delta(0, { type: 'input_json_delta', partial_json: '{"x"' }),
        delta(0, { type: 'input_json_delta', partial_json: ':1}' }),
        stop(0),
        open(1, tool('b', {})),
        stop(1),
        open(2, tool('c', { y: 2 })),
        stop(2),
        ending('tool_use'),
        last,
      ]),
    );
    assert.deepEqual(
      generation?.parts.map((part) => part.type === 'tool-call' && [part.id, part.argumentsJson]),
      [
        ['a', '{"x":1}'],
        ['b', '{}'],
        ['c', '{"y":2}'],
      ],
    );
    assert.equal(generation?.finish.kind, 'tool-calls');
  });

  for (const [reason, args] of [
    ['tool_use', '{}'],
    ['max_tokens', ''],
    ['model_context_window_exceeded', ''],
    ['refusal', ''],
  ] as const) {
    test(`R-15 of calls without arguments, the last one at ${reason}`, () => {
      const bare = (index: number): readonly JsonObject[] => [
        open(index, { type: 'tool_use', id: `toolu_${index}`, name: 'w', input: {} }),
        delta(index, { type: 'input_json_delta', partial_json: '' }),
        stop(index),
      ];
      const calls = [...bare(0), ...bare(1)];
      const generation = collected(readEvents([start, ...calls, ending(reason), last]));
      assert.deepEqual(
        generation?.parts.map((part) => part.type === 'tool-call' && part.argumentsJson),
        ['{}', args],
      );
    });
  }

  test('blocks that only this dialect knows are gathered whole', () => {
    const result = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const generation = collected(
      readEvents([
        start,
        open(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
        delta(0, { type: 'input_json_delta', partial_json: '{"query":' }),
        delta(0, { type: 'input_json_delta', partial_json: '"cats"}' }),
        stop(0),
        open(1, result),
        stop(1),
        open(2, { type: 'compaction', content: null }),
        delta(2, { type: 'compaction_delta', content: 'All.', encrypted_content: 'e' }),
        stop(2),
        ending('end_turn'),
        last,
      ]),
    );
    const values = generation?.parts.map((part) => (part.type === 'opaque' ? part.value : part));
    assert.deepEqual(values, [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'cats' } },
      result,
      { type: 'compaction', content: 'All.', encrypted_content: 'e' },
    ]);
  });

  test('F49 a block of an unknown type may come in pieces of any type, and fails no call', () => {
    const strange = { type: 'made_up', shape: 1 };
    const events = readEvents([
      start,
      { type: 'content_block_start', index: 0, content_block: strange },
      delta(0, { type: 'text_delta', text: 'inner' }),
      delta(0, { type: 'input_json_delta', partial_json: '{}' }),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]);
    const whole = collected(events);
    assert.deepEqual(whole?.parts, [
      { type: 'opaque', dialect: 'anthropic-messages', value: strange },
    ]);
    assert.equal(whole?.finish.kind, 'stop');
  });

  test('citations belong to their text', () => {
    const citation = { type: 'web_search_result_location', url: 'https://x', title: 'X' };
    const generation = collected(
      readEvents([
        start,
        open(0, { type: 'text', text: '', citations: [] }),
        delta(0, { type: 'citations_delta', citation }),
        delta(0, { type: 'text_delta', text: 'cited' }),
        stop(0),
        ending('end_turn'),
        last,
      ]),
    );
    assert.deepEqual(generation?.parts, [
      {
        type: 'text',
        text: 'cited',
        citations: [
          {
            url: 'https://x',
            title: 'X',
            native: { dialect: 'anthropic-messages', value: citation },
          },
        ],
      },
    ]);
  });

  const reasons: readonly (readonly [string, string])[] = [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop-sequence'],
    ['max_tokens', 'length'],
    ['tool_use', 'tool-calls'],
    ['pause_turn', 'pause'],
    ['refusal', 'content-filter'],
    ['model_context_window_exceeded', 'context-window'],
    ['compaction', 'other'],
    ['brand_new', 'other'],
  ];
  for (const [raw, kind] of reasons) {
    test(`B13 stop reason ${raw} is ${kind}`, () => {
      const details = { type: 'refusal', category: null, explanation: 'no' };
      const event = {
        ...ending(raw),
        delta: { stop_reason: raw, stop_sequence: 'END', stop_details: details },
      };
      assert.deepEqual(collected(readEvents([start, event, last]))?.finish, {
        kind,
        raw,
        sequence: 'END',
        details,
      });
    });
  }
});

describe('oddities that are served', () => {
  test('F49 unknown events, blocks without data, comments', () => {
    const odd =
      ': hello\n\nevent: surprise\ndata: not json\n\nevent: ping\n\n' +
      'event: thing\ndata: {"type":"thing"}\n\n';
    const rest = [...textBlock, ending('end_turn'), last].map(frameText).join('');
    const events = readStreamText(odd + frameText(start) + odd + rest);
    assert.equal(collected(events)?.parts.length, 1);
  });

  test('events without an event line', () => {
    const all = [start, ...textBlock, ending('end_turn'), last];
    const bare = all.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    assert.equal(collected(readStreamText(`${bare}data: [DONE]\n\n`))?.parts.length, 1);
  });

  test('F61 a block that is never stopped, and text without its block', () => {
    const events = readEvents([
      start,
      textBlock[0] ?? {},
      textBlock[1] ?? {},
      open(1, { type: 'text', text: '' }),
      delta(7, { type: 'text_delta', text: 'x' }),
      ending('end_turn'),
      last,
    ]);
    assert.deepEqual(collected(events)?.parts, [
      { type: 'text', text: 'Hello' },
      { type: 'text', text: '' },
      { type: 'text', text: 'x' },
    ]);
    const count = (type: string): number => events.filter((event) => event.type === type).length;
    assert.equal(count('part-start'), count('part-end'));
  });

  test('F52 a stop reason and then the close is an ending', () => {
    const events = readEvents([start, ...textBlock, ending('max_tokens')]);
    assert.deepEqual(events.at(-1), {
      type: 'finish',
      reason: { kind: 'length', raw: 'max_tokens' },
    });
  });

  test('F58 the finish waits for message_stop, and says so', () => {
    const reader = anthropicMessagesUpstream.streamReader(messagesTraits);
    const [frame, stopped] = framesOf([ending('end_turn'), last].map(frameText).join(''));
    assert.ok(frame !== undefined && stopped !== undefined);
    assert.equal(reader.finishPending, false);
    reader.read(frame);
    assert.equal(reader.finishPending, true);
    assert.equal(reader.read(stopped).at(-1)?.type, 'finish');
    assert.equal(reader.finishPending, false);
  });

  test('F53 nothing counts behind the end; F60 the first stop reason holds', () => {
    const events = readEvents([
      start,
      ...textBlock,
      ending('max_tokens'),
      ending('end_turn'),
      last,
      ...textBlock,
      last,
    ]);
    const endings = events.filter(({ type }) => type === 'finish');
    assert.deepEqual(endings, [{ type: 'finish', reason: { kind: 'length', raw: 'max_tokens' } }]);
    assert.equal(collected(events)?.parts.length, 1);
  });

  test('a repeated start of the same message is ignored', () => {
    const events = readEvents([start, start, ...textBlock, ending('end_turn'), last]);
    assert.equal(events.filter(({ type }) => type === 'start').length, 1);
    assert.equal(events.at(-1)?.type, 'finish');
  });
});

describe('failures', () => {
  test('F40 the close in mid-stream', () => {
    assert.equal(errorOf(readEvents([start, ...textBlock])).code, 'stream_interrupted');
  });

  test('F29 F54 nothing at all, and an end mark without a reason', () => {
    assert.equal(errorOf(readEvents([])).code, 'upstream_invalid');
    assert.equal(errorOf(readEvents([last])).code, 'upstream_invalid');
    assert.equal(errorOf(readEvents([start, ...textBlock, last])).code, 'stream_interrupted');
    assert.equal(errorOf(readEvents([start, ending(null), last])).code, 'stream_interrupted');
  });

  test('F61 a start of another message: two half answers are no answer', () => {
    const other = { ...start, message: { id: 'msg_2', model: 'claude', content: [] } };
    const events = readEvents([start, ...textBlock, other, ...textBlock, ending('end_turn'), last]);
    assert.equal(errorOf(events).code, 'upstream_invalid');
  });

  test('F45 data that is no JSON, and a delta that no block can take', () => {
    const invalid = (run: () => unknown): boolean => {
      try {
        run();
      } catch (error) {
        return error instanceof GatewayError && error.code === 'upstream_invalid';
      }
      return false;
    };
    const broken = 'event: content_block_delta\ndata: {"broken":\n\n';
    assert.ok(invalid(() => readStreamText(frameText(start) + broken)));
    const lost = delta(3, { type: 'input_json_delta', partial_json: '{' });
    assert.ok(invalid(() => readEvents([start, lost])));
  });

  const errors: readonly (readonly [type: string, code: string])[] = [
    ['overloaded_error', 'overloaded'],
    ['rate_limit_error', 'rate_limited'],
    ['authentication_error', 'upstream_auth'],
    ['permission_error', 'upstream_auth'],
    ['billing_error', 'upstream_auth'],
    ['not_found_error', 'model_not_found'],
    ['timeout_error', 'timeout'],
    ['api_error', 'upstream_unavailable'],
    ['invalid_request_error', 'upstream_rejected'],
    ['brand_new_error', 'upstream_unavailable'],
  ];
  for (const [type, code] of errors) {
    test(`F43 F24 ${type} is ${code}, first or later`, () => {
      const event = { type: 'error', error: { type, message: 'what happened' } };
      for (const before of [[], [start, ...textBlock]]) {
        const error = errorOf(readEvents([...before, event, ...textBlock, last]));
        assert.equal(error.code, code);
        assert.equal(error.message.includes('what happened'), code !== 'upstream_auth');
      }
    });
  }

  test('F43 an overflow told in a stream; errors in the form of other servers', () => {
    const overflow = {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 5 tokens > 4 maximum' },
    };
    assert.equal(errorOf(readEvents([overflow])).code, 'context_overflow');
    const bare = 'data: {"error":{"message":"Overloaded","type":"overloaded_error"}}\n\n';
    assert.equal(errorOf(readStreamText(bare)).code, 'overloaded');
    assert.equal(
      errorOf(readStreamText('event: error\ndata: oops\n\n')).code,
      'upstream_unavailable',
    );
  });
});
