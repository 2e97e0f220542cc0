import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { ResponseSink } from '../../../src/http/send.ts';

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

/** The chunks of an answer, each by itself, as they came. */
function chunksIn(answer: string): readonly string[] {
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const found: string[] = [];
  let at = 0;
  while (at < body.length) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, lineEnd), 16);
    found.push(body.slice(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (size === 0) return found;
  }
  return found;
}

test('G9 a client that reads slowly gets all chunks in their order, and is told of when it has room', async (t) => {
  const { client, response } = await exchange((fn) => t.after(fn));
  client.pause();
  const sink = new ResponseSink(response);
  let drains = 0;
  let go = (): void => {};
  sink.observe({
    left: () => {},
    drained: () => {
      drains += 1;
      go();
    },
  });
  sink.start(200, []);
  const sent: string[] = [];
  const pieces = Array.from({ length: 4000 }, (_, i) => `${i}:${'x'.repeat(i % 3000)}`);
  let answer = '';
  client.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  client.pause();
  for (const piece of pieces) {
    sent.push(piece);
    // Bytes and texts in turn.
    const ready = sink.write(sent.length % 2 === 0 ? piece : Buffer.from(piece));
    if (ready) continue;
    const room = new Promise<void>((resolve) => {
      go = resolve;
    });
    client.resume();
    await room;
    client.pause();
  }
  client.resume();
  sink.end('last');
  while (!answer.endsWith('0\r\n\r\n')) await once(client, 'data');
  assert.ok(drains > 0);
  assert.deepEqual(chunksIn(answer), [...sent, 'last', '']);
});

test('F77 chunks of an answer that waits for its turn stand behind all of the one before', async (t) => {
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => responses.push(response));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const client = connect(address.port, '127.0.0.1').setEncoding('latin1');
  t.after(() => client.destroy());
  let answer = '';
  client.on('data', (text: string) => {
    answer += text;
  });
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2));
  while (responses.length < 2) await once(server, 'request');
  const [first, second] = responses.map((response) => new ResponseSink(response));
  assert.ok(first !== undefined && second !== undefined);
  for (const sink of [second, first]) sink.start(200, ['x-answer', sink === first ? '1' : '2']);
  for (let i = 0; i < 5; i += 1) {
    second.write(`second ${i}`);
    first.write(`first ${i}`);
  }
  first.end();
  second.write('second 5');
  await new Promise((resolve) => setImmediate(resolve));
  second.write('second 6');
  second.end();
  while (answer.split('0\r\n\r\n').length < 3) await once(client, 'data');
  const [one = '', two = ''] = answer.split('0\r\n\r\n');
  assert.deepEqual(
    chunksIn(one),
    [0, 1, 2, 3, 4].map((i) => `first ${i}`),
  );
  assert.deepEqual(
    chunksIn(two),
    [0, 1, 2, 3, 4, 5, 6].map((i) => `second ${i}`),
  );
});
