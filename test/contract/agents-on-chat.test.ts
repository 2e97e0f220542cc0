/** What agents of the messages format send, and what a chat upstream must get (requirements.md A, B, D). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt, readDocument, textAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { chatDocument } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { chatText, sendThrough, type Sent } from './sent.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const user = { role: 'user', content: 'Hello' } as const;

function sent(pair: readonly ['messages', 'chat' | 'messages'], more: JsonObject): Promise<Sent> {
  return sendThrough(rig, pair, more);
}

const toChat = ['messages', 'chat'] as const;

function toolUse(id: string, name = 'f', input: JsonObject = {}): JsonObject {
  return { type: 'tool_use', id, name, input };
}

function toolResult(id: string, content: JsonObject['content']): JsonObject {
  return { type: 'tool_result', tool_use_id: id, ...(content === undefined ? {} : { content }) };
}

describe('a messages client on a chat upstream', () => {
  test('A2 A3 a late system message stays at its place', async () => {
    const { body } = await sent(toChat, {
      system: 'Top.',
      messages: [
        user,
        { role: 'assistant', content: 'Hi' },
        { role: 'system', content: 'Late.' },
        user,
      ],
    });
    const texts = listAt(body, 'messages').map(chatText);
    assert.ok(texts.findIndex((text) => text.includes('Late.')) >= 3, JSON.stringify(texts));
    assert.equal(
      texts.findIndex((text) => text.includes('Top.')),
      0,
    );
  });

  test('A3 a system message never stands between a call and its result', async () => {
    const { body } = await sent(toChat, {
      messages: [
        user,
        { role: 'assistant', content: [toolUse('toolu_a')] },
        { role: 'system', content: 'Reminder.' },
        { role: 'user', content: [toolResult('toolu_a', 'done')] },
      ],
    }).catch(() => ({ body: undefined }));
    if (body === undefined) return;
    const roles = listAt(body, 'messages').map((message) => message['role']);
    assert.equal(roles[roles.indexOf('assistant') + 1], 'tool', roles.join());
  });

  test('A6 the billing line of Claude Code goes to Anthropic servers only', async () => {
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=abc123' },
      { type: 'text', text: 'You are an agent.' },
    ];
    const chat = await sent(toChat, { system });
    assert.ok(!JSON.stringify(chat.body).includes('billing-header'));
    assert.ok(JSON.stringify(chat.body).includes('You are an agent.'));
    const relayed = await sent(['messages', 'messages'], { system });
    assert.deepEqual(relayed.body['system'], system.slice(1));
  });

  test('A10 a server tool without a server is refused or dropped whole, never an empty function', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'ok' }));
    const reply = await ask(rig, 'messages', {
      ...requestBody('messages', { model, stream: false }),
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    });
    if (reply.status === 400) {
      assert.match(textAt(objectAt(reply.json, 'error'), 'message'), /^tools\.0/);
      assert.equal(script.requests.length, 0);
    } else {
      assert.equal(script.requests[0]?.json['tools'], undefined);
      assert.equal(script.requests[0]?.json['tool_choice'], undefined);
    }
  });

  test('B2 an image in a tool result comes as a picture behind the whole group', async () => {
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'aGVsbG8=' },
    };
    const { body } = await sent(toChat, {
      messages: [
        user,
        { role: 'assistant', content: [toolUse('toolu_a'), toolUse('toolu_b')] },
        {
          role: 'user',
          content: [
            toolResult('toolu_a', [{ type: 'text', text: 'see' }, image]),
            toolResult('toolu_b', 'done'),
          ],
        },
      ],
    });
    const messages = listAt(body, 'messages');
    assert.deepEqual(
      messages.map((message) => message['role']),
      ['user', 'assistant', 'tool', 'tool', 'user'],
    );
    const picture = listAt(messages.at(-1) ?? {}, 'content').find(
      (part) => part['type'] === 'image_url',
    );
    assert.equal(objectAt(picture ?? {}, 'image_url')['url'], 'data:image/png;base64,aGVsbG8=');
    assert.ok(
      messages.slice(2, 4).every((message) => !JSON.stringify(message).includes('aGVsbG8=')),
    );
  });

  test('B4 one result of several parts is one tool message', async () => {
    const { body } = await sent(toChat, {
      messages: [
        user,
        { role: 'assistant', content: [toolUse('toolu_a')] },
        {
          role: 'user',
          content: [
            toolResult('toolu_a', [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ]),
          ],
        },
      ],
    });
    const tools = listAt(body, 'messages').filter((message) => message['role'] === 'tool');
    assert.equal(tools.length, 1);
  });

  test('B5 results come first, then the text beside them', async () => {
    const { body } = await sent(toChat, {
      messages: [
        user,
        { role: 'assistant', content: [toolUse('toolu_a'), toolUse('toolu_b')] },
        {
          role: 'user',
          content: [
            toolResult('toolu_a', 'A'),
            toolResult('toolu_b', 'B'),
            { type: 'text', text: 'and now?' },
          ],
        },
      ],
    });
    assert.deepEqual(
      listAt(body, 'messages').map((message) => message['role']),
      ['user', 'assistant', 'tool', 'tool', 'user'],
    );
  });

  test('B7 a tool name of 90 characters is shortened there and restored back', async () => {
    const long = `mcp__server__${'a'.repeat(70)}_first`;
    const twin = `mcp__server__${'a'.repeat(70)}_second`;
    const { model, script } = rig.play('chat', (request) => {
      const tools = listAt(request.json, 'tools').map((tool) =>
        textAt(objectAt(tool, 'function'), 'name'),
      );
      const calls = tools.map((name, index) => ({ id: `c${index}`, name, arguments: '{}' }));
      return { body: JSON.stringify(chatDocument({ calls })) };
    });
    const tools = [long, twin].map((name) => ({ name, input_schema: { type: 'object' } }));
    const reply = await ask(rig, 'messages', {
      ...requestBody('messages', { model, stream: false }),
      tools,
    });
    const names = listAt(script.requests[0]?.json ?? {}, 'tools').map((tool) =>
      textAt(objectAt(tool, 'function'), 'name'),
    );
    assert.ok(
      names.every((name) => name.length <= 64),
      names.join(),
    );
    assert.notEqual(names[0], names[1]);
    assert.deepEqual(
      readDocument('messages', reply.json).calls.map((call) => call.name),
      [long, twin],
    );
  });

  test('B14 adaptive thinking with effort becomes reasoning_effort', async () => {
    const { body } = await sent(toChat, {
      thinking: { type: 'adaptive' },
      output_config: { effort: 'medium' },
    });
    assert.equal(body['reasoning_effort'], 'medium');
    assert.equal(body['thinking'], undefined);
    assert.equal(body['output_config'], undefined);
  });

  test('D7 thinking of earlier turns never becomes visible text', async () => {
    const { body } = await sent(toChat, {
      messages: [
        user,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'secret musing', signature: 'sig' },
            { type: 'text', text: 'Hi' },
          ],
        },
        user,
      ],
    });
    for (const message of listAt(body, 'messages')) {
      assert.ok(!chatText(message).includes('secret musing'));
    }
  });

  test('the fields of Claude Code pass', async () => {
    const { body } = await sent(toChat, {
      thinking: { type: 'adaptive', display: 'omitted' },
      output_config: { effort: 'high' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      metadata: { user_id: '{"device":"x"}' },
      system: [{ type: 'text', text: 'Rules.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      tools: [
        {
          name: 'DeferredToolPlaceholder',
          defer_loading: true,
          description: 'd',
          input_schema: { type: 'object' },
        },
        {
          name: 'Read',
          eager_input_streaming: true,
          cache_control: { type: 'ephemeral' },
          input_schema: { type: 'object' },
        },
      ],
    });
    const names = listAt(body, 'tools').map((tool) => textAt(objectAt(tool, 'function'), 'name'));
    assert.ok(names.includes('Read'), names.join());
    assert.equal(body['context_management'], undefined);
    assert.ok(!JSON.stringify(body).includes('cache_control'));
  });
});
