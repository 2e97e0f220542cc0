import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Part } from '../../../src/core/conversation.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { allowedToolName } from '../../../src/dialects/shared/tool-names.ts';
import { answerContext, noted, translated, writeStreamText } from './answer-context.ts';
import { assertLegal, eventsOf } from './legal-stream.ts';

const start: GenerationEvent = { type: 'start', id: 'chatcmpl-1', model: 'gpt' };
const finish = (kind: 'stop' | 'length' | 'tool-calls' = 'stop'): GenerationEvent => ({
  type: 'finish',
  reason: { kind },
});
const usage: GenerationEvent = {
  type: 'usage',
  usage: { freshInputTokens: 40, cacheReadTokens: 60, outputTokens: 7, reasoningTokens: 2 },
};
const open = (index: number, part: Part): GenerationEvent => ({ type: 'part-start', index, part });
const end = (index: number): GenerationEvent => ({ type: 'part-end', index });
const text = (index: number, delta: string): GenerationEvent => ({
  type: 'part-delta',
  index,
  field: 'text',
  delta,
});
const args = (index: number, delta: string): GenerationEvent => ({
  type: 'part-delta',
  index,
  field: 'arguments',
  delta,
});
const sign = (index: number, delta: string): GenerationEvent => ({
  type: 'part-delta',
  index,
  field: 'signature',
  delta,
});
const emptyText: Part = { type: 'text', text: '' };
const call = (id: string): Part => ({ type: 'tool-call', id, name: 'f', argumentsJson: '' });

/** The stream's events in short: `start text 0`, `0 text Hello`, `stop 0`. */
function short(written: string): readonly string[] {
  return eventsOf(written)
    .filter(({ name }) => name !== 'ping')
    .map(({ name, data }) => {
      const { index, content_block: block, delta } = data;
      if (name === 'content_block_start' && isObject(block)) {
        return `start ${String(block['type'])} ${String(index)}`;
      }
      if (name === 'content_block_delta' && isObject(delta)) {
        const value = delta['text'] ?? delta['thinking'] ?? delta['partial_json'];
        return `${String(index)} ${String(delta['type'])} ${String(value ?? '')}`.trim();
      }
      return name === 'content_block_stop' ? `stop ${String(index)}` : name;
    });
}

function blockShorts(events: readonly GenerationEvent[], context = answerContext()): string[] {
  const written = writeStreamText(events, context);
  assertLegal(written);
  return short(written).slice(1, -2);
}

function dataOf(written: string, name: string): JsonObject {
  const found = eventsOf(written).find((event) => event.name === name);
  assert.ok(found !== undefined, `${name} is there`);
  return found.data;
}

function inside(value: JsonObject, ...keys: readonly string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const key of keys) found = isObject(found) ? found[key] : undefined;
  return found;
}

describe('the frame of a stream', () => {
  test('9.2 byte for byte', () => {
    const events = [start, open(0, emptyText), text(0, 'Hé"\n'), end(0), usage, finish()];
    assert.equal(
      writeStreamText(events),
      [
        'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_chatcmpl-1","type":"message","role":"assistant","model":"my-model","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":1,"output_tokens_details":null,"server_tool_use":null,"cache_creation":null,"service_tier":null,"inference_geo":null}}}',
        'event: ping\ndata: {"type": "ping"}',
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé\\"\\n"}}',
        'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}',
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":40,"cache_creation_input_tokens":null,"cache_read_input_tokens":60,"output_tokens":7,"output_tokens_details":{"thinking_tokens":2},"server_tool_use":null}}',
        'event: message_stop\ndata: {"type":"message_stop"}',
        '',
      ].join('\n\n'),
    );
  });

  test('F1 the start waits for content and reports what is known by then, never zero', () => {
    const writer = anthropicMessagesClient.streamWriter(answerContext());
    assert.equal(writer.write(start), '');
    assert.equal(writer.write(usage), '');
    const begun = writer.write(open(0, emptyText));
    assert.equal(inside(dataOf(begun, 'message_start'), 'message', 'usage', 'input_tokens'), 40);
    const guess = writeStreamText([start, finish()], answerContext({ promptTokensEstimate: 0 }));
    assert.equal(inside(dataOf(guess, 'message_start'), 'message', 'usage', 'input_tokens'), 1);
  });

  test('F56 usage that comes behind the finish still counts', () => {
    const written = writeStreamText([start, finish(), usage]);
    assertLegal(written);
    assert.equal(inside(dataOf(written, 'message_delta'), 'usage', 'output_tokens'), 7);
  });

  test('an empty answer is a legal stream without blocks', () => {
    assert.deepEqual(blockShorts([start, finish()]), []);
    assert.deepEqual(blockShorts([start, open(0, emptyText), end(0), finish()]), []);
  });

  test('B64 F66 a lone surrogate stays an escape', () => {
    const written = writeStreamText([start, open(0, emptyText), text(0, 'a\ud800'), finish()]);
    assert.ok(written.includes('a\\ud800'));
  });

  test('ids: kept, prefixed and cleaned, or minted', () => {
    const idOf = (id: string): Json | undefined =>
      inside(
        dataOf(writeStreamText([{ ...start, id }, finish()]), 'message_start'),
        'message',
        'id',
      );
    assert.equal(idOf('msg_01'), 'msg_01');
    assert.equal(idOf('chat cmpl/1'), 'msg_chat_cmpl_1');
    assert.equal(idOf(''), `msg_${'1'.padStart(24, '0')}`);
  });
});

