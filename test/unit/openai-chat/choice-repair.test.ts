/** B11 in relay: which finish is changed, and which keeps its word. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { ChoiceRepair, repairedDocument } from '../../../src/dialects/openai-chat/relay/answer.ts';
import { listAt } from '../../support/reading.ts';
import { chatChunk, chatDocument } from '../../upstream/chat.ts';

/** The finishes that clients of the relayed stream see, by choice. */
function finishes(chunks: readonly JsonObject[]): ReadonlyMap<unknown, unknown> {
  const repair = new ChoiceRepair();
  const seen = new Map<unknown, unknown>();
  for (const chunk of chunks) {
    const sent = repair.apply(JSON.stringify(chunk)) ?? chunk;
    for (const choice of listAt(sent, 'choices')) {
      if (choice['finish_reason'] !== null) seen.set(choice['index'], choice['finish_reason']);
    }
  }
  return seen;
}

function relayed(...chunks: readonly JsonObject[]): unknown {
  return finishes(chunks).get(0);
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

/** What choice 0 and choice 1 do, in which order. */
const speaking = (index: number): JsonObject => inChoice(index, { content: 'Hi' });
const ringing = (index: number): JsonObject => inChoice(index, { tool_calls: [call] });

function inChoice(index: number, delta: JsonObject, finish: string | null = null): JsonObject {
  return { ...chatChunk({}), choices: [{ index, delta, finish_reason: finish }] };
}

for (const finish of ['stop', 'tool_calls']) {
  for (const [name, chunks] of [
    ['one after the other', [inChoice(0, {}, finish), inChoice(1, {}, finish)]],
    ['the other way round', [inChoice(1, {}, finish), inChoice(0, {}, finish)]],
    [
      'in one chunk',
      [
        {
          ...chatChunk({}),
          choices: [0, 1].map((index) => ({ index, delta: {}, finish_reason: finish })),
        },
      ],
    ],
  ] as const) {
    test(`D6 each choice has its own finish: ${finish}, ${name}`, () => {
      const one = finishes([speaking(0), ringing(1), ...chunks]);
      assert.deepEqual([one.get(0), one.get(1)], ['stop', 'tool_calls']);
      const other = finishes([ringing(0), speaking(1), ...chunks]);
      assert.deepEqual([other.get(0), other.get(1)], ['tool_calls', 'stop']);
    });
  }
}

test('D6 each choice of a document has its own finish', () => {
  const choices = [{ content: 'Hi' }, { content: null, tool_calls: [call] }].map(
    (message, index) => ({ index, message, finish_reason: 'stop' }),
  );
  const repaired = repairedDocument({ ...chatDocument({}), choices });
  assert.deepEqual(
    listAt(repaired ?? {}, 'choices').map((choice) => choice['finish_reason']),
    ['stop', 'tool_calls'],
  );
});

test('F60 a second finish of a choice is none', () => {
  assert.equal(
    relayed(chatChunk({ content: 'Hi' }), chatChunk({}, 'length'), chatChunk({}, 'stop')),
    'length',
  );
});

test('B11 documents', () => {
  const called = chatDocument({ calls: [{ id: 'a', name: 'f', arguments: '{}' }], finish: 'stop' });
  assert.match(JSON.stringify(repairedDocument(called)), /"finish_reason":"tool_calls"/);
  const said = chatDocument({ text: 'Hi', finish: 'tool_calls' });
  assert.match(JSON.stringify(repairedDocument(said)), /"finish_reason":"stop"/);
  assert.equal(repairedDocument(chatDocument({ text: 'Hi' })), undefined);
  const cut = chatDocument({ calls: [{ id: 'a', name: 'f', arguments: '{' }], finish: 'length' });
  assert.equal(repairedDocument(cut), undefined);
});
