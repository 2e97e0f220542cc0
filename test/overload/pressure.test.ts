/** The steps of pressure as clients and operators see them (G7), with a load that the test sets. */
import assert from 'node:assert/strict';
import { afterEach, after, before, describe, test } from 'node:test';
import { send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { clientDialects } from '../support/dialects.ts';
import { endingOf } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { legalFrames } from '../faults/stream-pieces.ts';
import {
  memoryBytes,
  openRaw,
  rawHead,
  startOverloadRig,
  until,
  type OverloadRig,
} from './overload-rig.ts';

let rig: OverloadRig;
before(async () => {
  rig = await startOverloadRig({ limits: { memory: memoryBytes } });
});
after(() => rig.stop());
afterEach(() => rig.press({}));

/** A call that runs until the result is called: the second step requires a running call. */
async function runningCall(): Promise<() => Promise<void>> {
  const { model, script } = rig.play('chat', { body: '', mute: true, ending: 'hang' });
  const leaving = new AbortController();
  const body = requestBody('chat', { model, stream: false });
  const call = rig.call('chat', body, { signal: leaving.signal }).catch(() => undefined);
  await script.request(0);
  return async () => {
    leaving.abort();
    await call;
    await until('it is over', async () => (await rig.status())['calls_held'] === 0);
  };
}

describe('G7', { timeout: 500_000 }, () => {
  test('step 1: connections close, bodies over 1 MB wait, everything else is served', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const body = requestBody('chat', { model, stream: false });
    const headers = { connection: 'keep-alive' };
    assert.equal((await rig.call('chat', body, { headers })).headers.connection, 'keep-alive');
    rig.press({ rssBytes: 0.86 * memoryBytes });
    const reply = await rig.call('chat', body, { headers });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.connection, 'close');
    const large = await openRaw(rig.gateway.url, rawHead(1024 ** 2 + 1));
    await large.closed;
    assert.match(large.text(), /^HTTP\/1\.1 503 /);
    const chunked = await openRaw(rig.gateway.url, rawHead('chunked'));
    const piece = `100000\r\n${' '.repeat(0x100000)}\r\n`;
    chunked.socket.write(piece + piece);
    await chunked.closed;
    assert.match(chunked.text(), /^HTTP\/1\.1 503 /);
    rig.press({});
    assert.equal((await rig.call('chat', body, { headers })).headers.connection, 'keep-alive');
  });

  for (const dialect of clientDialects) {
    test(`step 2: no new calls, ${dialect}; probes and the admin plane answer`, async () => {
      const end = await runningCall();
      const { model, script } = rig.play('chat', replying('chat', { text: 'Hi' }));
      const body = requestBody(dialect, { model, stream: true });
      rig.press({ rssBytes: 0.93 * memoryBytes });
      const refused = await rig.call(dialect, body);
      assert.equal(refused.status, dialect === 'messages' ? 529 : 503, refused.text);
      assert.match(String(refused.headers['retry-after']), /^([1-9]|10)$/);
      assert.equal(script.requests.length, 0);
      const counted = await send(`${rig.gateway.url}${endpointOf.messages}/count_tokens`, body);
      assert.equal(counted.status, 529);
      const probe = await send(`${rig.gateway.url}/healthz`, undefined, { anonymous: true });
      assert.equal(probe.status, 200);
      assert.deepEqual(probe.json, { status: 'ok', pressure: 2 });
      assert.equal((await send(`${rig.gateway.url}/v1/models`, undefined)).status, 503);
      const status = await rig.status();
      assert.equal(status['pressure'], 2);
      assert.equal(status['memory_share'], 0.93);
      await end();
    });
  }

  test('step 2 without a running call: a call is taken, since refusing it frees nothing', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    rig.press({ rssBytes: 0.99 * memoryBytes });
    const reply = await rig.call('chat', requestBody('chat', { model, stream: false }));
    assert.equal(reply.status, 200);
  });

  for (const dialect of clientDialects) {
    test(`step 3: the answer that is not read is cut, ${dialect}; one that is read continues`, async () => {
      const frames = legalFrames('chat');
      const gate = Promise.withResolvers<void>();
      const read = rig.play('chat', {
        body: [frames.slice(0, 2).join(''), gate.promise, frames.slice(2).join('')],
      });
      const begun = Promise.withResolvers<void>();
      const reading = rig.call(dialect, requestBody(dialect, { model: read.model, stream: true }), {
        onData: () => begun.resolve(),
      });
      await begun.promise;
      // More than all buffers on the way hold.
      const middle = frames[1] ?? '';
      const much = middle.repeat(Math.ceil((24 * 1024 ** 2) / middle.length));
      const unread = rig.play('chat', { body: [frames[0] ?? '', much], ending: 'hang' });
      const body = JSON.stringify(requestBody(dialect, { model: unread.model, stream: true }));
      // An answer that begins before the pressure keeps its connection open, if its client reads the end in time.
      const head = rawHead(Buffer.byteLength(body), ['connection: close']).replace(
        '/v1/chat/completions',
        endpointOf[dialect],
      );
      const slow = await openRaw(rig.gateway.url, '');
      slow.socket.pause();
      slow.socket.write(head + body);
      const asked = await unread.script.request(0);
      const press = setInterval(() => rig.press({ rssBytes: 0.98 * memoryBytes }), 20);
      assert.equal(await asked.closed, 'gateway');
      clearInterval(press);
      rig.press({});
      const [row] = await rig.gateway.callRows(unread.model, 1);
      assert.equal(row?.['outcome'], 'failed');
      assert.equal(row?.['error'], 'overloaded');
      slow.socket.resume();
      await slow.closed;
      assert.notEqual(endingOf(dialect, streamText(slow.text())), 'proper');
      gate.resolve();
      assert.equal(endingOf(dialect, (await reading).text), 'proper');
    });
  }

  test('a late loop closes connections, and refuses no call by itself', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const body = requestBody('chat', { model, stream: false });
    const isPressed = async (): Promise<boolean> => {
      rig.press({ delayMs: 250 });
      return (await rig.status())['pressure'] === 1;
    };
    assert.equal(await isPressed(), false);
    await until('it was late for a second', isPressed);
    const reply = await rig.call('chat', body, { headers: { connection: 'keep-alive' } });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.connection, 'close');
  });

  test('the admin plane needs its token under pressure too', async () => {
    rig.press({ rssBytes: 0.99 * memoryBytes });
    const url = `${rig.gateway.adminUrl}/api/status`;
    const headers = { authorization: `Bearer ${adminToken}` };
    assert.equal((await send(url, undefined, { anonymous: true })).status, 401);
    assert.equal((await send(url, undefined, { headers })).status, 200);
  });
});

function streamText(raw: string): string {
  return raw.slice(raw.indexOf('\r\n\r\n') + 4);
}