describe('blocks', () => {
  test('B1 interleaved calls: one after the other, each with its own arguments', () => {
    const events = [
      start,
      open(0, call('a')),
      open(1, call('b')),
      args(0, '{"x"'),
      args(1, '{"y"'),
      args(0, ':1}'),
      args(1, ':[2]}'),
      end(1),
      end(0),
      finish('tool-calls'),
    ];
    assert.deepEqual(blockShorts(events), [
      'start tool_use 0',
      '0 input_json_delta {"x"',
      '0 input_json_delta :1}',
      'stop 0',
      'start tool_use 1',
      '1 input_json_delta {"y"',
      '1 input_json_delta :[2]}',
      'stop 1',
    ]);
  });

  test('C1 C2 text that comes while a call is open waits for its end', () => {
    const events = [
      start,
      open(0, call('a')),
      open(1, emptyText),
      text(1, 'then'),
      open(2, call('b')),
      args(0, '{}'),
      end(1),
      end(0),
      text(1, 'lost: the part has ended'),
      args(2, '{}'),
      end(2),
      finish('tool-calls'),
    ];
    assert.deepEqual(blockShorts(events), [
      'start tool_use 0',
      '0 input_json_delta {}',
      'stop 0',
      'start text 1',
      '1 text_delta then',
      'stop 1',
      'start tool_use 2',
      '2 input_json_delta {}',
      'stop 2',
    ]);
  });

  test('a part that is still open streams on when its turn comes', () => {
    const writer = anthropicMessagesClient.streamWriter(answerContext());
    for (const event of [start, open(0, call('a')), open(1, emptyText), text(1, 'one ')]) {
      writer.write(event);
    }
    assert.deepEqual(short(writer.write(end(0))), ['stop 0', 'start text 1', '1 text_delta one']);
    assert.deepEqual(short(writer.write(text(1, 'two'))), ['1 text_delta two']);
  });

  test('F61 parts that the upstream never ended are closed', () => {
    const events = [start, open(0, call('a')), args(0, '{}'), open(1, emptyText), text(1, 'x')];
    assert.deepEqual(blockShorts([...events, finish('tool-calls')]).slice(2), [
      'stop 0',
      'start text 1',
      '1 text_delta x',
      'stop 1',
    ]);
  });

  test('D1 thinking: its text, one signature, the stop', () => {
    const events = [
      start,
      open(0, { type: 'reasoning', text: '' }),
      text(0, 'h'),
      sign(0, 'si'),
      text(0, 'm'),
      sign(0, 'g'),
      end(0),
      open(1, { type: 'reasoning', text: '', encrypted: 'e' }),
      end(1),
      open(2, { type: 'reasoning', text: '', signature: 'only' }),
      end(2),
      open(3, { type: 'reasoning', text: '' }),
      end(3),
      finish(),
    ];
    const written = writeStreamText(events);
    assertLegal(written);
    assert.deepEqual(short(written).slice(1, -2), [
      'start thinking 0',
      '0 thinking_delta h',
      '0 thinking_delta m',
      '0 signature_delta',
      'stop 0',
      'start redacted_thinking 1',
      'stop 1',
      'start thinking 2',
      '2 signature_delta',
      'stop 2',
    ]);
    assert.ok(written.includes('"signature":"sig"') && written.includes('"data":"e"'));
  });

  test('D5 what an upstream signed of a call stands before it', () => {
    const extras = { 'openai-chat': { extra_content: { google: { thought_signature: 's' } } } };
    const events = [start, open(0, { ...call('a'), extras }), args(0, '{}'), end(0)];
    assert.deepEqual(blockShorts([...events, finish('tool-calls')], translated()), [
      'start redacted_thinking 0',
      'stop 0',
      'start tool_use 1',
      '1 input_json_delta {}',
      'stop 1',
    ]);
  });

  test('refusals are text and end as refusals', () => {
    const events = [start, open(0, { type: 'refusal', text: 'I ' }), text(0, 'cannot.'), end(0)];
    const written = writeStreamText([...events, finish()]);
    assertLegal(written);
    assert.deepEqual(dataOf(written, 'message_delta')['delta'], {
      stop_reason: 'refusal',
      stop_sequence: null,
      stop_details: { type: 'refusal', category: null, explanation: 'I cannot.' },
      container: null,
    });
  });

  test('blocks of this dialect as they came; others and media leave a note', () => {
    const notes = new NoteList();
    const opaque = (value: JsonObject): Part => ({
      type: 'opaque',
      dialect: 'anthropic-messages',
      value,
    });
    const parts: readonly Part[] = [
      opaque({ type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } }),
      opaque({ type: 'compaction', content: 'All.' }),
      { type: 'opaque', dialect: 'gemini', value: {} },
      { type: 'media', kind: 'image', mediaType: 'image/png', source: { base64: 'AA' } },
    ];
    const events = parts.flatMap((part, index) => [open(index, part), end(index)]);
    assert.deepEqual(blockShorts([start, ...events, finish()], answerContext({ notes })), [
      'start server_tool_use 0',
      '0 input_json_delta {"query":"x"}',
      'stop 0',
      'start compaction 1',
      '1 compaction_delta',
      'stop 1',
    ]);
    assert.deepEqual(noted(notes), ['content lost', 'content lost']);
  });

  test('citations stand in their text; those of other dialects are noted', () => {
    const notes = new NoteList();
    const native = { type: 'page_location', cited_text: 'c' };
    const events: readonly GenerationEvent[] = [
      start,
      open(0, emptyText),
      {
        type: 'part-citation',
        index: 0,
        citation: { native: { dialect: 'anthropic-messages', value: native } },
      },
      text(0, 'x'),
      {
        type: 'part-citation',
        index: 0,
        citation: { url: 'https://x', native: { dialect: 'openai-chat', value: {} } },
      },
      end(0),
      finish(),
    ];
    assert.deepEqual(blockShorts(events, answerContext({ notes })), [
      'start text 0',
      '0 citations_delta',
      '0 text_delta x',
      'stop 0',
    ]);
    assert.deepEqual(noted(notes), ['citations lost']);
  });
});

