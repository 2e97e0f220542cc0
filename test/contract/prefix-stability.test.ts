/**
 * A2, G2: a conversation grows turn by turn, and what the upstream got before is what it gets again in
 * front, byte for byte, so that its prompt cache stays warm. Only cache marks may move on.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { listAt, type Dialect } from '../support/reading.ts';
import { startVendors, type Vendors } from '../support/vendors.ts';

let vendors: Vendors;
before(async () => {
  const chat = { dialect: 'openai-chat' };
  vendors = await startVendors({
    plain: { speaks: 'chat', config: chat },
    openai: { speaks: 'chat', config: chat },
    openrouter: { speaks: 'chat' },
    engine: { speaks: 'chat', config: { ...chat, like: 'vllm' } },
    deepseek: { speaks: 'chat' },
    anthropic: { speaks: 'messages' },
    other: { speaks: 'messages', config: { dialect: 'anthropic-messages' } },
  });
});
after(() => vendors.stop());

const rounds = 6;
const mark = { type: 'ephemeral' };
const text = (value: string, more: JsonObject = {}) => ({ type: 'text', text: value, ...more });
const png = 'iVBORw0KGgo=';

/** What agents do: reminders in mid-conversation, parallel calls, pictures from tools, moving marks. */
function messagesRequest(model: string, round: number): JsonObject {
  const messages: JsonObject[] = [];
  for (let i = 0; i < round; i += 1) {
    const last = i === round - 1;
    const marked = last ? { cache_control: mark } : {};
    messages.push(
      { role: 'user', content: [text(`Question ${i}`, marked)] },
      ...(i % 2 === 0 ? [{ role: 'system', content: `Reminder ${i}` }] : []),
      {
        role: 'assistant',
        content: [
          text(`I look ${i}.`),
          { type: 'tool_use', id: `toolu_${i}_a`, name: 'read', input: { z: 1, a: [i, 1.5] } },
          { type: 'tool_use', id: `toolu_${i}_b`, name: 'read', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: `toolu_${i}_b`, content: `second ${i}` },
          {
            type: 'tool_result',
            tool_use_id: `toolu_${i}_a`,
            content: [
              text('a picture'),
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
            ],
            ...marked,
          },
        ],
      },
    );
  }
  return {
    model,
    max_tokens: 100,
    system: [
      text(`x-anthropic-billing-header: cc_version=2.1; cch=${round}abc`),
      text('You are an agent.', { cache_control: mark }),
      text('Be brief.'),
    ],
    tools: [
      {
        name: 'read',
        description: 'Reads.',
        input_schema: { type: 'object', properties: { b: {}, a: {} } },
      },
      { name: `mcp.${'long'.repeat(20)}`, input_schema: { type: 'object' } },
    ],
    messages,
  };
}

function chatRequest(model: string, round: number): JsonObject {
  const messages: JsonObject[] = [
    {
      role: 'system',
      content: [text('You are an agent.', { cache_control: mark }), text('Brief.')],
    },
  ];
  for (let i = 0; i < round; i += 1) {
    const marked = i === round - 1 ? { cache_control: mark } : {};
    const call = (id: string, args: string) => ({
      id: `call:${i}/${id}`,
      type: 'function',
      function: { name: 'read', arguments: args },
    });
    messages.push(
      { role: 'user', content: [text(`Question ${i}`, marked)] },
      {
        role: 'assistant',
        content: i % 2 === 0 ? null : `I look ${i}.`,
        tool_calls: [call('a', '{"z":1,"a":[1.50,2]}'), call('b', '')],
      },
      { role: 'tool', tool_call_id: `call:${i}/b`, content: `second ${i}` },
      { role: 'tool', tool_call_id: `call:${i}/a`, content: `first ${i}`, ...marked },
      ...(i % 2 === 0 ? [{ role: 'developer', content: `Reminder ${i}` }] : []),
    );
  }
  return {
    model,
    messages,
    tools: [
      {
        type: 'function',
        function: { name: 'read', parameters: { properties: { b: {}, a: {} } } },
      },
    ],
  };
}

/** Without marks, and a lone text as a string: a mark needs a part to stand on. */
function unmarked(value: Json | undefined): Json {
  if (Array.isArray(value)) {
    const only: Json | undefined = value.length === 1 ? value[0] : undefined;
    const { text: lone, type } = isObject(only) ? only : {};
    if (type === 'text' && typeof lone === 'string') return lone;
    return value.map((each: Json) => unmarked(each));
  }
  if (!isObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'cache_control' && key !== 'prompt_cache_breakpoint')
      .map(([key, member]) => [key, unmarked(member)]),
  );
}

/**
 * Everything but the messages, and each message, as text. In the messages dialect a turn goes on with
 * the next message of its role, so that there a piece is a block.
 */
function pieces(body: JsonObject): { readonly head: string; readonly messages: readonly string[] } {
  const { messages: _messages, ...head } = body;
  const messages = listAt(body, 'messages').flatMap((message) => {
    const { role, content } = message;
    if (body['system'] === undefined || !Array.isArray(content)) return [message];
    return content.map((block: Json) => ({ role, block }));
  });
  return {
    head: JSON.stringify(unmarked(head)),
    messages: messages.map((message) => JSON.stringify(unmarked(message))),
  };
}

async function grow(dialect: Dialect, model: string): Promise<void> {
  const request = dialect === 'chat' ? chatRequest : messagesRequest;
  let earlier: ReturnType<typeof pieces> | undefined;
  for (let round = 1; round <= rounds; round += 1) {
    const { reply, received } = await vendors.ask(dialect, request(model, round));
    assert.equal(reply.status, 200, reply.text);
    const now = pieces(received?.json ?? {});
    const known = earlier?.messages.length ?? 0;
    assert.ok(now.messages.length > known, 'nothing was added');
    assert.deepEqual(now.messages.slice(0, known), earlier?.messages ?? []);
    if (earlier !== undefined) assert.equal(now.head, earlier.head);
    earlier = now;
  }
}

describe('A2 G2 what was sent stays in front', () => {
  for (const model of [
    'plain/m1',
    'openai/gpt-4o',
    'openai/gpt-5.6-sol',
    'openrouter/anthropic/claude-opus-5',
    'engine/qwen3',
    'deepseek/deepseek-flash',
  ]) {
    test(`messages → ${model}`, () => grow('messages', model));
  }
  for (const model of ['anthropic/claude-opus-5', 'anthropic/claude-haiku-4-5', 'other/m2']) {
    test(`chat → ${model}`, () => grow('chat', model));
  }
  test('A6 messages → messages of another vendor: the changing line does not go', () =>
    grow('messages', 'other/m3'));

  test('A6 Claude gets the line as it is, from anybody', async () => {
    for (const model of ['anthropic/claude-opus-4-8', 'other/claude-opus-4-7']) {
      const body = messagesRequest(model, 1);
      const { received } = await vendors.ask('messages', body);
      assert.deepEqual(received?.json['system'], body['system']);
    }
  });
});
