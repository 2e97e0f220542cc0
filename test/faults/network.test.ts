/**
 * F4 S19 N4: upstreams behind TLS with real certificates, authorities of one's own and proxies. F2: an
 * upstream that no packet comes back from.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { assertErrorBody } from '../support/legality.ts';
import { clientDialects } from '../support/dialects.ts';
import { readDocument, readStream } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';
import { errorTable as e, lookOf } from './fault-row.ts';

const folder = join(import.meta.dirname, '../support/tls');
const pem = (name: string): Buffer => readFileSync(join(folder, `${name}.pem`));
const text = 'Hello from behind.';
const servers: Server[] = [];

async function listening(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** TLS in front of a scripted upstream. */
function secured(port: number, options: TlsOptions): Promise<number> {
  return listening(
    createTlsServer({ key: pem('leaf-key'), ...options }, (socket) => {
      const inner = connect(port, '127.0.0.1');
      socket.on('error', () => inner.destroy());
      inner.on('error', () => socket.destroy());
      socket.pipe(inner).pipe(socket);
    }),
  );
}

interface Proxy {
  readonly port: number;
  /** First lines of what it was asked, and the credential that came with it. */
  readonly asked: string[];
}

/** A proxy that takes one password, for tunnels and for plain addresses. */
async function startProxy(): Promise<Proxy> {
  const asked: string[] = [];
  const credential = `Basic ${Buffer.from('me:secret').toString('base64')}`;
  const port = await listening(
    createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (chunk: Buffer) => {
        const head = chunk.toString('latin1');
        const [line = ''] = head.split('\r\n');
        asked.push(line);
        if (!head.includes(`proxy-authorization: ${credential}`)) {
          socket.end('HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n');
          return;
        }
        const tunnel = /^CONNECT 127\.0\.0\.1:(\d+) /.exec(line)?.[1];
        const plain = /^POST http:\/\/[^/:]+:(\d+)\//.exec(line)?.[1];
        const inner = connect(Number(tunnel ?? plain), '127.0.0.1');
        inner.on('error', () => socket.destroy());
        if (tunnel === undefined) {
          inner.write(chunk.toString('latin1').replace(/http:\/\/[^/]+\//, '/'), 'latin1');
        } else {
          socket.write('HTTP/1.1 200 Go ahead\r\n\r\n');
        }
        socket.pipe(inner).pipe(socket);
      });
    }),
  );
  return { port, asked };
}

/** Opens the tunnel and breaks it in the middle of what comes through it. */
function startCuttingProxy(): Promise<number> {
  return listening(
    createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 Go ahead\r\n\r\n');
        socket.once('data', () => socket.resetAndDestroy());
      });
    }),
  );
}

let rig: Rig;
let proxy: Proxy;
const faults = ['expired', 'elsewhere', 'self', 'old', 'plain', 'unknown'] as const;
let hole: { readonly port: number; stop(): void };

/** A listener that takes no connections: its queue is full, so that the kernel drops what else comes. */
async function blackHole(): Promise<typeof hole> {
  const script = `const s=require('node:net').createServer();s.listen({port:0,host:'127.0.0.1',backlog:1},()=>{require('node:fs').writeSync(1,String(s.address().port)+'\\n');Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0)})`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  const sockets = Array.from({ length: 8 }, () => connect(port, '127.0.0.1'));
  for (const socket of sockets) socket.on('error', () => undefined);
  await new Promise((resolve) => setTimeout(resolve, 300));
  return {
    port,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      child.kill('SIGKILL');
    },
  };
}

