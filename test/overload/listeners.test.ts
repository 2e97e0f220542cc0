/** How new connections are accepted while the event loop is busy (G6), and that no port is shared by default. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import {
  closeListeners,
  countConnections,
  createListener,
  listenWidely,
  openListeners,
} from '../../src/http/listen.ts';
import { closeServer } from '../../src/http/drain.ts';
import { until } from './overload-rig.ts';

async function openServer(t: TestContext) {
  const server = createServer((_, response) => response.end('in'));
  const url = await listenWidely(server, { host: '127.0.0.1', port: 0 });
  t.after(async () => {
    server.closeAllConnections();
    if (server.listening) await closeListeners(server);
  });
  return { server, url, port: Number(new URL(url).port) };
}

function callers(port: number, count: number, t: TestContext): readonly Socket[] {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  return sockets;
}

test('G6 those who stand before the door get in within a few turns of the loop', async (t) => {
  const { server, port } = await openServer(t);
  const count = 128;
  let turn = 0;
  const cameIn: number[] = [];
  server.on('connection', () => cameIn.push(turn));
  let over = false;
  const next = (): void => {
    turn += 1;
    if (!over) setImmediate(next);
  };
  const sockets = callers(port, count, t);
  await Promise.all(sockets.slice(0, 1).map((socket) => once(socket, 'connect')));
  next();
  await until('all are in', () => cameIn.length === count);
  over = true;
  const most = Math.max(
    ...[...new Set(cameIn)].map((at) => cameIn.filter((each) => each === at).length),
  );
  // One listening socket lets in one in a turn.
  assert.ok(process.platform !== 'linux' || most > 4, `${most} in a turn`);
});

test('G6 connections of every listener are served and counted, and waited for at the end', async (t) => {
  const { server, url, port } = await openServer(t);
  const sockets = callers(port, 64, t);
  await until('all are in', async () => (await countConnections(server)) === 64);
  for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const answers = await Promise.all(sockets.map((socket) => once(socket, 'data')));
  for (const [answer] of answers) assert.match(String(answer), /^HTTP\/1\.1 200 /);
  let closed = false;
  const closing = closeListeners(server).then(() => (closed = true));
  await assert.rejects(fetch(url));
  // Answered ones wait for nothing and are closed; the server is not closed before the last one is out.
  await Promise.all(sockets.map((socket) => (socket.closed ? undefined : socket.destroy())));
  await closing;
  assert.equal(closed, true);
  assert.equal(await countConnections(server), 0);
});

/** What a client got who asks as soon as he is connected, and how it ended. */
async function ask(socket: Socket): Promise<string> {
  let got = '';
  socket.on('data', (data) => (got += String(data)));
  socket.on('error', (error) => (got += error.message));
  socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'));
  await once(socket, 'close');
  return got.split('\r\n')[0] ?? '';
}

test('G14 connections in the accept queue at the close are accepted and served, also when accepting them takes two seconds', async (t) => {
  const server = createListener((_, response) => response.end('in'));
  // Those in the queue take two seconds together, as on a busy machine.
  const tick = new Int32Array(new SharedArrayBuffer(4));
  server.on('connection', () => Atomics.wait(tick, 0, 0, 10));
  const url = await listenWidely(server, { host: '127.0.0.1', port: 0 });
  const sockets = callers(Number(new URL(url).port), 200, t);
  const answers = Promise.all(sockets.map((socket) => ask(socket)));
  // One is in, and the system has let the others stand in its queues.
  await once(server, 'connection');
  await closeServer(server);
  assert.deepEqual(new Set(await answers), new Set(['HTTP/1.1 200 OK']));
  await assert.rejects(fetch(url));
});

test('F92 a port on which a gateway listens is refused, though its doors share it', async (t) => {
  const { port } = await openServer(t);
  const second = createServer();
  await assert.rejects(openListeners(second, { host: '127.0.0.1', port }), { code: 'EADDRINUSE' });
  assert.equal(second.listening, false);
});

test('F92 a port that is free again is taken with all doors', async (t) => {
  const { server, port } = await openServer(t);
  await closeListeners(server);
  const next = createServer((_, response) => response.end('next'));
  t.after(() => closeListeners(next));
  assert.equal(await listenWidely(next, { host: '127.0.0.1', port }), `http://127.0.0.1:${port}`);
  assert.equal(await (await fetch(`http://127.0.0.1:${port}`)).text(), 'next');
  next.closeAllConnections();
});
