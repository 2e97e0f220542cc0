/** What a vendor's model refuses when it stands side by side: one of the two gives way, noted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import type { UpstreamDialect } from '../../../src/core/dialect.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits, messagesTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { anthropicModelTraits, openaiModelTraits } from '../../../src/providers/model-traits.ts';

const question: Conversation = {
  system: [],
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
  tools: [],
  sampling: {},
  output: { type: 'text' },
  extras: {},
};

interface Written {
  readonly body: JsonObject;
  readonly notes: readonly string[];
}

function write(
  dialect: UpstreamDialect,
  traits: UpstreamTraits,
  changes: Partial<Conversation>,
): Written {
  const notes = new NoteList();
  const newId = () => assert.fail('no random ids in requests');
  const ask = { model: 'up', stream: false, traits, newId };
  const body = dialect.writeRequest({ ...question, ...changes }, ask, notes);
  return { body, notes: notes.all.map((note) => note.path) };
}

describe('tools beside reasoning on OpenAI', () => {
  const tools = [{ name: 'f', schema: { type: 'object', properties: {} } }];

  function effort(model: string, changes: Partial<Conversation>): readonly unknown[] {
    const traits = { ...chatTraits, ...openaiModelTraits(model) };
    const { body, notes } = write(openaiChatUpstream, traits, changes);
    return [body['reasoning_effort'], ...notes];
  }

  test('newer models: effort none, noted where reasoning was asked for', () => {
    for (const model of ['gpt-5.2', 'gpt-5.4', 'gpt-5.6-terra', 'gpt-6']) {
      assert.deepEqual(effort(model, { tools, reasoning: { effort: 'high' } }), [
        'none',
        'output_config.effort',
      ]);
      // They reason by default, so that silence would be refused as well.
      assert.deepEqual(effort(model, { tools }), ['none']);
      assert.deepEqual(effort(model, { tools, reasoning: { effort: 'none' } }), ['none']);
    }
  });

  test('without tools, and on the models before, the effort is what was asked for', () => {
    assert.deepEqual(effort('gpt-5.4', { reasoning: { effort: 'high' } }), ['high']);
    assert.deepEqual(effort('gpt-5.4', {}), [undefined]);
    for (const model of ['gpt-5', 'gpt-5-mini', 'gpt-5.1', 'o3-mini']) {
      assert.deepEqual(effort(model, { tools, reasoning: { effort: 'high' } }), ['high']);
      assert.deepEqual(effort(model, { tools }), [undefined]);
    }
    assert.deepEqual(effort('gpt-4o', { tools }), [undefined]);
  });
});

describe('temperature beside top_p on Anthropic', () => {
  function samplers(model: string, temperature: number, topP: number): readonly unknown[] {
    const traits = { ...messagesTraits, ...anthropicModelTraits(model) };
    const changes = { sampling: { temperature, topP } };
    const { body, notes } = write(anthropicMessagesUpstream, traits, changes);
    return [body['temperature'], body['top_p'], ...notes];
  }

  test('the models that take one of them get the temperature, unless it says the default', () => {
    for (const model of ['claude-opus-4-1-20250805', 'claude-sonnet-4-5', 'claude-opus-4-6']) {
      assert.deepEqual(samplers(model, 0.5, 0.9), [0.5, undefined, 'top_p']);
      assert.deepEqual(samplers(model, 0.5, 1), [0.5, undefined]);
      assert.deepEqual(samplers(model, 1, 0.9), [undefined, 0.9]);
      assert.deepEqual(samplers(model, 1, 1), [1, undefined]);
    }
  });

  test('the models before take both', () => {
    assert.deepEqual(samplers('claude-sonnet-4-0', 0.5, 0.9), [0.5, 0.9]);
    assert.deepEqual(samplers('claude-3-5-haiku', 1, 0.9), [1, 0.9]);
  });
});
