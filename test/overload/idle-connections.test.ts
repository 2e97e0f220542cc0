/**
 * A refusal for want of room leaves the connection as it is (G2, B24): clients send their next call on
 * it, and one that was closed behind the refusal would cut that call without an answer.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { openRaw, rawHead, startOverloadRig, until, type OverloadRig } from './overload-rig.ts';

describe('G2 a gateway without room', { timeout: 500_000 }, () => {
  let rig: OverloadRig;
  before(async () => {
    rig = await startOverloadRig({ limits: { streams: 20 } });
  });
  after(() => rig.stop());

  test('G2 B24 refuses on connections that it keeps, and serves on them when there is room', async () => {
    const held = rig.play('chat', { body: '', mute: true, ending: 'hang' });
    const leaving = new AbortController();
    const heldBody = requestBody('chat', { model: held.model, stream: false });
    const flood = Array.from({ length: 40 }, () =>
      rig.call('chat', heldBody, { signal: leaving.signal }).catch(() => undefined),
    );
    await held.script.request(19);

    const quick = rig.play('chat', replying('chat', { text: 'Hi' }));
    const body = JSON.stringify(requestBody('chat', { model: quick.model, stream: false }));
    const request = rawHead(Buffer.byteLength(body)) + body;
    const client = await openRaw(rig.gateway.url, '');
    let closed = false;
    client.socket.once('close', () => {
      closed = true;
    });
    const statuses = (): readonly string[] =>
      [...client.text().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => String(status));
    for (const answers of [1, 2, 3]) {
      client.socket.write(request);
      await until('it is answered', () => closed || statuses().length === answers);
    }
    assert.deepEqual(statuses(), ['503', '503', '503']);
    assert.doesNotMatch(client.text(), /connection: close/i);

    leaving.abort();
    await Promise.all(flood);
    await until('all have ended', async () => (await rig.status())['calls_held'] === 0);
    client.socket.write(request);
    await until('it is answered', () => closed || statuses().length === 4);
    assert.deepEqual(statuses(), ['503', '503', '503', '200']);
    assert.equal(closed, false);
    client.socket.destroy();
  });
});
