/** `strict`: what a translation would drop or change is refused instead of noted (translation.md). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { listAt, textAt, type Dialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

interface WarnRow {
  readonly name: string;
  readonly more: JsonObject;
  /** What the note and the refusal name, in the client's dialect. */
  readonly field: string;
}

const tool = { name: 'f', input_schema: { type: 'object', properties: {} } };
const chatTool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };

const toMessages: readonly WarnRow[] = [
  { name: 'seed', more: { seed: 7 }, field: 'seed' },
  { name: 'frequency_penalty', more: { frequency_penalty: 0.5 }, field: 'frequency_penalty' },
  { name: 'presence_penalty', more: { presence_penalty: 0.5 }, field: 'presence_penalty' },
  { name: 'logit_bias', more: { logit_bias: { '50256': -100 } }, field: 'logit_bias' },
  { name: 'temperature above 1', more: { temperature: 1.5 }, field: 'temperature' },
  { name: 'verbosity', more: { verbosity: 'low' }, field: 'verbosity' },
  { name: 'service_tier flex', more: { service_tier: 'flex' }, field: 'service_tier' },
  {
    name: 'JSON mode without a schema',
    more: { response_format: { type: 'json_object' } },
    field: 'response_format',
  },
  {
    name: 'parallel_tool_calls without a choice',
    more: { tools: [chatTool], tool_choice: 'none', parallel_tool_calls: false },
    field: 'parallel_tool_calls',
  },
];

const toChat: readonly WarnRow[] = [
  { name: 'top_k', more: { top_k: 5 }, field: 'top_k' },
  {
    name: 'context_management',
    more: { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } },
    field: 'context_management',
  },
  {
    name: 'output_config.task_budget',
    more: { output_config: { task_budget: { type: 'tokens', total: 20_000 } } },
    field: 'output_config.task_budget',
  },
  {
    name: 'a field that nobody knows',
    more: { some_new_field: 1 },
    field: 'some_new_field',
  },
  {
    name: 'an unknown field of a message',
    more: { messages: [{ role: 'user', content: 'Hello', mood: 'good' }] },
    field: 'messages.0.mood',
  },
  {
    name: 'a schema with optional properties',
    more: {
      output_config: {
        format: { type: 'json_schema', schema: { type: 'object', properties: { a: {} } } },
      },
    },
    field: 'output_config.format',
  },
  {
    name: 'citations of a document',
    more: {
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'document',
              source: { type: 'text', media_type: 'text/plain', data: 'x' },
              citations: { enabled: true },
            },
          ],
        },
      ],
    },
    field: 'messages.0.content.0.citations',
  },
];

const directions: readonly [Dialect, Dialect, readonly WarnRow[]][] = [
  ['chat', 'messages', toMessages],
  ['messages', 'chat', toChat],
];

let rig: Rig;
let strictKey: string;

before(async () => {
  rig = await startRig({
    models: {
      'strict-messages': { targets: ['up-messages/behind-strict'], strict: true },
      'strict-chat': { targets: ['up-chat/behind-strict'], strict: true },
      'strict-both': { targets: ['up-messages/lossy', 'up-chat/native'], strict: true },
      'strict-down': { targets: ['up-chat/down', 'up-messages/lossy'], strict: true },
      'strict-many': {
        targets: [1, 2, 3, 4].map((i) => `up-messages/lossy-${i}`).concat('up-chat/fifth'),
        strict: true,
      },
      four: { targets: [1, 2, 3, 4].map((i) => `up-chat/four-${i}`) },
    },
  });
  const made = await send(
    `${rig.gateway.adminUrl}/api/keys`,
    { name: 'strict', models: ['*'], strict: true },
    { headers: { authorization: `Bearer ${adminToken}` } },
  );
  assert.equal(made.status, 201, made.text);
  strictKey = textAt(made.json, 'key');
});
after(() => rig.stop());

const down = { status: 503, body: JSON.stringify({ error: { message: 'down' } }) } as const;

const withStrictKey = (): { headers: { authorization: string } } => ({
  headers: { authorization: `Bearer ${strictKey}` },
});

/** The refusal names the field as the client's dialect does. */
function assertRefused(reply: Reply, dialect: Dialect, field: string): void {
  assert.equal(reply.status, 400, reply.text);
  const error = reply.json['error'];
  assert.ok(isObject(error));
  assert.equal(error['type'], 'invalid_request_error');
  assert.equal(reply.headers['x-should-retry'], 'false');
  if (dialect === 'messages') {
    assert.ok(textAt(error, 'message').startsWith(`${field}: `), textAt(error, 'message'));
  } else {
    assert.equal(error['code'], 'unsupported_parameter');
    assert.equal(String(error['param']).replaceAll(/\[(\d+)\]/g, '.$1'), field);
  }
}

