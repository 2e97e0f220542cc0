/** What chat clients send, and what a messages upstream must get (requirements.md A, B, G; translation.md §1). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { sendThrough, type Sent } from './sent.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const user = { role: 'user', content: 'Hello' } as const;

function sent(more: JsonObject): Promise<Sent> {
  return sendThrough(rig, ['chat', 'messages'], more);
}

describe('a chat client on a messages upstream', () => {
  test('A2 system messages: the first run goes to the top, later ones stay', async () => {
    const { body } = await sent({
      messages: [
        { role: 'system', content: 'One.' },
        { role: 'developer', content: 'Two.' },
        user,
        { role: 'assistant', content: 'Hi' },
        { role: 'system', content: 'Late.' },
        user,
      ],
    });
    const top = JSON.stringify(body['system']);
    assert.ok(top.includes('One.') && top.includes('Two.') && !top.includes('Late.'));
    assert.ok(JSON.stringify(body['messages']).includes('Late.'));
  });

  for (const [name, content] of Object.entries({
    '""': '',
    null: null,
    'an empty part': [{ type: 'text', text: '' }],
  })) {
    test(`B3 assistant content ${name} beside calls leaves no empty text`, async () => {
      const { body } = await sent({
        messages: [
          user,
          {
            role: 'assistant',
            content,
            tool_calls: [
              { id: 'call_a', type: 'function', function: { name: 'f', arguments: '' } },
            ],
          },
          { role: 'tool', tool_call_id: 'call_a', content: 'done' },
        ],
      });
      const turn = listAt(body, 'messages')[1] ?? {};
      assert.deepEqual(
        listAt(turn, 'content').map((block) => [block['type'], block['input']]),
        [['tool_use', {}]],
      );
    });
  }

  test('B5 the results of parallel calls are one user turn, in call order', async () => {
    const call = (id: string): JsonObject => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    });
    const { body } = await sent({
      messages: [
        user,
        { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
        { role: 'tool', tool_call_id: 'b', content: 'B' },
        { role: 'tool', tool_call_id: 'a', content: 'A' },
        { role: 'user', content: 'and now?' },
      ],
    });
    const turns = listAt(body, 'messages');
    assert.equal(turns.length, 3);
    assert.deepEqual(
      listAt(turns[2] ?? {}, 'content').map((block) => block['tool_use_id'] ?? block['text']),
      ['a', 'b', 'and now?'],
    );
  });

  test('B14 reasoning_effort becomes thinking that the cap allows', async () => {
    const { body } = await sent({
      reasoning_effort: 'low',
      max_completion_tokens: 4000,
    });
    assert.ok(isObject(body['thinking']), JSON.stringify(body));
    assert.equal(body['reasoning_effort'], undefined);
    assert.equal(body['max_tokens'], 4000);
  });

  test('G1 cache marks are kept, with their lifetime', async () => {
    const mark = { type: 'ephemeral', ttl: '1h' };
    const { body } = await sent({
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'Rules.', cache_control: mark }] },
        { role: 'user', content: [{ type: 'text', text: 'Hello', cache_control: mark }] },
      ],
    });
    assert.deepEqual(listAt(body, 'system')[0]?.['cache_control'], mark);
    assert.deepEqual(
      listAt(listAt(body, 'messages')[0] ?? {}, 'content')[0]?.['cache_control'],
      mark,
    );
  });

  const rejected: { readonly [field: string]: JsonObject } = {
    logprobs: { logprobs: true },
    n: { n: 2 },
    modalities: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
  };
  for (const [field, more] of Object.entries(rejected)) {
    test(`translation §1.1 ${field} is refused by name`, async () => {
      const { model, script } = rig.play('messages', replying('messages', { text: 'ok' }));
      const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false, more }));
      assert.equal(reply.status, 400, reply.text);
      assert.equal(objectAt(reply.json, 'error')['param'], field);
      assert.equal(script.requests.length, 0);
    });
  }

  const noted = {
    seed: 5,
    frequency_penalty: 0.5,
    logit_bias: { 5: 1 },
    verbosity: 'low',
  } as const;
  for (const [field, value] of Object.entries(noted)) {
    test(`translation §1.1 ${field} is dropped and noted`, async () => {
      const { body, reply } = await sent({ [field]: value });
      assert.equal(body[field], undefined);
      assert.match(String(reply.headers['x-gateway-notes']), new RegExp(field));
    });
  }

  test('translation principle 1: defaults are neither errors nor notes', async () => {
    const { reply } = await sent({
      n: 1,
      logprobs: false,
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: {},
      parallel_tool_calls: true,
      store: false,
      modalities: ['text'],
      response_format: { type: 'text' },
    });
    assert.equal(reply.headers['x-gateway-notes'], undefined);
  });

  test('translation §1.3 a temperature above 1 is clamped and noted', async () => {
    const { body, reply } = await sent({ temperature: 1.7 });
    assert.equal(body['temperature'], 1);
    assert.match(String(reply.headers['x-gateway-notes']), /temperature/);
  });
});
