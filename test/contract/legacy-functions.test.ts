/** The deprecated `functions` of chat completions at upstreams that know only tools: calls come back as `function_call`. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const functions = [{ name: 'weather', description: 'Tells it.', parameters }];
const messages = [
  { role: 'user', content: 'Weather in Rome and Paris?' },
  {
    role: 'assistant',
    content: null,
    function_call: { name: 'weather', arguments: '{"city":"Rome"}' },
  },
  { role: 'function', name: 'weather', content: 'sunny' },
];
const call = { name: 'weather', arguments: '{"city":"Paris"}' };

function played() {
  return rig.play('chat', replying('chat', { calls: [{ id: 'call_1', ...call }] }));
}

test('functions are offered as tools, and earlier calls are told in the same form', async () => {
  const { model, script } = played();
  const body = { model, messages, functions, function_call: { name: 'weather' }, own_option: 7 };
  const reply = await ask(rig, 'chat', body);
  assert.equal(reply.status, 200, reply.text);
  const sent = script.requests[0]?.json ?? {};
  assert.deepEqual(sent['tools'], [{ type: 'function', function: functions[0] }]);
  assert.deepEqual(sent['tool_choice'], { type: 'function', function: { name: 'weather' } });
  assert.equal(sent['functions'], undefined);
  assert.equal(sent['function_call'], undefined);
  assert.equal(sent['own_option'], 7);
  const [, called = {}, answered = {}] = listAt(sent, 'messages');
  const [earlier = {}] = listAt(called, 'tool_calls');
  assert.equal(textAt(objectAt(earlier, 'function'), 'arguments'), '{"city":"Rome"}');
  assert.equal(answered['role'], 'tool');
  assert.equal(answered['tool_call_id'], earlier['id']);
  assert.match(String(reply.headers['x-gateway-notes']), /functions: changed, sent as tools/);
});

test('a document has the call as function_call', async () => {
  const { model } = played();
  const reply = await ask(rig, 'chat', { model, messages, functions });
  const [choice = {}] = listAt(reply.json, 'choices');
  assert.equal(choice['finish_reason'], 'function_call');
  const message = objectAt(choice, 'message');
  assert.deepEqual(message['function_call'], call);
  assert.equal(message['tool_calls'], undefined);
});

test('so has a stream', async () => {
  const { model } = played();
  const reply = await ask(rig, 'chat', { model, messages, functions, stream: true });
  const deltas: JsonObject[] = [];
  let finish = '';
  for (const [, data = ''] of reply.text.matchAll(/^data: (\{.*)$/gm)) {
    const [choice = {}] = listAt(tryParseObject(data) ?? {}, 'choices');
    finish ||= textAt(choice, 'finish_reason');
    const delta = objectAt(choice, 'delta');
    assert.equal(delta['tool_calls'], undefined);
    if ('function_call' in delta) deltas.push(objectAt(delta, 'function_call'));
  }
  assert.equal(finish, 'function_call');
  assert.equal(deltas.map((delta) => textAt(delta, 'name')).join(''), call.name);
  assert.equal(deltas.map((delta) => textAt(delta, 'arguments')).join(''), call.arguments);
});

for (const more of [{ n: 2 }, { logprobs: true }, { modalities: ['text', 'audio'] }]) {
  test(`with ${JSON.stringify(more)} a request is relayed, since no translation carries that`, async () => {
    const { model, script } = played();
    const body = { messages: messages.slice(0, 1), functions, function_call: 'auto', ...more };
    const reply = await ask(rig, 'chat', { model, ...body });
    assert.equal(reply.status, 200, reply.text);
    const { model: _, ...sent } = script.requests[0]?.json ?? {};
    assert.deepEqual(sent, body);
    assert.equal(reply.headers['x-gateway-notes'], undefined);
  });
}
