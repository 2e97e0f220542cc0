import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { ResponseSink } from '../../../src/server/send.ts';

interface Exchange {
  readonly client: Socket;
  readonly response: ServerResponse;
}

/** One request on a fresh server, at the moment the server has its headers. */
async function exchange(stop: (fn: () => void) => void): Promise<Exchange> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const client = connect(address.port, '127.0.0.1');
  const arrived = new Promise<ServerResponse>((resolve) => {
    server.on('request', (_request: IncomingMessage, response: ServerResponse) =>
      resolve(response),
    );
  });
  client.on('error', () => {});
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  stop(() => {
    client.destroy();
    server.close();
    server.closeAllConnections();
  });
  return { client, response: await arrived };
}

test('F71 a client that left before anybody looked is still told of', async (t) => {
  const { client, response } = await exchange((fn) => t.after(fn));
  const closed = once(response, 'close');
  client.destroy();
  await closed;
  const sink = new ResponseSink(response);
  await new Promise<void>((left) => sink.observe({ left, drained: () => {} }));
});

test('G9 a client that does not read the end of an answer is cut', async (t) => {
  const { client, response } = await exchange((fn) => t.after(fn));
  client.pause();
  const closed = once(response, 'close');
  const sink = new ResponseSink(response, 100);
  sink.start(200, []);
  sink.end(Buffer.alloc(32 * 1024 * 1024));
  await closed;
  assert.equal(response.writableFinished, false);
});

test('G9 a slow reader of the end of an answer is not cut', async (t) => {
  const { client, response } = await exchange((fn) => t.after(fn));
  const size = 32 * 1024 * 1024;
  let read = 0;
  let next = 0;
  const whole = new Promise<void>((resolve) => {
    client.on('data', (piece: Buffer) => {
      read += piece.length;
      if (read >= size) resolve();
      if (read < next) return;
      next += 1024 * 1024;
      client.pause();
      setTimeout(() => client.resume(), 50);
    });
  });
  // Less than all of it takes, and many times a pause.
  const sink = new ResponseSink(response, 1000);
  sink.start(200, ['content-length', String(size)]);
  sink.end(Buffer.alloc(size));
  await whole;
});
