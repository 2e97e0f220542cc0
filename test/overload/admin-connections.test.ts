/** Connections without a credential on the admin plane never take the places of those with one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startGateway } from '../../src/main.ts';
import { sampledTests } from '../support/depth.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { programArguments } from '../support/program.ts';
import { openRaw } from './overload-rig.ts';

const run = promisify(execFile);
const metricsToken = 'metrics-token-for-tests-0123456789';
const csrf = 'x-model-gateway-csrf: 1\r\norigin: http://127.0.0.1\r\n';
const unfinished = 'content-length: 100\r\n\r\n{"token":"';

function head(method: string, path: string, more: string): string {
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\n${more}`;
}

/** What strangers can hold a connection with, besides a request to each path of the API. */
const holds: { readonly [what: string]: string } = {
  'half a sign-in': head('POST', '/api/session', csrf + unfinished),
  'half a sign-in in chunks': head(
    'POST',
    '/api/session',
    `${csrf}transfer-encoding: chunked\r\n\r\n5\r\n{"tok`,
  ),
  'a sign-in that waits for 100 Continue': head(
    'POST',
    '/api/session',
    `${csrf}expect: 100-continue\r\ncontent-length: 100\r\n\r\n`,
  ),
  'a question for the session with half a body': head('GET', '/api/session', unfinished),
  'half a head': head('GET', '/api/keys', 'x-a'),
  'half a head behind a whole request': `${head('GET', '/healthz', '\r\n')}GET /api/keys HT`,
  nothing: '',
  'a wrong token and half a body': head(
    'POST',
    '/api/keys',
    `authorization: Bearer wrong-wrong-wrong\r\n${unfinished}`,
  ),
  'pages that it does not read': head('GET', '/', 'accept: text/html\r\n\r\n').repeat(90),
};

/** Keeps this number of connections open, each with these bytes, until it is stopped; closed ones come again. */
class Crowd {
  readonly #sockets = new Set<Socket>();
  #over = false;

  constructor(url: string, count: number, bytes: (index: number) => string) {
    const { hostname, port } = new URL(url);
    const open = (index: number): void => {
      const socket = connect(Number(port), hostname);
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.pause();
      socket.once('connect', () => socket.write(bytes(index)));
      socket.once('close', () => {
        this.#sockets.delete(socket);
        // It comes back at once, but leaves this process some time for the others in it.
        if (!this.#over) setTimeout(() => this.#over || open(index), 50);
      });
    };
    for (let index = 0; index < count; index++) open(index);
  }

  stop(): void {
    this.#over = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}

describe('X-2 the admin plane under connections without a token', { timeout: 500_000 }, () => {
  const folder = temporaryFolder('places');
  const dataDir = join(folder, 'data');
  let running: Awaited<ReturnType<typeof startGateway>>;
  before(async () => {
    running = await startGateway({
      flags: {
        listen: '127.0.0.1:0',
        'admin-listen': '127.0.0.1:0',
        'data-dir': dataDir,
        'log-level': 'silent',
      },
      env: {
        MODEL_GATEWAY_KEY: clientKey,
        MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
        MODEL_GATEWAY_METRICS_TOKEN: metricsToken,
      },
      cwd: folder,
      load: () => () => undefined,
    });
  });
  after(() => running.stop());

  const ask = (path: string, token: string): ReturnType<typeof send> =>
    send(running.adminUrl + path, undefined, {
      method: 'GET',
      headers: { authorization: `Bearer ${token}` },
    });

  async function allAnswer(): Promise<void> {
    for (let i = 0; i < 10; i++) {
      assert.equal((await ask('/metrics', metricsToken)).status, 200);
      assert.equal((await ask('/metrics', adminToken)).status, 200);
      assert.equal((await ask('/api/status', adminToken)).status, 200);
    }
    const signIn = await send(
      `${running.adminUrl}/api/session`,
      { token: adminToken },
      { anonymous: true, headers: { 'x-model-gateway-csrf': '1', origin: running.adminUrl } },
    );
    assert.equal(signIn.status, 200);
    const { json } = await send(
      `${running.adminUrl}/api/keys`,
      { name: 'a', models: ['*'] },
      { headers: { authorization: `Bearer ${adminToken}` } },
    );
    const args = ['keys', 'revoke', String(json['id']), '--data-dir', dataDir];
    const { stdout } = await run(process.execPath, programArguments(args), { cwd: folder });
    assert.match(stdout, /revoked/i);
  }

  /** `npm test` plays three of them; the test of 1,000 connections has all kinds. */
  const cellTest = sampledTests(4);
  for (const [what, bytes] of Object.entries(holds)) {
    cellTest()(`X-2 240 times ${what}: all who have a token are served`, async () => {
      const crowd = new Crowd(running.adminUrl, 240, () => bytes);
      await sleep(1200);
      try {
        await allAnswer();
      } finally {
        crowd.stop();
      }
    });
  }

  test('X-2 half a body on every path of the API, 1,000 connections of all kinds', async () => {
    const { json } = await ask('/api/openapi.json', adminToken);
    const paths = Object.keys(Object(json['paths']));
    assert.ok(paths.length > 20);
    const methods = ['POST', 'PUT', 'PATCH', 'DELETE'];
    const all = [
      ...Object.values(holds),
      ...paths.flatMap((path) => methods.map((method) => head(method, path, unfinished))),
    ];
    const crowd = new Crowd(running.adminUrl, 1000, (index) => all[index % all.length] ?? '');
    await sleep(1200);
    try {
      await allAnswer();
    } finally {
      crowd.stop();
    }
  });

  test('X-2 a sign-in has two seconds and 4 KB', async () => {
    const slow = await openRaw(running.adminUrl, holds['half a sign-in'] ?? '');
    await slow.closed;
    assert.match(slow.text(), /^HTTP\/1\.1 408 [^]*within 2 seconds/);
    const headers = { 'x-model-gateway-csrf': '1', origin: running.adminUrl };
    const token = 'x'.repeat(4100);
    const long = await send(
      `${running.adminUrl}/api/session`,
      { token },
      { anonymous: true, headers },
    );
    assert.equal(long.status, 413);
  });

  test('X-2 who showed a token keeps the connection while strangers come', async () => {
    const request = head('GET', '/api/status', `authorization: Bearer ${adminToken}\r\n\r\n`);
    const known = await openRaw(running.adminUrl, request);
    const crowd = new Crowd(running.adminUrl, 160, () => holds['half a sign-in'] ?? '');
    try {
      await sleep(1200);
      known.socket.write(request.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
      await known.closed;
      assert.equal(known.text().match(/HTTP\/1\.1 200 /g)?.length, 2);
    } finally {
      crowd.stop();
    }
  });
});
