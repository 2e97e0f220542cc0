/** Revocation: refused at once, running answers cut, everything settled (S6, K8). */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { begun, legalFrames } from '../faults/stream-pieces.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from '../limits/limited-rig.ts';
import { send, type Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import { until } from '../support/postgres-store.ts';
import { type ClientDialect, clientDialects, upstreamDialects } from '../support/dialects.ts';
import { endingOf, objectAt, streamError } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';

describe('S6 K8 revocation', { timeout: 500_000 }, () => {
  let rig: LimitedRig;
  before(async () => {
    rig = await startLimitedRig();
  });
  after(() => rig.stop());

  interface Running {
    readonly reply: Promise<Reply>;
    readonly began: Promise<void>;
  }

  function start(key: LimitedKey, dialect: ClientDialect, body: JsonObject): Running {
    const began = Promise.withResolvers<void>();
    const reply = send(rig.gateway.url + endpointOf[dialect], body, {
      headers: key.headers,
      onData: () => began.resolve(),
    });
    return { reply, began: began.promise };
  }

  const revoke = (key: LimitedKey): Promise<JsonObject> =>
    rig.admin('POST', `/api/keys/${key.id}/revoke`);

  for (const dialect of clientDialects) {
    for (const upstream of upstreamDialects) {
      test(`a ${dialect} stream from ${upstream} is cut, with its error, and settled`, async () => {
        const key = await rig.key({ concurrent: 1, budget: 5, per: 'day' });
        const { model, script } = rig.play(upstream, {
          body: [begun(upstream), new Promise(() => {})],
        });
        const body = requestBody(dialect, { model, stream: true });
        const { reply, began } = start(key, dialect, body);
        await began;
        await revoke(key);
        const { text, headers } = await reply;
        assert.equal(endingOf(dialect, text), 'error');
        assert.match(JSON.stringify(streamError(text)), /revoked/);
        assert.equal(await (await script.request(0)).closed, 'gateway');
        const row = await rig.gateway.callRow(String(headers['x-request-id']));
        assert.deepEqual([row['outcome'], row['error']], ['failed', 'unauthenticated']);
        assert.notEqual(objectAt(row, 'charged')['output_tokens'], null);
        await rig.gateway.noneLeft();
      });
    }

    test(`a ${dialect} document that is waited for is a 401`, async () => {
      const key = await rig.key();
      const { model, script } = rig.play(dialect, { body: [new Promise(() => {})] });
      const { reply } = start(key, dialect, requestBody(dialect, { model, stream: false }));
      const asked = await script.request(0);
      await revoke(key);
      const { status, json } = await reply;
      assert.equal(status, 401);
      assertErrorBody(dialect, json);
      assert.equal(await asked.closed, 'gateway');
      await rig.gateway.noneLeft();
    });
  }

  test('new calls are refused at once, on every endpoint, and for ever', async () => {
    const key = await rig.key();
    const { model } = rig.play('chat', { body: legalFrames('chat').join('') });
    await revoke(key);
    for (let round = 0; round < 2; round++) {
      for (const [path, body] of [
        [endpointOf.chat, requestBody('chat', { model, stream: false })],
        [endpointOf.messages, requestBody('messages', { model, stream: true })],
        ['/v1/messages/count_tokens', requestBody('messages', { model, stream: false })],
        ['/v1/models', undefined],
        [`/v1/models/${encodeURIComponent(model)}`, undefined],
      ] as const) {
        const reply = await send(rig.gateway.url + path, body, { headers: key.headers });
        assert.equal(reply.status, 401, path);
      }
      await revoke(key);
    }
  });

  test('a call whose body arrives after the revocation does not begin', async () => {
    const key = await rig.key();
    const { model, script } = rig.play('chat', { body: legalFrames('chat').join('') });
    const body = JSON.stringify(requestBody('chat', { model, stream: false }));
    const { request } = await import('node:http');
    const outgoing = request(rig.gateway.url + endpointOf.chat, {
      method: 'POST',
      agent: false,
      headers: {
        ...key.headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        expect: '100-continue',
      },
    });
    const continued = new Promise<void>((resolve) => outgoing.on('continue', resolve));
    const answered = new Promise<number>((resolve, reject) => {
      outgoing.on('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      outgoing.on('error', reject);
    });
    outgoing.flushHeaders();
    // The gateway has looked at the key by then.
    await continued;
    await revoke(key);
    outgoing.end(body);
    assert.equal(await answered, 401);
    assert.equal(script.requests.length, 0);
  });

  test('S5 rotation and an expiry cut nothing that runs', async () => {
    const key = await rig.key();
    const gate = Promise.withResolvers<void>();
    const frames = legalFrames('chat');
    const { model } = rig.play('chat', {
      body: [frames.slice(0, 2).join(''), gate.promise, frames.slice(2).join('')],
    });
    const { reply, began } = start(key, 'chat', requestBody('chat', { model, stream: true }));
    await began;
    await rig.admin('POST', `/api/keys/${key.id}/rotate`, { overlap: '0' });
    await rig.admin('PATCH', `/api/keys/${key.id}`, {
      models: ['nothing'],
      // Later than this takes to get there on a busy machine: an expiry in the past is refused.
      expires_at: new Date(Date.now() + 15_000).toISOString(),
    });
    await until(async () => {
      return (await rig.admin('GET', `/api/keys/${key.id}`))['state'] === 'expired';
    }, 'it has expired');
    // Several looks of the sweeper.
    await new Promise((resolve) => setTimeout(resolve, 400));
    gate.resolve();
    assert.equal(endingOf('chat', (await reply).text), 'proper');
  });

  test('N1 a declared key that is taken out of the config is refused, its streams cut', async (t) => {
    const digest = `sha256:${hash('sha256', 'a-declared-secret')}`;
    const other = await startLimitedRig({ keys: { ci: { digest, models: ['*'] } } });
    t.after(() => other.stop());
    const key = { id: 'ci', key: '', headers: { authorization: 'Bearer a-declared-secret' } };
    const { model } = other.play('chat', { body: [begun('chat'), new Promise(() => {})] });
    const began = Promise.withResolvers<void>();
    const body = requestBody('chat', { model, stream: true });
    const reply = send(other.gateway.url + endpointOf.chat, body, {
      headers: key.headers,
      onData: () => began.resolve(),
    });
    await began.promise;
    await other.gateway.reload({});
    assert.equal(endingOf('chat', (await reply).text), 'error');
    const list = `${other.gateway.url}/v1/models`;
    assert.equal((await send(list, undefined, { headers: key.headers })).status, 401);
    await other.gateway.reload({ keys: { ci: { digest, models: ['*'] } } });
    assert.equal((await send(list, undefined, { headers: key.headers })).status, 200);
    const stored = await other.key();
    await assert.rejects(
      other.gateway.reload({ keys: { [stored.id]: { digest, models: ['*'] } } }),
      /another key has this id/,
    );
    assert.equal((await send(list, undefined, { headers: key.headers })).status, 200);
    const log = await other.admin('GET', '/api/audit?subject=config');
    const entries = Array.isArray(log['entries']) ? log['entries'].filter(isObject) : [];
    // The file is watched, too: each reload may stand there twice.
    const told = entries.map(({ actor, action, after: state }) =>
      [actor, action, isObject(state) && state['applied']].join(' '),
    );
    assert.deepEqual([...new Set(told)].toSorted(), [
      'config config.reload false',
      'config config.reload true',
    ]);
  });
});
