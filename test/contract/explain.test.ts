/** Issue 19.5: what a request would do, by the code that does it, with nothing sent, reserved or recorded. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { httpAdminClient } from '../../src/cli/admin-client.ts';
import { explainCommand } from '../../src/cli/commands/explain.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { Secret } from '../../src/core/secret.ts';
import { explainRoutes } from '../../src/admin/explain.ts';
import { rolesFor } from '../../src/admin/people/roles.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { allDialects, listAt, objectAt, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { errorIn, replying } from '../upstream/reply.ts';

const secret = 'upstream-secret-0123456789';
const price = { input: 1, output: 2 };

describe('issue 19.5 explain', { timeout: 300_000 }, () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig((upstreams) => ({
      providers: {
        keyed: {
          dialect: 'openai-chat',
          base_url: `http://127.0.0.1:${upstreams.chat.port}/v1`,
          api_key: secret,
          headers: { 'x-team': 'hidden-value' },
        },
      },
      models: {
        pair: { targets: ['keyed/one', 'up-messages/two'], order: 'listed' },
        cheap: { targets: ['up-messages/two', 'keyed/three'], order: 'cheapest' },
        cooling: { targets: ['keyed/cool', 'up-messages/cool'] },
        exact: { targets: ['keyed/one', 'up-messages/two'], strict: true },
      },
      prices: { 'keyed/*': price, 'up-messages/*': { input: 3, output: 4 } },
    }));
  });
  after(() => rig.stop());

  const admin = (path: string, body: unknown): Promise<Reply> =>
    send(`${rig.gateway.adminUrl}${path}`, body, {
      headers: { authorization: `Bearer ${adminToken}` },
    });

  const explain = async (dialect: AnyDialect, body: unknown, key?: string): Promise<JsonObject> => {
    const endpoint = endpointOf[dialect].slice('/v1/'.length);
    const query = new URLSearchParams({ endpoint, ...(key === undefined ? {} : { key }) });
    const reply = await admin(`/api/explain?${query}`, body);
    assert.equal(reply.status, 200, reply.text);
    assert.ok(
      !reply.text.includes(secret) && !reply.text.includes('hidden-value'),
      'a secret is shown',
    );
    const described = explainRoutes()[0]?.about?.answer.safeParse(reply.json);
    assert.ok(described?.success === true, String(described?.error?.message));
    return reply.json;
  };

  const targetsOf = (explained: JsonObject): readonly JsonObject[] =>
    Array.isArray(explained['targets']) ? explained['targets'] : assert.fail();

  for (const dialect of allDialects) {
    for (const upstream of allDialects) {
      for (const stream of [false, true]) {
        test(`${dialect} on ${upstream}, stream ${stream}: the body, the notes and the mode are those of the call`, async () => {
          const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
          const more = { temperature: 0.5, unheard_of: { a: 1 } };
          const body = requestBody(dialect, { model, stream, more });
          const explained = await explain(dialect, body);
          assert.equal(script.requests.length, 0, 'nothing is sent');
          const [target, ...others] = targetsOf(explained);
          assert.ok(target !== undefined && others.length === 0);
          assert.equal(target['place'], 1);
          assert.equal(target['health'], 'unknown');

          const reply = await ask(rig, dialect, body);
          assert.equal(reply.status, 200, reply.text);
          const sent = await script.request(0);
          const request = target['request'] as JsonObject;
          assert.deepEqual(request['body'], sent.json);
          assert.equal(request['method'], sent.method);
          assert.ok(String(request['url']).endsWith(sent.path));
          assert.equal(target['mode'], reply.headers['x-gateway-mode']);
          const notes = target['notes'] as readonly JsonObject[];
          const told = String(reply.headers['x-gateway-notes'] ?? '');
          assert.equal(notes.length, told === '' ? 0 : told.split('; ').length);
          for (const { path, why } of notes) {
            assert.ok(told.includes(`${String(path)}: `) && told.includes(String(why)), told);
          }
        });
      }
    }
  }

  test('targets stand in the order of tries, with price and health; secrets are masked', async () => {
    rig.upstreams.chat.script('one', errorIn('chat', 500, 'broken'));
    rig.upstreams.messages.script('two', replying('messages', { text: 'Hello' }));
    const body = requestBody('chat', { model: 'pair', stream: false });
    const [first, second] = targetsOf(await explain('chat', body));
    assert.deepEqual([first?.['target'], first?.['mode']], ['keyed/one', 'relay']);
    assert.deepEqual([second?.['target'], second?.['mode']], ['up-messages/two', 'translate']);
    assert.match(String(first?.['why']), /order listed/);
    assert.equal(objectAt(first ?? {}, 'price')['input'], 1);
    const headers = objectAt(objectAt(first ?? {}, 'request'), 'headers');
    assert.equal(headers['authorization'], '[masked]');
    assert.equal(headers['x-team'], '[masked]');
    assert.equal(headers['content-type'], 'application/json');

    for (let i = 0; i < 6; i += 1) await ask(rig, 'chat', body);
    const [now, left] = targetsOf(await explain('chat', body));
    assert.equal(now?.['target'], 'up-messages/two', 'the broken one is out');
    assert.equal(left?.['target'], 'keyed/one');
    assert.equal(left?.['place'], null);
    assert.match(String(left?.['health']), /^down: until /);
  });

  test('a strict route shows which target refuses what, in the words of the client', async () => {
    const body = requestBody('chat', {
      model: 'exact',
      stream: false,
      more: { logit_bias: { 1: 2 } },
    });
    const refusals = targetsOf(await explain('chat', body)).filter(
      (each) => each['refused'] !== null,
    );
    const [refused] = refusals;
    assert.equal(refused?.['target'], 'up-messages/two');
    assert.equal(refused['request'], null);
    const { status, body: told } = refused['refused'] as JsonObject;
    assert.equal(status, 400);
    assert.match(JSON.stringify(told), /Strict: .*"logit_bias"/);
  });

  test('limits and budgets are told and not drawn from; the cost is what is reserved', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const made = await admin('/api/keys', {
      name: 'limited',
      models: ['*'],
      limits: [
        { kind: 'requests', amount: 2 },
        { kind: 'tokens', amount: 100_000 },
      ],
      budgets: [{ usd: 1, per: 'month' }],
    });
    assert.equal(made.status, 201, made.text);
    const id = String(made.json['id']);
    const more = { max_tokens: 1000 };
    const body = requestBody('chat', { model: 'pair', stream: false, more });
    for (let i = 0; i < 5; i += 1) {
      const explained = await explain('chat', body, id);
      assert.equal(explained['refused'], null);
      const limits = explained['limits'] as readonly JsonObject[];
      assert.deepEqual(
        limits.map(({ kind, takes, left }) => [kind, typeof takes, left]),
        [
          ['requests', 'number', null],
          ['tokens', 'number', null],
          ['budget', 'string', '1'],
        ],
      );
      const { highest_usd: highest } = explained['cost'] as JsonObject;
      assert.equal(limits[2]?.['takes'], highest);
      // 1,000 tokens of output at $4 a million, by the more expensive of the two targets, and the prompt.
      assert.ok(Number(highest) > 0.004 && Number(highest) < 0.005, String(highest));
      const { tokens, counted_by: by } = explained['prompt'] as JsonObject;
      assert.ok(Number(tokens) > 0);
      assert.ok(by === 'tokenizer' || by === 'estimate');
    }
    const spent = await explain('chat', requestBody('chat', { model, stream: false }), id);
    assert.notEqual(spent['refused'], null, 'its target has no price');
  });

  test('a budget that is too small refuses, in the words of the call', async () => {
    const made = await admin('/api/keys', {
      name: 'poor',
      models: ['*'],
      shrink: false,
      budgets: [{ usd: 0.001, per: 'month' }],
    });
    assert.equal(made.status, 201, made.text);
    const more = { max_tokens: 100_000 };
    const body = requestBody('chat', { model: 'pair', stream: false, more });
    const { refused } = await explain('chat', body, String(made.json['id']));
    const called = await ask(rig, 'chat', body, {
      headers: { authorization: `Bearer ${String(made.json['key'])}` },
    });
    assert.equal((refused as JsonObject)['status'], called.status);
    assert.deepEqual((refused as JsonObject)['body'], called.json);
  });

  test('what the endpoint refuses is answered as the endpoint does', async () => {
    for (const dialect of allDialects) {
      const endpoint = endpointOf[dialect].slice('/v1/'.length);
      const body = requestBody(dialect, { model: 'no-such-model', stream: false });
      const explained = await admin(`/api/explain?endpoint=${endpoint}`, body);
      const called = await ask(rig, dialect, body);
      assert.equal(explained.status, called.status);
      assert.deepEqual(explained.json['error'], called.json['error']);
    }
    assert.equal((await admin('/api/explain?endpoint=embeddings', {})).status, 400);
    assert.equal((await admin('/api/explain?key=no-such-key', {})).status, 404);
    const url = `${rig.gateway.adminUrl}/api/explain`;
    assert.equal((await send(url, {}, { headers: {} })).status, 401);
  });

  test('the expected cost is that of an answer of the usual length', async () => {
    const { model } = rig.play('messages', replying('messages', { text: 'Hello' }));
    const body = requestBody('messages', { model, stream: false });
    const before = (await explain('messages', body))['cost'] as JsonObject;
    assert.equal(before['expected_usd'], null);
    await ask(rig, 'messages', body);
    await rig.gateway.callRows(model, 1);
    const { cost, prompt } = await explain('messages', body);
    const { expected_usd: usd, expected_output_tokens: output } = cost as JsonObject;
    const tokens = Number((prompt as JsonObject)['tokens']);
    assert.ok(Math.abs(Number(usd) - (tokens * 3 + Number(output) * 4) / 1e6) < 1e-9, String(usd));
  });

  test('the expected cost is that of the target that is tried first, not of the one that is listed first', async () => {
    rig.upstreams.chat.script('three', replying('chat', { text: 'Hello' }));
    const body = requestBody('chat', { model: 'cheap', stream: false });
    await ask(rig, 'chat', body);
    await rig.gateway.callRows('cheap', 1);
    const { cost, prompt, targets = null } = await explain('chat', body);
    assert.equal(listAt({ targets }, 'targets')[0]?.['target'], 'keyed/three');
    const { expected_usd: usd, expected_output_tokens: output } = cost as JsonObject;
    const tokens = Number((prompt as JsonObject)['tokens']);
    assert.ok(Math.abs(Number(usd) - (tokens + Number(output) * 2) / 1e6) < 1e-9, String(usd));
  });

  test('where all targets cool down, the call is refused, and none is said to be ready', async () => {
    const limited = errorIn('chat', 429, 'slow down', { 'retry-after': '30' });
    rig.upstreams.chat.script('cool', limited);
    rig.upstreams.messages.script(
      'cool',
      errorIn('messages', 429, 'slow', { 'retry-after': '30' }),
    );
    const body = requestBody('chat', { model: 'cooling', stream: false });
    assert.equal((await ask(rig, 'chat', body)).status, 429);
    const explained = await explain('chat', body);
    assert.equal(objectAt(explained, 'refused')['status'], 429);
    for (const { place, why } of targetsOf(explained)) {
      assert.equal(place, null);
      assert.equal(why, 'skipped: no target of the route accepts calls now');
    }
  });

  test('no highest cost is told of what has no bound', async () => {
    const bounded = requestBody('chat', { model: 'cheap', stream: false });
    const more = { mcp_servers: [{ type: 'url', name: 'm', url: 'https://example.com/' }] };
    const { cost } = await explain('chat', bounded);
    assert.notEqual((cost as JsonObject)['highest_usd'], null);
    const unbounded = await explain('chat', { ...bounded, ...more });
    assert.equal((unbounded['cost'] as JsonObject)['highest_usd'], null);
  });

  test('a key for certain addresses is explained, whatever the address of the admin', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const made = await admin('/api/keys', { name: 'far', models: ['*'], cidrs: ['192.0.2.0/24'] });
    assert.equal(made.status, 201, made.text);
    const body = requestBody('chat', { model, stream: false });
    const explained = await explain('chat', body, String(made.json['id']));
    assert.deepEqual([explained['refused'], explained['key']], [null, made.json['id']]);
    const headers = { authorization: `Bearer ${String(made.json['key'])}` };
    assert.equal((await ask(rig, 'chat', body, { headers })).status, 403);
  });

  test('a long body is shown whole, and long numbers with all their digits', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const content = 'x'.repeat(1_200_000);
    const text = `{"model":"${model}","messages":[{"role":"user","content":"${content}"}],"number":12345678901234567890}`;
    const reply = await admin('/api/explain', text);
    assert.equal(reply.status, 200);
    assert.ok(reply.text.includes('"number":12345678901234567890'));
    await send(`${rig.gateway.url}${endpointOf.chat}`, text);
    const { body } = await script.request(0);
    const [target = {}] = listAt(reply.json, 'targets');
    const shown = JSON.stringify(objectAt(objectAt(target, 'request'), 'body'));
    assert.ok(
      shown === JSON.stringify(tryParseObject(body.toString())),
      'it is the body that is sent',
    );
  });

  test('S8 stored content of a key is in the bodies, so only those who read content may explain', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Private answer.' }));
    const headers = { authorization: `Bearer ${clientKey}` };
    const asked = { model, input: 'Private question?' };
    const { json, ...first } = await send(`${rig.gateway.url}/v1/responses`, asked, { headers });
    const { key } = await rig.gateway.callRow(String(first.headers['x-request-id']));
    const body = { model, input: 'And?', previous_response_id: json['id'] };
    const explained = await explain('responses', body, String(key));
    const [target] = targetsOf(explained);
    assert.match(JSON.stringify(target?.['request']), /Private question\?.*Private answer\./);
    const readers = rolesFor('GET', '/api/calls/:id/content');
    assert.deepEqual(rolesFor('POST', '/api/explain'), readers);
  });

  test('the command reports the same, and sends nothing', async () => {
    const { model, script } = rig.play('messages', replying('messages', { text: 'Hello' }));
    const directory = temporaryFolder('explain');
    const more = { logit_bias: { 1: 2 } };
    writeFileSync(
      join(directory, 'request.json'),
      JSON.stringify(requestBody('chat', { model, stream: false, more })),
    );
    const address = rig.gateway.adminUrl;
    const admin = httpAdminClient({ address, token: new Secret(adminToken) });
    const run = async (...args: readonly string[]) => {
      let out = '';
      let err = '';
      const code = await explainCommand({ cwd: directory }).run(args, {
        stdout: (text) => void (out += text),
        stderr: (text) => void (err += text),
        env: {},
        admin: async () => admin,
        gatewayUrl: async () => undefined,
      });
      return { code, out, err };
    };
    const short = await run('request.json');
    assert.deepEqual([short.code, short.err], [0, '']);
    assert.match(short.out, new RegExp(`1\\. ${model}\n   why      the only target of the route`));
    assert.match(
      short.out,
      /request {2}translate, POST http.*\/messages\n {3}note {5}logit_bias: dropped/,
    );
    assert.ok(!short.out.includes('"messages"'));
    assert.match((await run('request.json', '--body')).out, /"max_tokens": \d+/);
    const whole = tryParseObject((await run('request.json', '--json')).out);
    assert.equal(whole?.['model'], model);
    assert.equal((await run('nothing.json')).code, 2);
    assert.match(
      (await run('request.json', '--endpoint', 'x')).err,
      /--endpoint: There is no such/,
    );
    assert.equal(script.requests.length, 0);
  });
});
