/** Entries of reasoning_details that came back, whole or not (D1, D3, §5.2). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Part, ReasoningPart } from '../../../src/core/conversation.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { messagesUpstream, sealingFor, testSealer } from '../../support/sealing.ts';
import { answerContext } from './answer-context.ts';

const first: ReasoningPart = { type: 'reasoning', text: 'one', signature: 's1' };
const second: ReasoningPart = { type: 'reasoning', text: 'two', signature: 's2' };
const secret: ReasoningPart = { type: 'reasoning', text: '', encrypted: 'blob' };
const call = (id: string): Part => ({ type: 'tool-call', id, name: 'f', argumentsJson: '{}' });
const text: Part = { type: 'text', text: 'So.' };

/** The message that a client gets of these parts. */
function answered(parts: readonly Part[]): JsonObject {
  const context = answerContext({ sealing: sealingFor(messagesUpstream) });
  const finish = { kind: 'tool-calls' } as const;
  const body = openaiChatClient.writeResponse({ id: 'x', model: 'm', parts, finish }, context);
  const choices = body['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const message = isObject(choice) ? choice['message'] : undefined;
  assert.ok(isObject(message));
  return message;
}

/** The assistant's parts when the client sends this message. */
function sentBack(message: JsonObject): readonly Part[] {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }, message] };
  const read = openaiChatClient.readRequest(body, new NoteList(), testSealer);
  return read.turns[1]?.parts ?? [];
}

function details(message: JsonObject): readonly JsonObject[] {
  const list: Json | undefined = message['reasoning_details'];
  return Array.isArray(list) ? list.filter(isObject) : [];
}

const parts = [first, text, call('a'), second, secret, call('b')];
const whole = answered(parts);

describe('D1 D3 §5.2 marked entries', () => {
  test('come back at their places among the calls', () => {
    assert.deepEqual(sentBack(whole), parts);
    const { content: _, ...silent } = whole;
    assert.deepEqual(sentBack(silent), [first, call('a'), second, secret, call('b')]);
  });

  test('a summary comes back as the increments of a stream, which a client only listed', () => {
    const summary: ReasoningPart = {
      ...first,
      extras: { 'openai-chat': { summary: true, format: 'openai-responses-v1' } },
    };
    const message = answered([summary, call('a')]);
    const increments = details(message).flatMap(
      ({ index = 0, type = '', summary: told, ...rest }) => [
        { index, type, summary: told ?? '' },
        { index, type, ...rest },
      ],
    );
    const [back] = sentBack({ ...message, reasoning_details: increments });
    assert.deepEqual(back, sentBack(message)[0]);
    assert.ok(back?.type === 'reasoning' && back.broken === undefined && back.text === 'one');
  });

  const entries = details(whole);
  const torn: readonly (readonly [string, readonly JsonObject[]])[] = [
    ['the first is missing', entries.slice(1)],
    ['only the last is left', entries.slice(-1)],
    ['a text is cut', entries.map((entry, i) => (i === 0 ? { ...entry, text: 'on' } : entry))],
    ['a text is gone', entries.map(({ text: _text, ...entry }) => entry)],
    [
      'a secret is cut',
      entries.map((entry) => (entry['data'] ? { ...entry, data: 'blo' } : entry)),
    ],
    ['the order is another', entries.toReversed()],
    ['a mark is of another entry', entries.map((entry) => ({ ...entry, id: entries[0]?.['id'] }))],
  ];
  for (const [what, kept] of torn) {
    test(`${what}: all are broken`, () => {
      const back = sentBack({ ...whole, reasoning_content: null, reasoning_details: kept });
      const reasoning = back.filter((part) => part.type === 'reasoning');
      assert.ok(reasoning.length > 0 && reasoning.every(({ broken }) => broken === true));
    });
  }

  test('a signature whose text only stands in reasoning_content is whole', () => {
    const one = answered([first, call('a')]);
    const [entry] = details(one);
    assert.ok(entry !== undefined);
    const { text: _, ...bare } = entry;
    assert.deepEqual(sentBack({ ...one, reasoning_details: [bare] })[0], first);
  });
});
