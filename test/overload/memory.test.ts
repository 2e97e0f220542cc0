/** A real process under a limit of memory, and more large bodies than have room in it (G5). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Instance } from '../cluster/instance.ts';
import { chatDocument } from '../upstream/chat.ts';
import { until } from './overload-rig.ts';

const limitMb = 512;
const atOnce = 5;
/** Bodies of which a few bytes of text are many of memory. */
const ofValues = 40;
const ofKeys = 20;

/** 32 MB of text in few values. */
function largeBody(model: string): Buffer {
  const content = 'The lights came on. '.repeat(50_000);
  const messages = Array.from({ length: 32 }, () => ({ role: 'user', content }));
  return Buffer.from(JSON.stringify({ model, messages }));
}

/** 700 KB of text that cost thirty times as much once they are parsed. */
function valuesBody(model: string): Buffer {
  return bodyWith(model, `[${'{},'.repeat(240_000)}{}]`);
}

/** 1 MB of text in one object of many keys. */
function keysBody(model: string): Buffer {
  return bodyWith(model, `{${Array.from({ length: 90_000 }, (_, i) => `"k${i}":{}`).join()}}`);
}

function bodyWith(model: string, more: string): Buffer {
  const messages = '[{"role":"user","content":"Hi"}]';
  return Buffer.from(`{"model":"${model}","messages":${messages},"x":${more}}`);
}

/** Sends it as a client does that listens while it writes; the status, 0 when cut before one came. */
function post(url: string, key: string, body: Buffer): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
      if (text.includes('\r\n\r\n')) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Number(text.slice(9, 12))));
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
  });
}

function portOf(address: AddressInfo | string | null): number {
  assert.ok(typeof address === 'object' && address !== null);
  return address.port;
}

function highestMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+)/m.exec(text)?.[1]) / 1024;
}

for (const [name, count, bodyOf] of [
  [`${atOnce} bodies of 32 MB`, atOnce, largeBody],
  [`${ofValues} bodies of 480,000 values`, ofValues, valuesBody],
  [`${ofKeys} bodies of 90,000 keys`, ofKeys, keysBody],
] as const) {
  test(`G5 ${name} at once under ${limitMb} MB`, { timeout: 500_000 }, async (t) => {
    // It keeps nothing of what it is sent.
    const upstream = createServer((request, response) => {
      request.resume().on('end', () => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(chatDocument({ text: 'Hi' })));
      });
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    const instance = await Instance.start({
      storage: 'sqlite',
      upstream: portOf(upstream.address()),
      config: { limits: { memory: `${limitMb}MiB` } },
    });
    t.after(async () => {
      await instance.kill();
      upstream.close();
    });
    const { key } = await instance.makeKey();
    const body = bodyOf('up/large');
    const statuses: number[] = [];
    // Each comes back until it is served, as clients do.
    const send = async (): Promise<void> => {
      for (;;) {
        const status = await post(instance.url, key, body);
        statuses.push(status);
        assert.ok(instance.running, instance.log);
        if (status !== 503) return;
        await sleep(300);
      }
    };
    await Promise.all(Array.from({ length: count }, send));
    const together = 4 * count * body.length;
    if (together > (limitMb / 2) * 2 ** 20) {
      assert.ok(statuses.includes(503), 'there was room for all of them');
    }
    assert.deepEqual(
      statuses.filter((status) => status !== 503),
      Array.from({ length: count }, () => 200),
    );
    const mb = highestMb(instance.pid);
    t.diagnostic(`${mb.toFixed(0)} MB at most`);
    assert.ok(mb <= limitMb, `${mb} MB`);
    // Who sent it leaves at the head of the answer, before the call is over.
    await until('no body is held', async () => {
      return (await instance.admin('GET', '/api/status')).json['body_memory'] === 0;
    });
    assert.equal(await instance.stop(), 0);
  });
}