before(async () => {
  proxy = await startProxy();
  hole = await blackHole();
  rig = await startRig({}, { random: () => 0 });
  const chat = rig.upstreams.chat.port;
  const ports = {
    good: await secured(chat, { cert: pem('good') }),
    expired: await secured(chat, { cert: pem('expired') }),
    elsewhere: await secured(chat, { cert: pem('elsewhere') }),
    self: await secured(chat, { cert: pem('self') }),
    old: await secured(chat, { cert: pem('good'), maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }),
    plain: await listening(createHttpServer()),
  };
  const provider = (port: number, more: object = {}): object => ({
    dialect: 'openai-chat',
    base_url: `https://127.0.0.1:${port}/v1`,
    api_key: 'k',
    ca: join(folder, 'ca.pem'),
    ...more,
  });
  const through = `http://me:secret@127.0.0.1:${proxy.port}`;
  const providers = {
    good: provider(ports.good),
    expired: provider(ports.expired),
    elsewhere: provider(ports.elsewhere),
    self: provider(ports.self),
    old: provider(ports.old),
    plain: provider(ports.plain),
    unknown: { ...provider(ports.good), ca: join(folder, 'self.pem') },
    tunneled: provider(ports.good, { proxy: through }),
    proxied: {
      dialect: 'openai-chat',
      base_url: `http://upstream.example:${chat}/v1`,
      api_key: 'k',
      proxy: through,
    },
    cut: provider(ports.good, { proxy: `http://127.0.0.1:${await startCuttingProxy()}` }),
    stranger: provider(ports.good, { proxy: `http://127.0.0.1:${proxy.port}` }),
    hole: {
      dialect: 'openai-chat',
      base_url: `http://127.0.0.1:${hole.port}/v1`,
      api_key: 'k',
      timeouts: { connect: '300ms' },
    },
    spare: { dialect: 'openai-chat', base_url: `http://127.0.0.1:${chat}/v1`, api_key: 'k' },
  };
  const models = Object.fromEntries(
    [...faults, 'hole'].map((name) => [`${name}-spared`, { targets: [`${name}/x`, 'spare/x'] }]),
  );
  const hedged = { targets: ['hole/hedged', 'spare/hedged'], hedge: { after: '30ms' } };
  await rig.gateway.reload(
    JSON.parse(JSON.stringify({ providers, models: { ...models, hedged } })),
  );
});
after(async () => {
  await rig.stop();
  hole.stop();
  for (const server of servers) server.close();
});

for (const dialect of clientDialects) {
  for (const stream of [true, false]) {
    const shape = stream ? 'stream' : 'document';

    describe(`${dialect}, ${shape}`, () => {
      for (const name of ['good', 'tunneled', 'proxied']) {
        test(`N4 an answer from one that is ${name}`, async () => {
          rig.upstreams.chat.script('x', answerIn('chat', { text }, stream));
          const reply = await ask(
            rig,
            dialect,
            requestBody(dialect, { model: `${name}/x`, stream }),
          );
          assert.equal(reply.status, 200, reply.text);
          const seen = stream ? readStream(dialect, reply.text) : readDocument(dialect, reply.json);
          assert.equal(seen.text, text);
        });
      }

      for (const name of faults) {
        test(`F4 S19 TLS that is ${name} is refused, not tried again, and another target asked`, async () => {
          const script = rig.upstreams.chat.script('x', answerIn('chat', { text }, stream));
          const body = requestBody(dialect, { model: `${name}/x`, stream });
          const reply = await ask(rig, dialect, body);
          assert.equal(reply.status, lookOf(e.e11, dialect).status, reply.text);
          assert.equal(assertErrorBody(dialect, reply.json)['type'], lookOf(e.e11, dialect).type);
          assert.equal(reply.headers['x-gateway-attempts'], '1');
          assert.equal(script.requests.length, 0);
          const spared = await ask(
            rig,
            dialect,
            requestBody(dialect, { model: `${name}-spared`, stream }),
          );
          assert.equal(spared.status, 200, spared.text);
        });
      }

      test('F2 a black hole costs the connect timeout, and another target is asked', async () => {
        rig.upstreams.chat.script('x', answerIn('chat', { text }, stream));
        const reply = await ask(rig, dialect, requestBody(dialect, { model: 'hole/x', stream }));
        assert.equal(reply.status, lookOf(e.e13, dialect).status, reply.text);
        assert.equal(reply.headers['x-gateway-attempts'], '1');
        const body = requestBody(dialect, { model: 'hole-spared', stream });
        const spared = await ask(rig, dialect, body);
        assert.equal(spared.status, 200, spared.text);
      });
    });
  }
}

test('R6 a black hole beside which another request was sooner is seen to be one', async () => {
  rig.upstreams.chat.script('hedged', answerIn('chat', { text }, true));
  const reply = await ask(rig, 'chat', requestBody('chat', { model: 'hedged', stream: true }));
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-attempts'], '2');
  // Its connection is given up only now.
  assert.equal(
    await rig.gateway.trouble('hedged', 'hole/hedged'),
    'degraded: 1 failed in a row (timeout)',
  );
});

test('N4 F6 a tunnel that breaks inside its TLS is a connection that failed', async () => {
  for (const dialect of clientDialects) {
    const reply = await ask(rig, dialect, requestBody(dialect, { model: 'cut/x', stream: true }));
    assert.equal(reply.status, lookOf(e.e11, dialect).status, reply.text);
    assert.equal(assertErrorBody(dialect, reply.json)['type'], lookOf(e.e11, dialect).type);
  }
});

test('N4 proxies are asked for tunnels, and for plain addresses', () => {
  assert.ok(proxy.asked.some((line) => line.startsWith('CONNECT ')));
  assert.ok(proxy.asked.some((line) => line.startsWith('POST http://upstream.example')));
});
