/**
 * What only the operator can mend, or must know, is a line of the log: F4 (TLS that is refused), F28 (redirects),
 * F-2 (addresses of upstreams, which no client may read).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
} from 'node:net';
import { after, before, test } from 'node:test';
import { createServer, type Server } from 'node:tls';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { Instance } from '../cluster/instance.ts';
import { freePort } from '../support/server-process.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const folder = join(import.meta.dirname, '../support/tls');
const pem = (name: string): Buffer => readFileSync(join(folder, `${name}.pem`));
const secret = 'signed-with-a-secret';

let upstream: ScriptedUpstream;
let elsewhere: ScriptedUpstream;
let expired: Server;
let instance: Instance;

/** Each way in which the network of an upstream fails, by name: its address, and what the log says of it. */
interface NetworkFault {
  readonly base_url: string;
  readonly more?: JsonObject;
  readonly logged: RegExp;
  readonly status?: number;
}
const networkFaults = new Map<string, NetworkFault>();
const servers: (Server | TcpServer)[] = [];

async function listening(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Says this to each request, and closes. */
function saying(answer: string | undefined): Promise<number> {
  return listening(
    createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        if (answer === undefined) socket.resetAndDestroy();
        else socket.end(answer);
      });
    }),
  );
}

async function openNetworkFaults(expiredPort: number): Promise<void> {
  const closedPort = await freePort();
  const proxyPort = await saying('HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n');
  const silent = await listening(createTcpServer((socket) => socket.on('error', () => undefined)));
  const at = (port: number): string => `http://127.0.0.1:${port}/v1`;
  const secure = `https://127.0.0.1:${expiredPort}/v1`;
  const plainPort = await saying('HTTP/1.1 400 Bad Request\r\n\r\n');
  const notFound = await saying('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
  const rows: readonly (readonly [string, NetworkFault])[] = [
    [
      'unknown-name',
      { base_url: 'http://nope.invalid/v1', logged: /nope\.invalid .*spelled right/ },
    ],
    [
      'refused',
      {
        base_url: at(closedPort),
        logged: new RegExp(`:${closedPort} failed .ECONNREFUSED.\\. No server listens there`),
      },
    ],
    ['reset', { base_url: at(await saying(undefined)), logged: /127\.0\.0\.1:\d+ failed/ }],
    [
      'no-http',
      { base_url: at(await saying('hello\r\n\r\n')), logged: /127\.0\.0\.1:\d+ is not valid/ },
    ],
    [
      'old-certificate',
      {
        base_url: secure,
        more: { ca: join(folder, 'ca.pem') },
        logged: /CERT_HAS_EXPIRED.*ca of the provider/,
      },
    ],
    ['unknown-authority', { base_url: secure, logged: /127\.0\.0\.1:\d+ is not accepted/ }],
    [
      'no-tls',
      {
        base_url: `https://127.0.0.1:${plainPort}/v1`,
        logged: /127\.0\.0\.1:\d+ .*may need http:/,
      },
    ],
    [
      'no-such-path',
      {
        base_url: `http://127.0.0.1:${notFound}`,
        logged: /http:\/\/127\.0\.0\.1:\d+\/chat\/completions was asked: is base_url right/,
      },
    ],
    [
      'strange-proxy',
      {
        base_url: 'http://nope.invalid/v1',
        more: { proxy: `http://127.0.0.1:${proxyPort}` },
        logged: /nope\.invalid|407/,
      },
    ],
    [
      'strange-tunnel',
      {
        base_url: secure,
        more: { proxy: `http://127.0.0.1:${proxyPort}` },
        logged: /407.*proxy of the provider/,
      },
    ],
    [
      'no-proxy',
      {
        base_url: at(closedPort),
        more: { proxy: `http://127.0.0.1:${closedPort}` },
        logged: /127\.0\.0\.1:\d+/,
      },
    ],
    [
      'silent',
      {
        base_url: at(silent),
        more: { timeouts: { first_event: '200ms', document: '200ms' } },
        logged: /did not answer within 200 ms/,
        status: 504,
      },
    ],
  ];
  for (const [name, fault] of rows) networkFaults.set(name, fault);
}

before(async () => {
  upstream = await ScriptedUpstream.start();
  elsewhere = await ScriptedUpstream.start();
  expired = createServer({ key: pem('leaf-key'), cert: pem('expired') });
  expired.on('tlsClientError', () => undefined);
  expired.listen(0, '127.0.0.1');
  await once(expired, 'listening');
  const { port } = expired.address() as AddressInfo;
  await openNetworkFaults(port);
  const dialect = 'openai-chat';
  instance = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    config: {
      providers: {
        up: { dialect, base_url: `http://127.0.0.1:${upstream.port}/v1`, api_key: 'k' },
        openai: { base_url: `http://127.0.0.1:${elsewhere.port}/v1`, api_key: 'k' },
        expired: {
          dialect,
          base_url: `https://127.0.0.1:${port}/v1`,
          api_key: 'k',
          ca: join(folder, 'ca.pem'),
        },
        ...Object.fromEntries(
          [...networkFaults].map(([name, { base_url, more }]) => [
            name,
            { dialect, base_url, api_key: 'k', ...more },
          ]),
        ),
      },
    },
  });
});
after(async () => {
  expired.close();
  for (const server of servers) server.close();
  await upstream.close();
  await elsewhere.close();
});

