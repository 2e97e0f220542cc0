/** What the client on sockets does with connections: which it uses again, and which never. */
import assert from 'node:assert/strict';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { after, before, beforeEach, test } from 'node:test';
import type { GatewayError } from '../../../../src/core/errors.ts';
import type { Endpoint } from '../../../../src/core/provider.ts';
import { Pieces } from '../../../../src/json/pieces.ts';
import type { Exchange, UpstreamHandler } from '../../../../src/wire/exchange.ts';
import { HttpClient } from '../../../../src/wire/http-client.ts';
import { looked } from './seen.ts';

type Play = (socket: Socket, request: Buffer, turn: number) => void;

let server: Server;
let origin: string;
let now: number;
let client: HttpClient;
/** Each connection's number of requests. */
let connections: number[];
let play: Play;
const sockets = new Set<Socket>();

before(async () => {
  server = createServer((socket) => {
    const at = connections.push(0) - 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', (bytes) => {
      connections[at] = (connections[at] ?? 0) + 1;
      play(
        socket,
        bytes,
        connections.reduce((sum, count) => sum + count, 0),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(async () => {
  await client?.close();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  now = 1000;
  connections = [];
  client = new HttpClient({ now: () => now });
});
after(async () => {
  await client.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

interface Outcome {
  readonly status: number | undefined;
  readonly body: string;
  readonly error: GatewayError | undefined;
}

interface Sent {
  /** Once its connection may be used again. */
  readonly outcome: Promise<Outcome>;
  /** In the turn in which it is there. */
  readonly atOnce: Promise<Outcome>;
  readonly exchange: Exchange;
}

interface Wanted {
  readonly headers?: readonly string[];
  readonly endpoint?: Partial<Endpoint>;
  readonly sharer?: string;
  readonly body?: Buffer;
  readonly seen?: (chunk: Buffer) => void;
}

function send({
  headers = [],
  endpoint = {},
  sharer,
  body = Buffer.from('{}'),
  seen,
}: Wanted = {}): Sent {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  let status: number | undefined;
  let text = '';
  const handler: UpstreamHandler = {
    head: (given) => (status = given),
    data: (chunk) => {
      text += chunk.toString();
      seen?.(chunk);
    },
    end: () => resolve({ status, body: text, error: undefined }),
    failed: (error) => resolve({ status, body: text, error }),
  };
  const whole: Endpoint = { origin, path: '/x', headers: [], ...endpoint };
  const request = {
    endpoint: whole,
    method: 'POST',
    headers,
    body: Pieces.of(body),
    connectMs: 2000,
    ...(sharer === undefined ? {} : { sharer }),
  } as const;
  const exchange = client.send(request, handler);
  const outcome = promise.then(async (given) => {
    await looked();
    return given;
  });
  return { exchange, outcome, atOnce: promise };
}

const answer = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
const good: Play = (socket) => void socket.write(answer('ok'));

test('F7 a connection is used again, and not beyond its time', async () => {
  play = good;
  for (let i = 0; i < 3; i++) assert.equal((await send().outcome).body, 'ok');
  now += 3999;
  await send().outcome;
  assert.deepEqual(connections, [4]);
  now += 4001;
  await send().outcome;
  assert.deepEqual(connections, [4, 1]);
});

test('F7 a server that promises less or more time is believed, less a margin', async () => {
  play = (socket) => void socket.write(answer('ok', 'keep-alive: timeout=10\r\n'));
  await send().outcome;
  now += 7900;
  await send().outcome;
  assert.deepEqual(connections, [2]);
  play = (socket) => void socket.write(answer('ok', 'keep-alive: timeout=2\r\n'));
  await send().outcome;
  now += 1;
  await send().outcome;
  assert.deepEqual(connections, [3, 1]);
});

test('S18 one request at a time on a connection', async () => {
  const waiting: Socket[] = [];
  play = (socket) => void waiting.push(socket);
  const calls = [send(), send()];
  while (waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(connections, [1, 1]);
  for (const socket of waiting) socket.write(answer('ok'));
  for (const call of calls) assert.equal((await call.outcome).body, 'ok');
});

test('S18 a connection that said more than its answer, or wants to close, is not used again', async () => {
  const lasts: readonly string[] = [
    answer('ok') + answer('smuggled'),
    answer('ok', 'connection: close\r\n'),
    'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
  ];
  for (const [at, text] of lasts.entries()) {
    play = (socket) => void socket.write(text);
    assert.equal((await send().outcome).body, 'ok');
    play = good;
    assert.equal((await send().outcome).body, 'ok');
    // The good one is used again by the next bad one.
    assert.equal(connections.length, at + 2);
  }
});

test('S18 bytes without a request end the connection', async () => {
  play = good;
  await send().outcome;
  const [socket] = sockets;
  socket?.write(answer('smuggled'));
  await once(socket ?? server, 'close');
  assert.equal((await send().outcome).body, 'ok');
  assert.deepEqual(connections, [1, 1]);
});

test('F5 an answer before the request was sent whole is taken, and ends the connection', async () => {
  let answered = false;
  play = (socket) => {
    if (!answered) socket.write(`HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno`);
    answered = true;
    socket.pause();
  };
  const { status, body } = await send({ body: Buffer.alloc(30 << 20, 'a') }).outcome;
  assert.deepEqual([status, body], [413, 'no']);
  play = good;
  assert.equal((await send().outcome).body, 'ok');
  assert.equal(connections.length, 2);
});

test('F41 while it is paused nothing is handed over, not even the end', async () => {
  play = good;
  let chunks = 0;
  const call = send({ seen: () => (chunks += 1) });
  call.exchange.pause();
  await Promise.race([call.outcome, new Promise((resolve) => setTimeout(resolve, 50))]);
  assert.equal(chunks, 0);
  call.exchange.resume();
  assert.equal((await call.outcome).body, 'ok');
});

test('what was read stays as it was when the next read comes', async () => {
  const kept: Buffer[] = [];
  play = (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\none');
    setTimeout(() => socket.write('two'), 10);
    setTimeout(() => socket.write('six'), 20);
  };
  await send({ seen: (chunk) => kept.push(chunk) }).outcome;
  assert.equal(Buffer.concat(kept).toString(), 'onetwosix');
});

test('F72 after an abort no event is delivered, and the upstream sees it', async () => {
  play = () => undefined;
  const call = send();
  while (connections[0] !== 1) await new Promise((resolve) => setImmediate(resolve));
  call.exchange.abort();
  const [socket] = sockets;
  if (socket !== undefined && !socket.destroyed) await once(socket, 'close');
  const told = await Promise.race([call.outcome, Promise.resolve('nothing')]);
  assert.equal(told, 'nothing');
});

test('B67 S18 a header or path that could end early is not sent', async () => {
  play = good;
  const bad: readonly Wanted[] = [
    { headers: ['x-a', 'b\r\nx-c: d'] },
    { headers: ['x-a', 'b\0'] },
    { headers: ['x-a', 'ŧ'] },
    { headers: ['x a', 'b'] },
    { headers: ['content-length', '1'] },
    { headers: ['Transfer-Encoding', 'chunked'] },
    { endpoint: { path: '/x HTTP/1.1\r\n' } },
    { endpoint: { headers: ['connection', 'close'] } },
  ];
  for (const wanted of bad) {
    const { error } = await send(wanted).outcome;
    assert.equal(error?.code, 'upstream_invalid');
  }
  assert.equal(
    connections.reduce((sum, count) => sum + count, 0),
    0,
  );
  assert.equal((await send().outcome).body, 'ok');
});

test('the request says what was asked for, once', async () => {
  let request = '';
  play = (socket, bytes, turn) => {
    request = bytes.toString('latin1');
    good(socket, bytes, turn);
  };
  await send({ endpoint: { headers: ['X-Key', 'é'] }, headers: ['x-own', 'a'] }).outcome;
  const host = origin.slice('http://'.length);
  assert.equal(
    request,
    `POST /x HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\nX-Key: é\r\nx-own: a\r\ncontent-length: 2\r\n\r\n{}`,
  );
});

test('a client that is closed fails what runs', async () => {
  play = () => undefined;
  const call = send();
  while (connections[0] !== 1) await new Promise((resolve) => setImmediate(resolve));
  await client.close();
  assert.equal((await call.outcome).error?.code, 'upstream_unavailable');
});

test('X-3 a connection is not used again before its socket was looked at once more', async () => {
  play = good;
  await send().atOnce;
  await send().outcome;
  assert.deepEqual(connections, [1, 1]);
  await send().outcome;
  assert.deepEqual(connections, [1, 2]);
});

test('X-3 what comes behind an answer before the next request closes the connection', async () => {
  play = (socket) => {
    socket.write(answer('ok'), () => socket.write(answer('again')));
  };
  for (let i = 0; i < 5; i++) assert.equal((await send().outcome).body, 'ok');
});

test('X-3 only who made a connection uses it again, where they are not for all', async () => {
  play = good;
  const ask = (sharer?: string) =>
    send({
      endpoint: { connections: 'per-key' },
      ...(sharer === undefined ? {} : { sharer }),
    }).outcome;
  await ask('key a');
  await ask('key b');
  await ask('key a');
  await ask('key b');
  assert.deepEqual(connections, [2, 2]);
  // Without a caller, and beside those that are for all.
  await ask();
  await ask();
  await send().outcome;
  await send().outcome;
  assert.deepEqual(connections, [2, 2, 1, 1, 2]);
  assert.deepEqual(
    client.counts().map(({ idle }) => idle),
    [3],
  );
});
