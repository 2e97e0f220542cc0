/** `server_tools`, for a provider and for a route: who may use the search that a provider runs (A10). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig({
    models: {
      searching: { targets: ['up-messages/searching'], server_tools: true },
      still: { targets: ['up-messages/still'], server_tools: false },
    },
  });
});
after(() => rig.stop());

const more = { web_search_options: {} };

test('A10 server_tools of a route: the search of the provider is asked for', async () => {
  const script = rig.upstreams.messages.script('searching', replying('messages', { text: 'ok' }));
  for (const stream of [false, true]) {
    const body = requestBody('chat', { model: 'searching', stream, more });
    const reply = await ask(rig, 'chat', body);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(script.requests.at(-1)?.json['tools'], [
      { type: 'web_search_20250305', name: 'web_search' },
    ]);
  }
});

test('A10 without it, the option is refused by its name and nothing is asked', async () => {
  const script = rig.upstreams.messages.script('still', replying('messages', { text: 'ok' }));
  const reply = await ask(
    rig,
    'chat',
    requestBody('chat', { model: 'still', stream: false, more }),
  );
  assert.equal(reply.status, 400);
  assert.match(reply.text, /"param":"web_search_options"/);
  assert.match(reply.text, /server_tools: true/, 'C6');
  assert.equal(reply.headers['x-gateway-attempts'], '0', 'C6 no model was asked');
  assert.equal(script.requests.length, 0);
});

test('A10 a messages client learns which tool the model does not have', async () => {
  const { model, script } = rig.play('chat', replying('chat', { text: 'ok' }));
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
  const reply = await ask(
    rig,
    'messages',
    requestBody('messages', {
      model,
      stream: false,
      more: { tools, tool_choice: { type: 'tool', name: 'web_search' } },
    }),
  );
  assert.equal(reply.status, 400);
  assert.match(reply.text, /"message":"tools\.0\.type: .*server_tools: true/, 'C6');
  assert.equal(reply.headers['x-gateway-attempts'], '0', 'C6 no model was asked');
  assert.equal(script.requests.length, 0);
});
