/** What came before a failure is handed over before it, also to whoever takes nothing at that moment (F40, G9). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { constants, gzipSync } from 'node:zlib';
import { HttpClient } from '../../../../src/wire/http-client.ts';
import { until } from '../../../overload/overload-rig.ts';
import { sendAndSee } from './seen.ts';

/** A connection whose reads the test makes, in whichever moment: TLS hands over several that came in one. */
function open() {
  const socket = new Duplex({ read: () => undefined, write: (_bytes, _form, done) => done() });
  const client = new HttpClient({
    connector: () => (_options, callback) => queueMicrotask(() => callback(null, socket as never)),
  });
  const { exchange, seen, taking } = sendAndSee(client, 'http://127.0.0.1:1');
  const body = (): string => seen.filter((each) => /^[a-z]+$/.test(each)).join('');
  return { client, exchange, seen, socket, taking, body };
}

const chunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const head = (more = ''): Buffer =>
  Buffer.from(`HTTP/1.1 200 OK\r\n${more}transfer-encoding: chunked\r\n\r\n`);
const flushed = { finishFlush: constants.Z_SYNC_FLUSH };
/** Longer than what the decompressor hands over at once. */
const long = 'abcdefgh'.repeat(6000);

test('F40 G9 reads behind a pause are handed over before the failure that came with them', async () => {
  const { exchange, seen, socket, taking } = open();
  taking.data = () => exchange.pause();
  await until('it is connected', () => socket.listenerCount('data') > 0);
  socket.emit('data', Buffer.concat([head(), chunk(Buffer.from('one'))]));
  socket.emit('data', chunk(Buffer.from('two')));
  socket.emit('data', chunk(Buffer.from('three')));
  socket.destroy();
  await once(socket, 'close');
  assert.deepEqual(seen, ['200', 'one']);
  taking.data = () => undefined;
  exchange.resume();
  assert.deepEqual(seen, ['200', 'one', 'twothree', 'upstream_unavailable']);
});

test('F72 G9 a reader that left while it was paused gets no failure', async () => {
  const { exchange, seen, socket, taking } = open();
  taking.data = () => exchange.pause();
  await until('it is connected', () => socket.listenerCount('data') > 0);
  socket.emit('data', Buffer.concat([head(), chunk(Buffer.from('one'))]));
  socket.emit('data', chunk(Buffer.from('two')));
  socket.destroy();
  await once(socket, 'close');
  exchange.abort();
  exchange.resume();
  assert.deepEqual(seen, ['200', 'one']);
});

test('F32 F40 a compressed answer that breaks off is read to there', async () => {
  const { seen, socket, body } = open();
  await until('it is connected', () => socket.listenerCount('data') > 0);
  const bytes = gzipSync(long, flushed);
  socket.emit('data', Buffer.concat([head('content-encoding: gzip\r\n'), chunk(bytes)]));
  socket.destroy();
  await until('the failure is told', () => seen.includes('upstream_unavailable'));
  assert.equal(body(), long);
  assert.equal(seen.at(-1), 'upstream_unavailable');
});

test('F32 F40 G9 the same with a reader that takes a piece at a time', async () => {
  const { exchange, seen, socket, taking, body } = open();
  taking.data = () => exchange.pause();
  await until('it is connected', () => socket.listenerCount('data') > 0);
  const bytes = gzipSync(long, flushed);
  socket.emit('data', Buffer.concat([head('content-encoding: gzip\r\n'), chunk(bytes)]));
  socket.destroy();
  await once(socket, 'close');
  for (let pieces = 2; body().length < long.length; pieces += 1) {
    await until('more comes', () => seen.length === pieces);
    assert.ok(!seen.includes('upstream_unavailable'), `${body().length} of ${long.length}`);
    exchange.resume();
  }
  await until('the failure is told', () => seen.includes('upstream_unavailable'));
  assert.equal(body(), long);
  assert.equal(seen.at(-1), 'upstream_unavailable');
});

test('F32 F44 G9 what could be decompressed comes before that the rest cannot', async () => {
  const { exchange, seen, socket, taking, body } = open();
  taking.data = () => exchange.pause();
  await until('it is connected', () => socket.listenerCount('data') > 0);
  const bytes = gzipSync(long, flushed);
  socket.emit('data', Buffer.concat([head('content-encoding: gzip\r\n'), chunk(bytes)]));
  await until('it has begun', () => seen.length > 1);
  socket.emit('data', chunk(Buffer.alloc(64, 0xff)));
  await new Promise((resolve) => setTimeout(resolve, 50));
  taking.data = () => undefined;
  exchange.resume();
  await until('the failure is told', () => seen.includes('upstream_invalid'));
  assert.equal(body(), long);
  assert.equal(seen.at(-1), 'upstream_invalid');
});