for (const [dialect, upstream, rows] of directions) {
  for (const { name, more, field } of rows) {
    test(`A4 strict, ${dialect} to ${upstream}: ${name} is a note, under strict a 400`, async () => {
      const reply = replying(upstream, { text: 'ok' });
      const { model, script } = rig.play(upstream, reply);
      const body = requestBody(dialect, { model, stream: false, more });
      const lenient = await ask(rig, dialect, body);
      assert.equal(lenient.status, 200, lenient.text);
      const notes = String(lenient.headers['x-gateway-notes'] ?? '').split('; ');
      assert.ok(
        notes.some((note) => note.startsWith(`${field}: `)),
        `${field} is not in ${notes.join('; ')}`,
      );
      assertRefused(await ask(rig, dialect, body, withStrictKey()), dialect, field);
      const route = rig.upstreams[upstream].script('behind-strict', reply);
      const routed = { ...body, model: `strict-${upstream}` };
      assertRefused(await ask(rig, dialect, routed), dialect, field);
      assert.equal(script.requests.length, 1);
      assert.equal(route.requests.length, 0);
    });

    test(`A4 strict, ${dialect} to ${dialect}: ${name} is relayed as it stands`, async () => {
      const { model, script } = rig.play(dialect, replying(dialect, { text: 'ok' }));
      const body = requestBody(dialect, { model, stream: false, more });
      const reply = await ask(rig, dialect, body, withStrictKey());
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['x-gateway-mode'], 'relay');
      assert.deepEqual(script.requests[0]?.json, { ...body, model: model.split('/')[1] });
    });
  }

  test(`A4 strict, ${dialect} to ${upstream}: what loses nothing is served, streamed and not`, async () => {
    for (const stream of [false, true]) {
      const { model } = rig.play(upstream, replying(upstream, { text: 'ok' }));
      const tools = dialect === 'chat' ? [chatTool] : [tool];
      const body = requestBody(dialect, { model, stream, more: { tools } });
      const reply = await ask(rig, dialect, body, withStrictKey());
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['x-gateway-notes'], undefined);
    }
  });
}

test('A4 strict: what the answer loses stays a note', async () => {
  const call = { id: 'c1', name: 'f', arguments: '[1]' };
  const { model } = rig.play('chat', replying('chat', { calls: [call] }));
  const body = requestBody('messages', { model, stream: false, more: { tools: [tool] } });
  const reply = await ask(rig, 'messages', body, withStrictKey());
  assert.equal(reply.status, 200, reply.text);
  assert.match(String(reply.headers['x-gateway-notes']), /wrapped/);
});

test('A4 D5 D13 strict holds for relay: reasoning of another provider is omitted with a note, or refused', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const question = { role: 'user', content: 'Hello' };
  const first = rig.play('chat', replying('chat', { reasoning: 'Hm.', text: 'Hi.' }));
  const more = { messages: [question], thinking, max_tokens: 2000 };
  const one = await ask(
    rig,
    'messages',
    requestBody('messages', { model: first.model, stream: false, more }),
  );
  const content = one.json['content'];
  assert.match(JSON.stringify(content), /"thinking"/);
  const { model, script } = rig.play('messages', replying('messages', { text: 'ok' }));
  const history = [question, { role: 'assistant', content: content ?? [] }, question];
  const body = requestBody('messages', { model, stream: false, more: { messages: history } });
  const two = await ask(rig, 'messages', body);
  assert.equal(two.status, 200, two.text);
  assert.equal(two.headers['x-gateway-mode'], 'relay');
  assert.match(String(two.headers['x-gateway-notes']), /^messages\.1\.content\.0: dropped/);
  assert.doesNotMatch(JSON.stringify(script.requests[0]?.json), /"thinking"/);
  assertRefused(
    await ask(rig, 'messages', body, withStrictKey()),
    'messages',
    'messages.1.content.0',
  );
  assert.equal(script.requests.length, 1);
});

test('A4 R3 strict: a target that would lose something is passed over for one that relays', async () => {
  const lossy = rig.upstreams.messages.script('lossy', replying('messages', { text: 'ok' }));
  const native = rig.upstreams.chat.script('native', replying('chat', { text: 'ok' }));
  const body = requestBody('chat', { model: 'strict-both', stream: false, more: { seed: 7 } });
  const reply = await ask(rig, 'chat', body);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-target'], 'up-chat/native');
  assert.equal(native.requests[0]?.json['seed'], 7);
  assert.equal(lossy.requests.length, 0);
});

test('A4 R3 strict: a target that is down for now reports more than the refusal of another', async () => {
  rig.upstreams.messages.script('lossy', replying('messages', { text: 'ok' }));
  rig.upstreams.chat.script('down', down);
  const body = requestBody('chat', { model: 'strict-down', stream: false, more: { seed: 7 } });
  const reply = await ask(rig, 'chat', body);
  assert.notEqual(reply.status, 400, reply.text);
  assert.ok(reply.status >= 500);
});

test('G12 strict: refused targets are no tries, and three failed tries are all', async () => {
  rig.upstreams.chat.script('fifth', replying('chat', { text: 'ok' }));
  const body = requestBody('chat', { model: 'strict-many', stream: false, more: { seed: 7 } });
  const reply = await ask(rig, 'chat', body);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-target'], 'up-chat/fifth');

  const scripts = [1, 2, 3, 4].map((i) => rig.upstreams.chat.script(`four-${i}`, down));
  const failed = await ask(rig, 'chat', requestBody('chat', { model: 'four', stream: false }));
  assert.ok(failed.status >= 500, failed.text);
  assert.deepEqual(
    scripts.map((script) => script.requests.length),
    [1, 1, 1, 0],
  );
});

test('A7 strict: a count of tokens is given nevertheless', async () => {
  const { model } = rig.play('chat', replying('chat', { text: 'ok' }));
  const body = { model, messages: [{ role: 'user', content: 'Hello' }], top_k: 5 };
  const reply = await send(`${rig.gateway.url}/v1/messages/count_tokens`, body, withStrictKey());
  assert.equal(reply.status, 200, reply.text);
});

test('keys list shows which keys are strict', async () => {
  const reply = await send(`${rig.gateway.adminUrl}/api/keys`, undefined, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  assert.deepEqual(
    listAt(reply.json, 'keys').map((key) => [key['name'], key['strict']]),
    [
      ['MODEL_GATEWAY_KEY', false],
      ['strict', true],
    ],
  );
});
