/** Answers that wait for their turn of the event loop come whole, in order, and are held back (G6, G9). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { getHeapSpaceStatistics } from 'node:v8';
import type { Deferrable } from '../../../../src/core/event-loop-budget.ts';
import { HttpClient } from '../../../../src/wire/http-client.ts';
import { until } from '../../../overload/overload-rig.ts';
import { sendAndSee } from './seen.ts';

/** A server that answers with what the test writes, and a client whose turns are always full. */
async function open(t: TestContext) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const waiting: Deferrable[] = [];
  const turns = { exhausted: true, defer: (work: Deferrable) => void waiting.push(work) };
  const client = new HttpClient({ turns });
  t.after(async () => {
    await client.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { exchange, seen, taking } = sendAndSee(client, origin);
  await until('the request is there', () => sockets.length === 1);
  const socket = sockets[0];
  assert.ok(socket !== undefined);
  const write = async (bytes: string): Promise<void> => {
    const before = socket.bytesWritten;
    socket.write(bytes);
    await until('it was sent', () => socket.bytesWritten > before);
  };
  return { client, exchange, origin, seen, socket, sockets, taking, waiting, write };
}

const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

test('G6 what comes while an answer waits continues with it in one, and its end behind it', async (t) => {
  const { client, seen, waiting, write } = await open(t);
  await write(`${head}3\r\none\r\n`);
  await until('it waits', () => waiting.length === 1);
  await write('3\r\ntwo\r\n0\r\n\r\n');
  await until('all is read', () => client.counts()[0]?.idle === 1);
  assert.deepEqual(seen, ['200']);
  assert.equal(waiting.length, 1);
  waiting[0]?.runDeferred();
  assert.deepEqual(seen, ['200', 'onetwo', 'end']);
});

test('G6 a failure stands behind what came before it', async (t) => {
  const { client, seen, socket, waiting, write } = await open(t);
  await write(`${head}3\r\none\r\n`);
  await until('it waits', () => waiting.length === 1);
  socket.destroy();
  await until('it is closed', () => client.counts()[0]?.open === 0);
  assert.deepEqual(seen, ['200']);
  waiting[0]?.runDeferred();
  assert.deepEqual(seen, ['200', 'one', 'upstream_unavailable']);
});

test('G6 I2 a reader that pauses gets the failure after its data when it resumes', async (t) => {
  const { client, exchange, seen, socket, taking, waiting, write } = await open(t);
  assert.equal(exchange.waits, false);
  await write(`${head}3\r\none\r\n`);
  await until('it waits', () => waiting.length === 1);
  assert.equal(exchange.waits, true);
  socket.destroy();
  await until('it is closed', () => client.counts()[0]?.open === 0);
  taking.data = () => exchange.pause();
  waiting[0]?.runDeferred();
  assert.deepEqual(seen, ['200', 'one']);
  assert.equal(exchange.waits, false);
  exchange.resume();
  assert.deepEqual(seen, ['200', 'one', 'upstream_unavailable']);
});

test('G6 a reader that is paused when its turn comes gets its data later, and one that left never', async (t) => {
  const { exchange, seen, waiting, write } = await open(t);
  await write(`${head}3\r\none\r\n`);
  await until('it waits', () => waiting.length === 1);
  exchange.pause();
  waiting[0]?.runDeferred();
  assert.deepEqual(seen, ['200']);
  exchange.resume();
  assert.deepEqual(seen, ['200', 'one']);
  await write('3\r\ntwo\r\n');
  await until('it waits again', () => waiting.length === 2);
  exchange.resume();
  assert.deepEqual(seen, ['200', 'one']);
  exchange.abort();
  waiting[1]?.runDeferred();
  assert.deepEqual(seen, ['200', 'one']);
});

test('G6 G9 an answer that waits is not read without end', async (t) => {
  const { seen, socket, waiting, write } = await open(t);
  await write(head);
  const frame = Buffer.from(`4000\r\n${'x'.repeat(0x4000)}\r\n`);
  const longest = 128 * 1024;
  // More than the system keeps on the way.
  for (let i = 0; i < 2048; i++) socket.write(frame);
  await until('it waits', () => waiting.length === 1);
  await until('nothing more is taken', async () => {
    const before = socket.writableLength;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return socket.writableLength === before;
  });
  assert.ok(socket.writableLength > 0);
  waiting[0]?.runDeferred();
  const came = seen.slice(1).join('').length;
  assert.ok(came > 0 && came <= longest, `${came} bytes held`);
  // It is read on afterwards.
  await until('more comes', () => waiting.length === 2);
});

test('G1 what has waited is garbage of the young generation, also where the call is old', async (t) => {
  const { client, origin, sockets, waiting } = await open(t);
  const [calls, rounds, windows] = [100, 10, 6];
  for (let call = 1; call < calls; call++) sendAndSee(client, origin);
  await until('all requests are there', () => sockets.length === calls);
  for (const socket of sockets) socket.write(head);
  const round = async (): Promise<void> => {
    for (const socket of sockets) socket.write('3\r\none\r\n');
    await until('all wait', () => waiting.length === calls);
    for (const work of waiting.splice(0)) work.runDeferred();
    fillYoungGeneration();
  };
  for (let i = 0; i < 10; i++) await round();
  // The least of several: a collection may promote what has nothing to do with chunks, but what keeps them keeps all.
  let kept = Infinity;
  for (let window = 0; window < windows; window++) {
    const before = oldBytes();
    for (let i = 0; i < rounds; i++) await round();
    kept = Math.min(kept, (oldBytes() - before) / (calls * rounds));
  }
  // An array, a chunk and what it lies in are more, besides its memory.
  assert.ok(kept < 200, `${kept} bytes kept of each chunk`);
});

function oldBytes(): number {
  const old = getHeapSpaceStatistics().find((space) => space.space_name === 'old_space');
  return old?.space_used_size ?? 0;
}

const garbage: { last?: object } = {};

/** Several times; what stays alive in it is old then. No full collection comes of it. */
function fillYoungGeneration(): void {
  for (let i = 0; i < 400_000; i++) garbage.last = [i, i, i, i, i, i, i, i];
}
