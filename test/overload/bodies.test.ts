/** What bodies may take of the memory, and how fast they must come (G5, G10). */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { clientDialects } from '../support/dialects.ts';
import { objectAt } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { openRaw, rawHead, startOverloadRig, until, type OverloadRig } from './overload-rig.ts';

const mebibyte = 1024 ** 2;

let rig: OverloadRig;
before(async () => {
  // 64 MiB for bodies: one of 16 MiB at a time.
  rig = await startOverloadRig({ limits: { memory: '128MiB' } });
});
// A look at the process: what bodies cost before is in what it uses.
beforeEach(() => rig.press({}));
after(() => rig.stop());

async function bodyMemory(): Promise<number> {
  return Number((await rig.status())['body_memory']);
}

function large(model: string, bytes: number): string {
  const more = { messages: [{ role: 'user', content: 'x'.repeat(bytes) }] };
  return JSON.stringify(requestBody('chat', { model, stream: false, more }));
}

describe('G5 bodies', { timeout: 500_000 }, () => {
  for (const dialect of clientDialects) {
    test(`E10 before a byte is read of what has no room, ${dialect}`, async () => {
      const held = await openRaw(rig.gateway.url, rawHead(12 * mebibyte));
      await until('it is being read', async () => (await bodyMemory()) === 48 * mebibyte);
      const head = rawHead(8 * mebibyte).replace(endpointOf.chat, endpointOf[dialect]);
      const second = await openRaw(rig.gateway.url, head);
      await second.closed;
      const status = dialect === 'messages' ? 529 : 503;
      assert.match(second.text(), new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(second.text(), /\r\nconnection: close\r\n/i);
      assert.match(second.text(), /\r\nretry-after: ([1-9]|10)\r\n/i);
      // What is small still has room.
      const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
      const body = requestBody(dialect, { model, stream: false });
      assert.equal((await rig.call(dialect, body)).status, 200);
      held.socket.destroy();
      await until('nothing is held', async () => (await bodyMemory()) === 0);
    });
  }

  test('a body that would never fit is refused at once', async () => {
    const reply = await openRaw(rig.gateway.url, rawHead(16 * mebibyte + 1));
    await reply.closed;
    assert.match(reply.text(), /^HTTP\/1\.1 413 /);
    assert.equal(await bodyMemory(), 0);
  });

  test('a body that is served holds twice its length until its call is over', async () => {
    const gate = Promise.withResolvers<void>();
    const { model, script } = rig.play('chat', {
      body: [gate.promise, ''],
      ending: 'reset',
    });
    const body = large(model, mebibyte);
    const call = rig.call('chat', body);
    await script.request(0);
    // Its values are in the worker thread only, and there while it works on them.
    assert.equal(await bodyMemory(), 2 * Buffer.byteLength(body));
    gate.resolve();
    await call;
    await until('nothing is held', async () => (await bodyMemory()) === 0);
  });

  test('a body without a length is refused where the room ends, and served where it is enough', async (t) => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const held = await openRaw(rig.gateway.url, rawHead(14 * mebibyte));
    await until('it is being read', async () => (await bodyMemory()) === 56 * mebibyte);
    // Twice as fast as it must come, so that it is there for as long as this takes.
    const drip = setInterval(() => {
      if (held.socket.writable) held.socket.write(' '.repeat(8 * 1024));
    }, 250);
    t.after(() => clearInterval(drip));
    const small = large(model, mebibyte);
    const chunked = await openRaw(rig.gateway.url, rawHead('chunked', ['connection: close']));
    chunked.socket.write(`${small.length.toString(16)}\r\n${small}\r\n0\r\n\r\n`);
    await chunked.closed;
    assert.match(chunked.text(), /^HTTP\/1\.1 200 /);

    const endless = await openRaw(rig.gateway.url, rawHead('chunked'));
    for (let i = 0; i < 12; i++) {
      endless.socket.write(`${mebibyte.toString(16)}\r\n${' '.repeat(mebibyte)}\r\n`);
    }
    await endless.closed;
    assert.match(endless.text(), /^HTTP\/1\.1 503 /);
    clearInterval(drip);
    held.socket.destroy();
    await until('nothing is held', async () => (await bodyMemory()) === 0);
  });

  test('a body without room ends the worker thread if it has no job: the garbage in its heap would refuse the next one, too', async (t) => {
    let threads = 0;
    const count = (): unknown => (threads += 1);
    process.on('worker', count);
    t.after(() => process.off('worker', count));
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const serve = async (): Promise<void> => {
      assert.equal((await rig.call('chat', large(model, mebibyte))).status, 200);
    };
    await serve();
    const before = threads;
    // Garbage is collected at most every two seconds, and an earlier test may have caused that.
    await until('another thread works on the next body', async () => {
      // Too little for a collection by the pressure alone.
      rig.press({ rssBytes: 0.74 * 128 * mebibyte });
      const refused = await openRaw(rig.gateway.url, rawHead(2 * mebibyte));
      await refused.closed;
      assert.match(refused.text(), /^HTTP\/1\.1 503 /);
      rig.press({});
      await serve();
      return threads > before;
    });
  });

  test('refused bodies leave nothing behind', async () => {
    for (const body of ['{', '', '[]', `{"model": "up-chat/none"}`]) {
      assert.ok((await rig.call('chat', body)).status >= 400);
    }
    assert.equal(await bodyMemory(), 0);
    assert.equal((await rig.status())['calls_held'], 0);
  });
});

describe('G10 bodies', { timeout: 500_000 }, () => {
  test('one that does not come is answered with 408, and its connection closed', async () => {
    const short = await openRaw(rig.gateway.url, `${rawHead(1000)}{`);
    const long = await openRaw(rig.gateway.url, `${rawHead(mebibyte)}{`);
    const chunked = await openRaw(rig.gateway.url, rawHead('chunked'));
    const drip = setInterval(() => {
      for (const { socket } of [short, long]) if (socket.writable) socket.write(' ');
    }, 1000);
    await Promise.all([short, long, chunked].map(({ closed }) => closed));
    clearInterval(drip);
    for (const { text } of [short, long, chunked]) {
      assert.match(text(), /^HTTP\/1\.1 408 /);
      assert.match(text(), /\r\nconnection: close\r\n/i);
      assert.equal(objectAt(bodyOf(text()), 'error')['code'], 'request_timeout');
    }
    assert.equal(await bodyMemory(), 0);
    assert.equal((await rig.status())['calls_held'], 0);
  });
});

function bodyOf(text: string): { readonly [name: string]: never } {
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
}
