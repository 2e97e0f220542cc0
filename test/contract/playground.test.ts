/** Calls of the dashboard's playground: the path of every call, by the door of the admin plane (issue 8.1). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { assertAnyStream } from '../support/legality.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';

describe('issue 8.1 playground', { timeout: 500_000 }, () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig();
  });
  after(() => rig.stop());

  const play = (
    dialect: ClientDialect,
    body: unknown,
    { query = '', token = adminToken }: { readonly query?: string; readonly token?: string } = {},
  ): Promise<Reply> =>
    send(
      `${rig.gateway.adminUrl}/api/playground${endpointOf[dialect].slice('/v1'.length)}${query}`,
      body,
      {
        headers: { authorization: `Bearer ${token}` },
      },
    );

  const makeKey = async (input: object): Promise<{ readonly id: string; readonly key: string }> => {
    const reply = await send(`${rig.gateway.adminUrl}/api/keys`, input, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.equal(reply.status, 201, reply.text);
    return { id: String(reply.json['id']), key: String(reply.json['key']) };
  };

  for (const dialect of clientDialects) {
    for (const upstream of clientDialects) {
      for (const stream of [false, true]) {
        test(`${dialect} on ${upstream}, ${stream ? 'streamed' : 'whole'}: answered and in the ledger`, async () => {
          const { model, script } = rig.play(upstream, replying(upstream, { text: 'Played.' }));
          const body = requestBody(dialect, { model, stream });
          const reply = await play(dialect, body);
          assert.equal(reply.status, 200, reply.text);
          assert.ok(reply.complete);
          assert.match(reply.text, /Play/);
          if (stream)
            assertAnyStream(
              { dialect, origin: dialect === upstream ? 'relayed' : 'own' },
              body,
              reply.text,
            );
          const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
          assert.equal(row['key'], 'playground');
          assert.equal(row['model'], model);
          assert.equal(row['outcome'], 'ok');
          // Nothing of the admin plane goes upstream.
          const sent = (await script.request(0)).headerLines
            .map((line) => line.join(': '))
            .join('\n');
          assert.ok(!sent.includes(adminToken), sent);
          assert.doesNotMatch(sent, /cookie|playground|csrf/i);
        });
      }
    }
  }

  test('T6 an Idempotency-Key keeps nothing: there is no secret to seal it with', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Played.' }));
    const headers = { authorization: `Bearer ${adminToken}`, 'idempotency-key': 'again' };
    const address = `${rig.gateway.adminUrl}/api/playground/chat/completions`;
    const body = requestBody('chat', { model, stream: false });
    for (let i = 0; i < 2; i++) {
      const reply = await send(address, body, { headers });
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['idempotent-replayed'], undefined);
    }
    assert.equal(script.requests.length, 2);
  });

  test('as a key: its scope, its limits, its row', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Played.' }));
    const { id } = await makeKey({ name: 'narrow', models: [model], rpm: 1 });
    const query = `?key=${id}`;
    const body = requestBody('chat', { model, stream: false });
    const elsewhere = requestBody('chat', { model: 'local/tiny', stream: false });
    assert.equal((await play('chat', elsewhere, { query })).status, 404);
    const first = await play('chat', body, { query });
    assert.equal(first.status, 200, first.text);
    assert.equal((await rig.gateway.callRow(String(first.headers['x-request-id'])))['key'], id);
    assert.equal((await play('chat', body, { query })).status, 429);
  });

  test('as a key that is revoked, or that there is not: 404 with what is wrong', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Played.' }));
    const { id } = await makeKey({ name: 'gone', models: ['*'] });
    await send(`${rig.gateway.adminUrl}/api/keys/${id}/revoke`, undefined, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminToken}` },
    });
    for (const key of [id, 'nobodys1', '']) {
      const body = requestBody('chat', { model, stream: false });
      const reply = await play('chat', body, { query: `?key=${key}` });
      assert.equal(reply.status, 404, key);
      assert.match(reply.text, /no active key/);
    }
    assert.equal(script.requests.length, 0);
  });

  test('S9 a key of the data plane and nobody get 401, and no call is made', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Played.' }));
    const body = requestBody('chat', { model, stream: false });
    assert.equal((await play('chat', body, { token: clientKey })).status, 401);
    assert.equal((await play('chat', body, { token: '' })).status, 401);
    assert.equal(script.requests.length, 0);
  });

  test('E6 an unknown model and a bad body are answered as the endpoint answers them', async () => {
    const unknown = await play(
      'messages',
      requestBody('messages', { model: 'no-such', stream: false }),
    );
    assert.equal(unknown.status, 404);
    assert.equal(unknown.json['type'], 'error');
    const bad = await play('chat', '{"model":');
    assert.equal(bad.status, 400);
    assert.ok('error' in bad.json);
  });

  test('other addresses of the data plane are not behind it', async () => {
    const reply = await send(`${rig.gateway.adminUrl}/api/playground/models`, undefined, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.equal(reply.status, 403);
  });
});
