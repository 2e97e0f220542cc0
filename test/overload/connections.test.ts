/** Half-open heads by the dozen, and a cap on connections (G10). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import {
  openRaw,
  rawHead,
  startOverloadRig,
  until,
  type OverloadRig,
  type RawConnection,
} from './overload-rig.ts';

describe('G10', { timeout: 500_000 }, () => {
  let rig: OverloadRig;
  before(async () => {
    rig = await startOverloadRig({ limits: { connections: 40 } });
  });
  after(() => rig.stop());

  async function connections(): Promise<number> {
    const headers = { authorization: `Bearer ${adminToken}` };
    const { text } = await send(`${rig.gateway.adminUrl}/metrics`, undefined, { headers });
    return Number(/^model_gateway_client_connections (\d+)$/m.exec(text)?.[1]);
  }

  test('half-open heads make room for each other and for who sends a request', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const body = requestBody('chat', { model, stream: false });
    const half = 'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a';
    const open = (count: number): Promise<readonly RawConnection[]> =>
      Promise.all(Array.from({ length: count }, () => openRaw(rig.gateway.url, half)));
    const first = await open(40);
    await until('they are in', async () => (await connections()) === 40);
    // Younger ones may be about to send the rest.
    await sleep(1100);
    for (let i = 0; i < 10; i++) assert.equal((await rig.call('chat', body)).status, 200);
    const second = await open(30);
    // Most of the older ones are closed without an answer, long before the limit of time for a head.
    const pushedOut = (): number =>
      first.filter(({ socket, text }) => socket.closed && text() === '').length;
    await until('the oldest ones have gone', () => pushedOut() >= 20);
    assert.equal((await rig.call('chat', body)).status, 200);
    for (const { socket } of [...first, ...second]) socket.destroy();
  });

  test('connections between two requests are closed before anybody is turned away', async () => {
    const idle: RawConnection[] = [];
    for (let i = 0; i < 40; i++) {
      const connection = await openRaw(rig.gateway.url, 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
      idle.push(connection);
    }
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const replies = await Promise.all(
      Array.from({ length: 4 }, () =>
        rig.call('chat', requestBody('chat', { model, stream: false })),
      ),
    );
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array.from({ length: 4 }, () => 200),
    );
    const closed = (): number => idle.filter(({ socket }) => socket.closed).length;
    await until('they made room', () => closed() >= replies.length);
    for (const { socket } of idle) socket.destroy();
  });

  test('calls that run are not harmed by connections that come', async () => {
    const gate = Promise.withResolvers<void>();
    const answer = JSON.stringify({ error: { message: 'late' } });
    const { model, script } = rig.play('chat', {
      status: 400,
      body: [gate.promise, answer],
      framing: 'chunked',
    });
    const call = rig.call('chat', requestBody('chat', { model, stream: false }));
    await script.request(0);
    const others = await Promise.all(
      Array.from({ length: 100 }, () =>
        openRaw(rig.gateway.url, rawHead(10)).catch(() => undefined),
      ),
    );
    gate.resolve();
    assert.equal((await call).status, 400);
    for (const other of others) other?.socket.destroy();
    await until('they are gone', async () => (await connections()) < 10);
  });

  test('a head that does not come in ten seconds is answered with 408', async () => {
    const half = await openRaw(rig.gateway.url, 'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: ');
    const drip = setInterval(() => half.socket.writable && half.socket.write('a'), 500);
    await half.closed;
    clearInterval(drip);
    assert.match(half.text(), /^HTTP\/1\.1 408 /);
  });
});
