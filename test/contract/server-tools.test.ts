/** `server_tools`, for a provider and for a route: who may use the search that a provider runs (A10). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import type { Json, JsonObject } from '../../src/json/value.ts';
import { clientKey } from '../support/keys.ts';
import { listAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesFrame,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig({
    models: {
      searching: { targets: ['up-messages/searching'], server_tools: true },
      'searching-for-responses': { targets: ['up-messages/found'], server_tools: true },
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

test('A10 settings of a search that the provider has not are noted, unless they say what it does anyway', async () => {
  const script = rig.upstreams.messages.script('found', replying('messages', { text: 'ok' }));
  const usual = { type: 'web_search', external_web_access: true, search_content_types: ['text'] };
  const set = {
    ...usual,
    external_web_access: false,
    filters: { allowed_domains: ['a.example'], blocked_domains: ['b.example'] },
  };
  const notes = [];
  for (const tool of [usual, set]) {
    const asked = { model: 'searching-for-responses', stream: false, more: { tools: [tool] } };
    const reply = await ask(rig, 'responses', requestBody('responses', asked));
    assert.equal(reply.status, 200, reply.text);
    notes.push(reply.headers['x-gateway-notes']);
  }
  const sent = script.requests.map(({ json }) => listAt(json, 'tools')[0]);
  const search = { type: 'web_search_20250305', name: 'web_search' };
  assert.deepEqual(sent, [search, { ...search, allowed_domains: ['a.example'] }]);
  const [none, some = ''] = notes;
  assert.equal(none, undefined);
  assert.match(String(some), /external_web_access: .*filters\.blocked_domains: /);
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

/** A search that the provider ran, and an answer from it. @param content of the result */
const searched = (content: Json): string =>
  [
    messageStart(),
    blockStart(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
    blockDelta(0, { type: 'input_json_delta', partial_json: '{"query":"weather ' }),
    blockDelta(0, { type: 'input_json_delta', partial_json: 'Paris"}' }),
    blockStop(0),
    blockStart(1, { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content }),
    blockStop(1),
    ...textBlock(2, 'Sunny.'),
    messageDelta('end_turn'),
    messageStop,
  ]
    .map(messagesFrame)
    .join('');

const found = [
  { type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'e' },
];

for (const type of ['web_search', 'web_search_preview'] as const) {
  test(`§5.2 a search of a messages upstream comes back as a web_search_call (${type})`, async () => {
    rig.upstreams.messages.script('found', { body: searched(found), framing: 'chunked' });
    const client = new OpenAI({
      apiKey: clientKey,
      baseURL: `${rig.gateway.url}/v1`,
      maxRetries: 0,
    });
    const asked = { model: 'searching-for-responses', input: 'Weather?', tools: [{ type }] };
    const { data: document, response } = await client.responses.create(asked).withResponse();
    assert.equal(response.headers.get('x-gateway-notes'), null);
    const types: string[] = [];
    const stream = client.responses.stream(asked);
    stream.on('event', ({ type: event }) => void types.push(event));
    for (const answer of [document, await stream.finalResponse()]) {
      const [search, message] = answer.output;
      assert.ok(search?.type === 'web_search_call');
      assert.match(search.id, /^ws_/);
      assert.equal(search.status, 'completed');
      const query = 'weather Paris';
      const sources = [{ type: 'url', url: 'https://a.example' }];
      assert.deepEqual(search.action, { type: 'search', query, queries: [query], sources });
      assert.equal(message?.type, 'message');
      assert.equal(answer.output_text, 'Sunny.');
    }
    const steps = types.filter((event) => event.startsWith('response.web_search_call.'));
    assert.deepEqual(steps, [
      'response.web_search_call.in_progress',
      'response.web_search_call.searching',
      'response.web_search_call.completed',
    ]);
  });
}

test('§5.2 a search that failed is no completed one; the addresses that another found are known in the next turn', async () => {
  const failed = { type: 'web_search_tool_result_error', error_code: 'unavailable' };
  const asked = {
    model: 'searching-for-responses',
    input: 'Weather?',
    tools: [{ type: 'web_search' }],
  };
  const answered = async (content: Json): Promise<JsonObject> => {
    rig.upstreams.messages.script('found', { body: searched(content), framing: 'chunked' });
    return (await ask(rig, 'responses', { ...asked, stream: false })).json;
  };
  const [none] = listAt(await answered(failed), 'output');
  assert.equal(none?.['status'], 'failed');
  const script = rig.upstreams.messages.script('found', {
    body: searched(found),
    framing: 'chunked',
  });
  const { json } = await ask(rig, 'responses', asked);
  await ask(rig, 'responses', { ...asked, previous_response_id: json['id'] ?? null });
  assert.match(
    script.requests[1]?.body.toString() ?? '',
    /\[web_search \\"weather Paris\\" → https:\/\/a\.example\]/,
  );
});
