/** B11 in relay: which finish is changed, and which keeps its word. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/core/conversation.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { FinishMend, mendedDocument } from '../../../src/dialects/openai-chat/finish-mend.ts';
import { ChatStreamReader } from '../../../src/dialects/openai-chat/stream-read.ts';
import { chatChunk, chatDocument } from '../../upstream/chat.ts';

/** The finish that clients of the relayed stream see. */
function relayed(...chunks: readonly JsonObject[]): string | undefined {
  const reader = new ChatStreamReader(chatTraits);
  const mend = new FinishMend();
  let finish: string | undefined;
  for (const chunk of chunks) {
    const data = JSON.stringify(chunk);
    const bytes = Buffer.from(`data: ${data}\n\n`);
    const events = reader.read({ event: undefined, data, bytes });
    const sent = (mend.apply(data, bytes, events) ?? bytes).toString();
    finish = /"finish_reason":"(\w+)"/.exec(sent)?.[1] ?? finish;
  }
  return finish;
}

const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
const calling = chatChunk({ role: 'assistant', tool_calls: [call] });
const saying = chatChunk({ role: 'assistant', content: 'Say "finish_reason":"tool_calls"' });

for (const [name, chunks, expected] of [
  ['a call that ends in stop', [calling, chatChunk({}, 'stop')], 'tool_calls'],
  ['the same in one chunk', [chatChunk({ tool_calls: [call] }, 'stop')], 'tool_calls'],
  ['a call that ends in tool_calls', [calling, chatChunk({}, 'tool_calls')], 'tool_calls'],
  ['text that ends in tool_calls', [saying, chatChunk({}, 'tool_calls')], 'stop'],
  ['text that ends in stop', [saying, chatChunk({}, 'stop')], 'stop'],
  ['B12 a call that was cut off', [calling, chatChunk({}, 'length')], 'length'],
  ['a filtered answer', [saying, chatChunk({}, 'content_filter')], 'content_filter'],
  [
    'a call whose id never came',
    [
      chatChunk({ tool_calls: [{ index: 0, function: { name: 'f' } }] }),
      chatChunk({}, 'tool_calls'),
    ],
    'tool_calls',
  ],
  [
    'the deprecated form',
    [chatChunk({ function_call: { name: 'f', arguments: '{}' } }), chatChunk({}, 'stop')],
    'stop',
  ],
] as const) {
  test(`B11 ${name}: ${expected}`, () => {
    assert.equal(relayed(...chunks), expected);
  });
}

test('B11 several choices stay as they are', () => {
  const both = chatChunk({}, 'stop');
  const choices = [0, 1].map((index) => ({ index, delta: {}, finish_reason: 'stop' }));
  assert.equal(relayed(calling, { ...both, choices }), 'stop');
});

test('B11 documents', () => {
  const called = chatDocument({ calls: [{ id: 'a', name: 'f', arguments: '{}' }], finish: 'stop' });
  assert.match(JSON.stringify(mendedDocument(called)), /"finish_reason":"tool_calls"/);
  const said = chatDocument({ text: 'Hi', finish: 'tool_calls' });
  assert.match(JSON.stringify(mendedDocument(said)), /"finish_reason":"stop"/);
  assert.equal(mendedDocument(chatDocument({ text: 'Hi' })), undefined);
  const cut = chatDocument({ calls: [{ id: 'a', name: 'f', arguments: '{' }], finish: 'length' });
  assert.equal(mendedDocument(cut), undefined);
});