describe('tool calls', () => {
  const ids = (written: string): readonly (Json | undefined)[] =>
    eventsOf(written)
      .filter(({ name }) => name === 'content_block_start')
      .map(({ data }) => inside(data, 'content_block', 'id'));
  const withCalls = (...calls: readonly string[]): readonly GenerationEvent[] => [
    start,
    ...calls.flatMap((id, index) => [open(index, call(id)), end(index)]),
    finish('tool-calls'),
  ];

  test('B6 ids: legal ones stay, others are hashed, missing ones are minted', () => {
    const [kept, hashed, minted] = ids(writeStreamText(withCalls('toolu_1', 'f:0', '')));
    assert.equal(kept, 'toolu_1');
    assert.match(String(hashed), /^call_\w{24}$/);
    assert.match(String(minted), /^toolu_\w{24}$/);
  });

  test('B6 an id that the conversation or the answer has already becomes another', () => {
    const earlier = { role: 'assistant', parts: [call('call_0')] } as const;
    const context = translated({ turns: [earlier] });
    const written = ids(writeStreamText(withCalls('call_0', 'call_0', 'call_1'), context));
    assert.equal(new Set([...written, 'call_0']).size, 4);
    assert.equal(written[2], 'call_1');
  });

  test('B7 the tool has the client’s own name again', () => {
    const long = 'x'.repeat(100);
    const context = translated({ tools: [{ name: long, schema: {} }] });
    const name = allowedToolName(long, 64);
    const part: Part = { type: 'tool-call', id: 'a', name, argumentsJson: '' };
    const written = writeStreamText([start, open(0, part), end(0), finish('tool-calls')], context);
    assert.ok(written.includes(`"name":"${long}"`));
  });

  test('3.6 arguments that are no object are wrapped while nothing of them was sent', () => {
    const notes = new NoteList();
    const events = [
      start,
      open(0, call('a')),
      args(0, ' ['),
      args(0, '1]'),
      end(0),
      open(1, { type: 'tool-call', id: 'b', name: 'f', argumentsJson: 'hello' }),
      end(1),
      finish('tool-calls'),
    ];
    assert.deepEqual(
      blockShorts(events, answerContext({ notes })).filter((line) => line.includes('delta')),
      ['0 input_json_delta {"value":[1]}', '1 input_json_delta {"_raw":"hello"}'],
    );
    assert.deepEqual(noted(notes), ['content changed', 'content changed']);
  });

  test('F59 arguments that turn out broken are an error, never a finish', () => {
    const writer = anthropicMessagesClient.streamWriter(answerContext());
    for (const event of [start, open(0, call('a')), args(0, '{"x": tru, oops}'), end(0)]) {
      writer.write(event);
    }
    assert.throws(
      () => writer.write(finish('tool-calls')),
      (error) => error instanceof GatewayError && error.code === 'upstream_invalid',
    );
  });

  test('B12 a call that the token limit cut off ends as max_tokens', () => {
    const events = [start, open(0, call('a')), args(0, '{"x":'), end(0), finish('length')];
    const written = writeStreamText(events);
    assert.equal(inside(dataOf(written, 'message_delta'), 'delta', 'stop_reason'), 'max_tokens');
  });

  test('B11 a natural stop with a call is tool_use, tool calls without a call are not', () => {
    const reason = (events: readonly GenerationEvent[]): Json | undefined =>
      inside(dataOf(writeStreamText(events), 'message_delta'), 'delta', 'stop_reason');
    assert.equal(reason([start, open(0, call('a')), end(0), finish('stop')]), 'tool_use');
    assert.equal(reason([start, finish('tool-calls')]), 'end_turn');
  });
});
