/**
 * Two tenants at every route: what one does, has or is called must not be seen or changed by the other
 * (S8), and neither gets anywhere on the admin plane (S9).
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject } from '../../src/json/value.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from '../limits/limited-rig.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { clientDialects } from '../support/dialects.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

describe('S8 S9 tenants', { timeout: 500_000 }, () => {
  let rig: LimitedRig;
  let alice: LimitedKey;
  let bob: LimitedKey;
  const aliceModel = 'up-chat/alices-model';
  const bobModel = 'up-chat/bobs-model';
  before(async () => {
    rig = await startLimitedRig({
      models: { 'alices-alias': aliceModel, 'bobs-alias': bobModel },
    });
    rig.upstreams.chat.script('alices-model', replying('chat', { text: 'for Alice' }));
    rig.upstreams.chat.script('bobs-model', replying('chat', { text: 'for Bob' }));
    alice = await rig.key({
      name: 'alice-key',
      team: 'alices-team',
      tags: ['alices-tag'],
      models: ['up-chat/alices*', 'alices*'],
      rpm: 1000,
      log_content: true,
    });
    bob = await rig.key({
      name: 'bob-key',
      team: 'bobs-team',
      tags: ['bobs-tag'],
      models: ['up-chat/bobs*', 'bobs*'],
      rpm: 50,
    });
  });
  after(() => rig.stop());

  const as = (key: LimitedKey, path: string, body?: unknown, method?: string): Promise<Reply> =>
    send(rig.gateway.url + path, body, {
      headers: key.headers,
      ...(method === undefined ? {} : { method }),
    });

  /** No text of Alice in what Bob receives. */
  function assertNothingOfAlice({ text, headers }: Reply, what: string): void {
    const all = `${JSON.stringify(headers)} ${text}`
      .replaceAll(aliceModel, '')
      .replaceAll('alices-alias', '');
    assert.doesNotMatch(all, /alice/i, what);
    assert.ok(!all.includes(alice.id), what);
  }

  test('S8 a model of the other is as unknown as one that nobody has, on every route', async () => {
    for (const [theirs, nobodys] of [
      [aliceModel, 'up-chat/carols-model'],
      ['alices-alias', 'carols-alias'],
    ] as const) {
      const routes: readonly (readonly [string, (model: string) => unknown])[] = [
        ...clientDialects.flatMap((dialect) =>
          [false, true].map(
            (stream) =>
              [
                endpointOf[dialect],
                (model: string) => requestBody(dialect, { model, stream }),
              ] as const,
          ),
        ),
        ['/v1/messages/count_tokens', (model) => requestBody('messages', { model, stream: false })],
      ];
      for (const [path, body] of routes) {
        const [foreign, unknown] = [
          await as(bob, path, body(theirs)),
          await as(bob, path, body(nobodys)),
        ];
        assert.deepEqual([foreign.status, unknown.status], [404, 404], path);
        const blank = (reply: Reply): string =>
          reply.text
            .replaceAll(/req_\w+/g, '')
            .replaceAll(theirs, 'M')
            .replaceAll(nobodys, 'M');
        assert.equal(blank(foreign), blank(unknown), path);
      }
      const one = await as(bob, `/v1/models/${encodeURIComponent(theirs)}`);
      assert.equal(one.status, 404);
    }
    assert.equal(rig.upstreams.chat.script('alices-model').requests.length, 0);
  });

  test('S8 lists hold nothing of the other', async () => {
    for (const path of [
      '/v1/models',
      '/v1/models?limit=1000',
      '/v1/models?after_id=alices-alias',
    ]) {
      assertNothingOfAlice(await as(bob, path), path);
    }
  });

  test('S8 one cannot count for the team or use up the limits of the other', async () => {
    const before = await rig.admin('GET', '/api/usage?by=team');
    const { status, headers } = await send(
      rig.gateway.url + endpointOf.chat,
      {
        ...requestBody('chat', { model: bobModel, stream: false }),
        metadata: { team: 'alices-team', key: alice.id },
        user: alice.id,
      },
      {
        headers: {
          ...bob.headers,
          'x-gateway-team': 'alices-team',
          'x-team': 'alices-team',
          'x-key-id': alice.id,
          'openai-organization': 'alices-team',
        },
      },
    );
    assert.equal(status, 200);
    const row = await rig.gateway.callRow(String(headers['x-request-id']));
    assert.deepEqual([row['key'], row['team']], [bob.id, 'bobs-team']);
    const after = await rig.admin('GET', '/api/usage?by=team');
    const ofAlice = (usage: typeof after): unknown =>
      Array.isArray(usage['rows'])
        ? usage['rows'].filter(isObject).find((each) => each['team'] === 'alices-team')
        : undefined;
    assert.deepEqual(ofAlice(after), ofAlice(before));
  });

  test('S8 two keys in one request are nobody', async () => {
    const reply = await send(`${rig.gateway.url}/v1/models`, undefined, {
      headers: { ...bob.headers, 'x-api-key': alice.key },
    });
    assert.equal(reply.status, 401);
  });

  test('S9 a key of the data plane opens no route of the admin plane', async () => {
    const { paths } = await rig.admin('GET', '/api/openapi.json');
    const routes = Object.entries(isObject(paths) ? paths : {}).flatMap(([path, operations]) =>
      Object.keys(isObject(operations) ? operations : {}).map((method) => [method, path] as const),
    );
    assert.ok(routes.length > 15);
    const said = await as(alice, endpointOf.chat, {
      ...requestBody('chat', { model: aliceModel, stream: false }),
      user: 'alice-said-this',
    });
    const callId = String(said.headers['x-request-id']);
    const kept = await rig.admin('GET', `/api/calls/${callId}/content`);
    assert.match(JSON.stringify(kept), /alice-said-this/);
    const before = await rig.admin('GET', '/api/keys?limit=1000');
    const wrong = [bob.headers, { 'x-api-key': bob.key }, { authorization: '' }, {}];
    const closed = [...routes, ['get', '/metrics'] as const]
      .filter(([method, path]) => path !== '/api/session' || method === 'delete')
      .flatMap((route) => wrong.map((headers) => ({ route, headers })));
    // Some at once: a client that continues with wrong tokens waits for its 429.
    for (let at = 0; at < closed.length; at += 16) {
      const replies = closed
        .slice(at, at + 16)
        .map(async ({ route: [method, pattern], headers }) => {
          const id = pattern.startsWith('/api/calls') ? callId : alice.id;
          const path = pattern.replace('{id}', id).replace('{name}', 'alices-team');
          const reply = await send(
            rig.gateway.adminUrl + path,
            method === 'get' || method === 'delete' ? undefined : {},
            { method: method.toUpperCase(), headers, anonymous: true },
          );
          assert.match(String(reply.status), /^(401|429)$/, `${method} ${path}`);
          assert.doesNotMatch(reply.text, /alice/);
        });
      await Promise.all(replies);
    }
    const keys = (listed: typeof before): unknown =>
      Array.isArray(listed['keys'])
        ? listed['keys'].filter(isObject).map((key) => ({ ...key, last_used_at: null }))
        : undefined;
    assert.deepEqual(keys(await rig.admin('GET', '/api/keys?limit=1000')), keys(before));
    assert.deepEqual(await rig.admin('GET', `/api/calls/${callId}/content`), kept);
  });

  test('S9 the admin token opens no route of the data plane', async () => {
    for (const [path, body] of [
      [endpointOf.chat, requestBody('chat', { model: bobModel, stream: false })],
      [endpointOf.messages, requestBody('messages', { model: bobModel, stream: false })],
      ['/v1/messages/count_tokens', requestBody('messages', { model: bobModel, stream: false })],
      ['/v1/models', undefined],
      ['/v1/models/x', undefined],
    ] as const) {
      for (const headers of [
        { authorization: `Bearer ${adminToken}` },
        { 'x-api-key': adminToken },
      ]) {
        const reply = await send(rig.gateway.url + path, body, { headers, anonymous: true });
        assert.equal(reply.status, 401, path);
      }
    }
  });

  test('S9 the admin plane serves no data route, the data plane no admin route', async () => {
    for (const path of ['/api/keys', '/api/status', '/api/audit']) {
      const reply = await send(rig.gateway.url + path, undefined, {
        headers: { authorization: `Bearer ${adminToken}` },
      });
      assert.equal(reply.status, 404, path);
    }
    const reply = await send(`${rig.gateway.adminUrl}/v1/models`, undefined, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.equal(reply.status, 404);
  });
});
