/** The guards of connections hold over TLS, and handshakes that do not end take no place (G10, G9, F75). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { before, describe, test, type TestContext } from 'node:test';
import type { Clock } from '../../src/core/runtime.ts';
import { Secret } from '../../src/core/secret.ts';
import { closeServer } from '../../src/http/drain.ts';
import { createListener, dataTimes, listen, listenWidely } from '../../src/http/listen.ts';
import { capConnections } from '../../src/http/overload/connection-limits.ts';
import { closeHandshakes } from '../../src/http/tls.ts';
import { type Certificates, makeCertificates, noOpenssl } from '../support/certificates.ts';
import { findProgram } from '../support/server-process.ts';
import { until } from './overload-rig.ts';

const hasOpenssl = findProgram(['openssl']) !== undefined;
const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
/** A busy machine takes its time for a handshake, too. */
const noHurry = { headMs: 600_000 };

interface Opened {
  readonly socket: Socket;
  text(): string;
}

describe('connections over TLS', { skip: hasOpenssl ? false : noOpenssl, timeout: 300_000 }, () => {
  let made: Certificates;
  before(async () => {
    const certificates = await makeCertificates('someone');
    assert.ok(certificates !== undefined);
    made = certificates;
  });

  interface Listening {
    readonly server: Server;
    readonly port: number;
    /** What was refused before it was a request. */
    readonly refused: { readonly error: string; readonly status?: number }[];
  }

  interface ListeningOptions {
    readonly times?: object;
    readonly clients?: boolean;
    readonly clock?: Pick<Clock, 'now'>;
  }

  async function listening(
    t: TestContext,
    handle: (request: IncomingMessage, response: ServerResponse) => void,
    { times = {}, clients = false, clock }: ListeningOptions = {},
  ): Promise<Listening> {
    const refused: Listening['refused'] = [];
    const server = createListener(handle, {
      times: { ...dataTimes, ...times },
      refused: (refusal) => refused.push(refusal),
      ...(clock === undefined ? {} : { clock }),
      tls: {
        cert: readFileSync(made.server.cert, 'utf8'),
        key: new Secret(readFileSync(made.server.key, 'utf8')),
        ...(clients ? { clientCa: readFileSync(made.ca, 'utf8') } : {}),
        files: [],
      },
    });
    const url = await listenWidely(server, { host: '127.0.0.1', port: 0 });
    assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
    t.after(async () => {
      server.closeAllConnections();
      await closeServer(server);
    });
    return { server, port: Number(new URL(url).port), refused };
  }

  async function secure(
    port: number,
    options: ConnectionOptions = {},
  ): Promise<TLSSocket & Opened> {
    const ca = readFileSync(made.ca);
    const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca, ...options });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return Object.assign(socket, reading(socket));
  }

  /** A client that begins no handshake. */
  async function silent(port: number, bytes = ''): Promise<Opened> {
    const socket = connectTcp(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    if (bytes !== '') socket.write(bytes);
    return reading(socket);
  }

  function reading(socket: Socket): Opened {
    let text = '';
    socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
    return { socket, text: () => text };
  }

  test('a request is answered by HTTP/1.1, also to a client that would rather have HTTP/2', async (t) => {
    const { port } = await listening(t, (_, response) => response.end('hello'));
    const client = await secure(port, { ALPNProtocols: ['h2', 'http/1.1'] });
    assert.equal(client.alpnProtocol, 'http/1.1');
    client.write(get);
    await until('an answer', () => client.text().includes('hello'));
    await assert.rejects(secure(port, { ALPNProtocols: ['h2'] }));
    await assert.rejects(secure(port, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' }));
  });

  test('G10 a handshake that does not end is ended, and logged', async (t) => {
    const { port, refused } = await listening(t, (_, response) => response.end(), {
      times: { headMs: 300 },
    });
    const client = await silent(port);
    // The first bytes of a client's hello, and no more.
    const begun = await silent(port, '\u0016\u0003\u0001');
    await until('both are closed', () => client.socket.closed && begun.socket.closed);
    await until('told', () => refused.length === 2);
    assert.deepEqual(
      refused.map(({ error, status }) => ({ error, status })),
      Array.from({ length: 2 }, () => ({ error: 'ERR_TLS_HANDSHAKE_TIMEOUT', status: undefined })),
    );
  });

  test('G10 a thousand handshakes and more that do not end keep no client away', async (t) => {
    const { port } = await listening(t, (_, response) => response.end('hello'), {
      times: noHurry,
    });
    const idle: Opened[] = [];
    for (let i = 0; i < 1100; i++) idle.push(await silent(port));
    const roomFor = (most: number): boolean =>
      idle.filter(({ socket }) => socket.closed).length >= most;
    await until('the oldest have made room', () => roomFor(100));
    const client = await secure(port);
    client.write(get);
    await until('an answer', () => client.text().includes('hello'));
    const closed = idle.filter(({ socket }) => socket.closed).length;
    assert.ok(closed >= 100 && closed < 400, `${closed} were closed`);
    assert.ok(idle[0]?.socket.closed === true && idle.at(-1)?.socket.closed === false);
    for (const { socket } of idle) socket.destroy();
  });

  test('G10 a slow head is answered with 408, and what is no HTTP with 400', async (t) => {
    const { server, port, refused } = await listening(t, (_, response) => response.end(), {
      times: noHurry,
    });
    const slow = await secure(port);
    slow.write('GET / HTTP/1.1\r\nhost: x\r\nx-a');
    const wrong = await secure(port);
    wrong.write('hello\r\n\r\n');
    await until('the wrong one is answered', () => wrong.closed);
    server.headersTimeout = 300;
    await until('the slow one is answered', () => slow.closed);
    assert.match(slow.text(), /^HTTP\/1\.1 408 /);
    assert.match(wrong.text(), /^HTTP\/1\.1 400 /);
    assert.deepEqual(refused.map(({ status }) => status).toSorted(), [400, 408]);
  });

  test('S18 a request of two lengths is refused', async (t) => {
    const { port } = await listening(t, () => assert.fail('handled'));
    const client = await secure(port);
    client.write(
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    await until('it is closed', () => client.closed);
    assert.match(client.text(), /^HTTP\/1\.1 400 /);
    assert.equal(client.text().match(/HTTP\/1\.1 4/g)?.length, 1);
  });

  test('G9 a client that takes no answer is cut', async (t) => {
    let cut = false;
    const answer = (_: IncomingMessage, response: ServerResponse): void => {
      response.once('close', () => (cut = true));
      response.end(Buffer.alloc(8_000_000));
    };
    const { port } = await listening(t, answer, { times: { stalledMs: 100 } });
    const client = await secure(port);
    client.pause();
    client.write(get);
    await until('it is cut', () => cut);
    // The client learns of it when it reads on.
    client.resume();
    await until('it is closed', () => client.closed);
    assert.ok(client.text().length < 8_000_000, String(client.text().length));
  });

  test('F75 who ends his side has left', async (t) => {
    let left = false;
    const { port } = await listening(t, (_, response) =>
      response.once('close', () => (left = true)),
    );
    const client = await secure(port, { allowHalfOpen: true } as ConnectionOptions);
    client.write(get, () => client.end());
    await until('it is noticed', () => left);
  });

  test('G10 the cap of connections counts those whose handshake is through', async (t) => {
    const { server, port } = await listening(t, (_, response) => response.end('hello'));
    capConnections(server, () => 10);
    const others: TLSSocket[] = [];
    for (let i = 0; i < 20; i++) others.push(await secure(port));
    // 11 may stay: none of them has had its second yet, so nobody is closed for the others.
    await until('some are turned away', () => others.filter(({ closed }) => closed).length >= 9);
    for (const other of others) other.destroy();
  });

  test('a certificate of the client is asked for, and only those of its authority are taken', async (t) => {
    const { port, refused } = await listening(t, (_, response) => response.end('hello'), {
      clients: true,
    });
    const own = await secure(port, {
      cert: readFileSync(made.client.cert),
      key: readFileSync(made.client.key),
    });
    own.write(get);
    await until('an answer', () => own.text().includes('hello'));
    const strange = readFileSync(made.stranger);
    const strangeKey = readFileSync(made.stranger.replace(/\.pem$/, '.key'));
    for (const options of [{}, { cert: strange, key: strangeKey }]) {
      // Under TLS 1.3 the client's handshake is through before the server has seen its certificate.
      const client = await secure(port, options);
      client.write(get);
      await until('it is closed', () => client.closed);
      assert.equal(client.text(), '');
    }
    await until('told', () => refused.length === 2);
    assert.deepEqual(
      refused.map(({ error }) => error),
      ['ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    );
  });

  test('plain HTTP is no answer, and the reason is reported', async (t) => {
    const { port, refused } = await listening(t, () => assert.fail('handled'));
    const client = await silent(port, get);
    await until('it is closed', () => client.socket.closed);
    assert.equal(refused[0]?.error, 'ERR_SSL_HTTP_REQUEST');
  });

  test('G14 a stop does not wait for handshakes', async () => {
    const server = createListener((_, response) => response.end(), {
      times: { ...dataTimes, ...noHurry },
      tls: {
        cert: readFileSync(made.server.cert, 'utf8'),
        key: new Secret(readFileSync(made.server.key, 'utf8')),
        files: [],
      },
    });
    const url = await listen(server, { host: '127.0.0.1', port: 0 });
    const client = await silent(Number(new URL(url).port));
    await closeServer(server);
    client.socket.destroy();
  });

  test('G14 how long a handshake has taken is reported by the clock that was given', async (t) => {
    let now = 5;
    const { server, port } = await listening(t, (_, response) => response.end(), {
      clock: { now: () => now },
    });
    const accepted = once(server, 'connection');
    const client = await silent(port);
    const [socket] = (await accepted) as [Socket];
    now += 999;
    closeHandshakes(server, 1000);
    assert.equal(socket.destroyed, false);
    now += 1;
    closeHandshakes(server, 1000);
    assert.equal(socket.destroyed, true);
    client.socket.destroy();
  });
});