function linesOf(event: string): readonly JsonObject[] {
  return instance.log
    .split('\n')
    .map((line) => tryParseObject(line))
    .filter((line) => line !== undefined)
    .filter((line) => line['event'] === event);
}

test('F-2 no failure of the network tells a client of addresses or settings', async () => {
  const { key } = await instance.makeKey();
  for (const [name, { status = 502 }] of networkFaults) {
    for (const stream of [false, true]) {
      const reply = await instance.chat(key, { model: `${name}/m`, stream });
      assert.equal(reply.status, status, `${name}: ${reply.text}`);
      assert.doesNotMatch(
        reply.text,
        /\b127\.|nope|invalid\b|:\d{4,5}|https?:|ECONN|ENOTFOUND|CERT|certificate|proxy|NODE_|\bca\b/,
        name,
      );
    }
  }
});

test('F4 F28 refused certificates are reported once a minute, redirects with where they point, and a missing API once', async () => {
  const { key } = await instance.makeKey();
  for (const model of ['expired/a', 'expired/b', 'expired/a']) {
    assert.equal((await instance.chat(key, { model })).status, 502);
  }
  elsewhere.script('gpt-5.5', ({ path }) =>
    path === '/v1/responses' ? { status: 404, body: '' } : chatAnswer({ text: 'Hi' }, false),
  );
  for (let times = 0; times < 2; times += 1) {
    const tools = [{ type: 'function', function: { name: 'w', parameters: { type: 'object' } } }];
    const asked = await instance.chat(key, { model: 'openai/gpt-5.5', tools });
    assert.equal(asked.status, 200, asked.text);
  }
  const asked = elsewhere.all.length;
  const place = `http://127.0.0.1:${elsewhere.port}/elsewhere`;
  upstream.script('moved', {
    status: 307,
    headers: { location: `${place}?sig=${secret}` },
    body: '',
  });
  const reply = await instance.chat(key, { model: 'up/moved' });
  assert.equal(reply.status, 502);
  assert.ok(!reply.text.includes('elsewhere'), reply.text);
  // The log is written out at the end.
  await instance.stop();

  const untrusted = linesOf('upstream_not_trusted').filter(
    ({ provider }) => provider === 'expired',
  );
  assert.equal(untrusted.length, 1, instance.log);
  assert.equal(untrusted[0]?.['level'], 'error');
  assert.match(String(untrusted[0]['message']), /CERT_HAS_EXPIRED/);

  const moved = linesOf('attempt_failed').filter(({ target }) => target === 'up/moved');
  assert.deepEqual(
    moved.map(({ location }) => location),
    [place],
  );
  // One line for the attempt that failed, and one for its call, under one id.
  const id = reply.headers['x-request-id'];
  assert.deepEqual([moved[0]?.['call'], moved[0]?.['level']], [id, 'warn']);
  const calls = linesOf('call').filter(({ model }) => /^(expired|up\/moved)/.test(String(model)));
  assert.equal(calls.length, 4);
  assert.equal(calls.filter((line) => line['id'] === id).length, 1);
  assert.ok(!instance.log.includes(secret));
  assert.equal(elsewhere.all.length, asked, 'never followed');

  const [missing, ...others] = linesOf('api_missing');
  assert.deepEqual(
    [missing?.['level'], missing?.['provider'], missing?.['instead'], others.length],
    ['warn', 'openai', 'openai-chat', 0],
  );
});

test('F-2 the log has the addresses of upstreams that cannot be reached, and what to do', () => {
  for (const [name, { logged }] of networkFaults) {
    const told = linesOf('attempt_failed').filter(({ target }) => target === `${name}/m`);
    assert.ok(told.length >= 2, `${name}: ${instance.log}`);
    for (const { message } of told) assert.match(String(message), logged, name);
  }
});
