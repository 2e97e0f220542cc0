/** Notes and refusals of either writer name the path that the client knows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { fromChat, fromMessages, refusedPath } from '../../support/translating.ts';

const haiku = 'anthropic/claude-haiku-4-5';
const hi = { role: 'user', content: 'Hi' };
const call = (id: string, args: string) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: args },
});
const answer = (id: string, more: JsonObject = {}) => ({
  role: 'tool',
  tool_call_id: id,
  content: 'done',
  ...more,
});

describe('§10.2 paths are those of the client', () => {
  const noted: readonly (readonly [string, readonly JsonObject[], readonly string[]])[] = [
    [
      'arguments that are no object',
      [
        hi,
        { role: 'assistant', tool_calls: [call('a', '{}'), call('b', '[1]')] },
        answer('a'),
        answer('b'),
      ],
      ['changed messages.1.tool_calls.1'],
    ],
    [
      'the author of a message, behind instructions',
      [
        { role: 'system', content: 'x' },
        hi,
        { role: 'assistant', content: 'Ho' },
        { ...hi, name: 'u' },
      ],
      ['lost messages.3.name'],
    ],
  ];
  for (const [title, messages, notes] of noted) {
    test(title, () => {
      assert.deepEqual(fromChat(haiku, { messages }).notes, notes);
    });
  }

  test('an answer to be continued by a model that cannot', () => {
    const messages = [hi, { role: 'assistant', content: 'One,' }];
    assert.deepEqual(fromChat('anthropic/claude-opus-5', { messages }).notes, [
      'changed messages.1',
    ]);
  });

  test('a picture that the model does not take', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
    const messages = [hi, { role: 'user', content: [{ type: 'text', text: 'See' }, image, audio] }];
    assert.equal(
      refusedPath(() => fromChat(haiku, { messages })),
      'messages.1.content.2.input_audio',
    );
  });

  test('messages → chat: results that were spread over several messages', () => {
    const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
    const result = (id: string, content: JsonObject[string] = 'x') => ({
      type: 'tool_result',
      tool_use_id: id,
      content,
    });
    const file = { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } };
    const { notes } = fromMessages('ollama/llava', {
      messages: [
        hi,
        { role: 'assistant', content: [use('a'), use('b')] },
        { role: 'user', content: [result('a'), { type: 'text', text: 'and' }] },
        { role: 'user', content: [result('b', [{ type: 'text', text: 'see' }, file])] },
        { role: 'assistant', content: 'Well,' },
      ],
    });
    assert.deepEqual(notes, ['lost messages.3.content.0.content.1', 'changed messages.4']);
  });
});
