/** Stalled connections hold no slot (G9, G10), and no work is done for clients that left (F72, F77). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createListener, dataTimes, listen } from '../../src/http/listen.ts';
import { clientDialects } from '../support/dialects.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { answerIn, replying } from '../upstream/reply.ts';
import {
  openRaw,
  rawHead,
  startOverloadRig,
  until,
  type OverloadRig,
  type RawConnection,
} from './overload-rig.ts';

const soon = { ...dataTimes, restMs: 100, stalledMs: 100 };

interface Listening {
  readonly url: string;
  readonly server: Server;
  connections(): Promise<number>;
  /** How many have come, those that have gone included. */
  came(): number;
}

async function listening(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  times = soon,
): Promise<Listening> {
  const server = createListener(handle, { times });
  let came = 0;
  server.on('connection', () => (came += 1));
  const url = await listen(server, { host: '127.0.0.1', port: 0 });
  const connections = (): Promise<number> =>
    new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  return { url, server, connections, came: () => came };
}

/** A client that never reads, and never ends its side. */
async function deaf(url: string, bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.pause();
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

describe('connections that are of no use', { timeout: 500_000 }, () => {
  test('G10 the rest of a body that was answered is not waited for', async (t) => {
    const { url, server } = await listening((_, response) => response.end('no'));
    t.after(() => server.close());
    const connection = await openRaw(url, 'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n');
    await connection.closed;
    assert.match(connection.text(), /^HTTP\/1\.1 200 /);
  });

  test('G10 a body whose rest comes leaves the connection of use', async (t) => {
    // Time enough for the rest, which is sent behind the answer.
    const { url, server } = await listening((_, response) => response.end('no'), dataTimes);
    t.after(() => server.close());
    const request = 'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n';
    const connection = await openRaw(url, request);
    await until('an answer', () => connection.text().includes('no'));
    connection.socket.write(`abc${request}`);
    await connection.closed;
    assert.equal(connection.text().match(/HTTP\/1\.1 200 /g)?.length, 2);
  });

  test('G9 G10 a client that takes no answers is cut, also where the answers wait for each other', async (t) => {
    const large = Buffer.alloc(4 * 1024 * 1024);
    const { url, server, connections, came } = await listening((_, response) => {
      response.end(large);
    });
    t.after(() => server.close());
    const one = await deaf(url, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const two = await deaf(url, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(5));
    await until('two connections', () => came() === 2);
    await until('none', async () => (await connections()) === 0);
    one.destroy();
    two.destroy();
  });

  for (const [name, bytes] of [
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
    ['what is no HTTP', 'hello\r\n\r\n'],
    ['an expectation', 'POST / HTTP/1.1\r\nhost: x\r\nexpect: a\r\ncontent-length: 1\r\n\r\n'],
  ] as const) {
    test(`G10 ${name}: nothing waits for a client that does not end its side`, async (t) => {
      const { url, server, connections, came } = await listening((_, response) => {
        response.end();
      });
      t.after(() => server.close());
      const client = await deaf(url, bytes);
      await until('a connection', () => came() === 1);
      await until('none', async () => (await connections()) === 0);
      client.destroy();
    });
  }

  test('G10 a tunnel that is reset has no effect on others', async (t) => {
    const { url, server, connections } = await listening((_, response) => response.end());
    t.after(() => server.close());
    for (let i = 0; i < 50; i++) {
      const client = await deaf(url, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n');
      client.resetAndDestroy();
    }
    await until('none', async () => (await connections()) === 0);
  });

  test('F77 more than 250 requests that wait for their turn end the connection', async (t) => {
    let handled = 0;
    const { url, server } = await listening(() => (handled += 1));
    t.after(() => server.close());
    const connection = await openRaw(url, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(252));
    await connection.closed;
    assert.equal(connection.text(), '');
    assert.equal(handled, 1, 'nobody works for answers that may never go out');
  });

  test('F77 the hundredth answer of a connection is its last, and what stands behind it is not looked at', async (t) => {
    let handled = 0;
    const { url, server } = await listening((_, response) => {
      handled += 1;
      response.end('good');
    });
    t.after(() => server.close());
    const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
    const one = await openRaw(url, '');
    for (let answers = 1; answers <= 99; answers++) {
      one.socket.write(get);
      await until('an answer', () => one.text().split('good').length === answers + 1);
    }
    assert.doesNotMatch(one.text(), /connection: close/i);
    one.socket.write(get.repeat(3));
    await one.closed;
    assert.equal(one.text().match(/HTTP\/1\.1 200/g)?.length, 100);
    assert.equal(one.text().match(/connection: close/gi)?.length, 1);
    assert.equal(handled, 100);
    // Others have a count of their own.
    const next = await openRaw(url, get);
    await until('an answer', () => next.text().endsWith('good'));
    assert.doesNotMatch(next.text(), /connection: close/i);
    next.socket.destroy();
  });

  test('G10 a body has a rate to keep and no time in all; a head has its ten seconds', (t) => {
    const server = createListener(() => undefined);
    t.after(() => server.close());
    assert.equal(server.requestTimeout, 0);
    assert.equal(server.headersTimeout, 9000);
  });

  test('B1 S18 a good request gets its own answer, whatever stands behind it', async (t) => {
    const { url, server } = await listening((_, response) => {
      setImmediate(() => setImmediate(() => response.end('good')));
    });
    t.after(() => server.close());
    const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
    for (const behind of [
      'what is that?\r\n\r\n',
      'GET / HTTP/1.1\r\nhost: x\r\nexpect: a\r\n\r\n',
    ]) {
      const connection = await openRaw(url, get + behind);
      await connection.closed;
      assert.deepEqual(connection.text().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200']);
      assert.ok(connection.text().endsWith('good'));
    }
  });
});

describe('calls on one connection', { timeout: 500_000 }, () => {
  let rig: OverloadRig;
  before(async () => {
    rig = await startOverloadRig();
  });
  after(() => rig.stop());

  function calls(models: readonly string[]): Promise<RawConnection> {
    const requests = models.map((model) => {
      const body = JSON.stringify(requestBody('chat', { model, stream: true }));
      return rawHead(Buffer.byteLength(body)) + body;
    });
    return openRaw(rig.gateway.url, requests.join(''));
  }

  test('F77 they are answered in their order, and asked in it', async () => {
    const gate = Promise.withResolvers<void>();
    const held = rig.play('chat', {
      body: [gate.promise, '{"error":{"message":"late"}}'],
      status: 400,
    });
    const quick = rig.play('chat', replying('chat', { text: 'second' }));
    const connection = await calls([held.model, quick.model]);
    await held.script.request(0);
    assert.equal(quick.script.requests.length, 0);
    gate.resolve();
    await until('both', () => connection.text().includes('[DONE]'));
    assert.match(connection.text(), /^HTTP\/1\.1 400 [^]*late[^]*HTTP\/1\.1 200 [^]*"ond"[^]*DONE/);
    connection.socket.destroy();
  });

  for (const dialect of clientDialects) {
    for (const stream of [false, true]) {
      test(`F-10 of 120 at once a hundred are answered, in order, and no more are asked: ${dialect}, ${stream ? 'streams' : 'documents'}`, async () => {
        const { model, script } = rig.play(dialect, ({ json }) =>
          answerIn(dialect, { text: `to-${String(json['user'] ?? json['top_k'])}.` }, stream),
        );
        const path = endpointOf[dialect];
        const requests = Array.from({ length: 120 }, (_, number) => {
          const more = dialect === 'chat' ? { user: String(number) } : { top_k: number + 1 };
          const body = JSON.stringify(requestBody(dialect, { model, stream, more }));
          const head = rawHead(Buffer.byteLength(body));
          return head.replace('/v1/chat/completions', path) + body;
        });
        const connection = await openRaw(rig.gateway.url, requests.join(''));
        await connection.closed;
        const answers = connection.text().match(/HTTP\/1\.1 200/g) ?? [];
        assert.equal(answers.length, 100);
        const first = dialect === 'chat' ? 0 : 1;
        // A Responses stream tells each text as pieces, and whole.
        const pieces =
          stream && dialect === 'responses'
            ? /"delta":"([^"]*)"/g
            : /"(?:text|content)":"([^"]*)"/g;
        const told = connection
          .text()
          .split('HTTP/1.1 200')
          .slice(1)
          .map((answer) => [...answer.matchAll(pieces)].map(([, piece]) => piece).join(''));
        assert.deepEqual(
          told,
          Array.from({ length: 100 }, (_, at) => `to-${at + first}.`),
        );
        assert.equal(script.requests.length, 100, 'none is paid for nothing');
        assert.equal(connection.text().match(/connection: close/gi)?.length, 1);
        await until('no call', async () => (await rig.status())['calls_held'] === 0);
      });
    }
  }

  test('F72 F77 a client that leaves ends those that wait for their turn as well', async () => {
    const hanging = { body: [': hi\n\n'], ending: 'hang' } as const;
    const first = rig.play('chat', hanging);
    const second = rig.play('chat', hanging);
    const connection = await calls([first.model, second.model]);
    const asked = await first.script.request(0);
    connection.socket.destroy();
    assert.equal(await asked.closed, 'gateway');
    assert.equal(second.script.requests.length, 0, 'it had not had its turn');
    await until('no call', async () => (await rig.status())['calls_held'] === 0);
    assert.equal((await rig.status())['body_memory'], 0);
  });
});
