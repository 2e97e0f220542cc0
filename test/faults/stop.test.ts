/** Stopping (G14): running answers are finished, and connections without a request do not delay it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { clientDialects } from '../support/dialects.ts';
import { endingOf, readStream } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig } from '../support/rig.ts';
import { legalFrames, text } from './stream-pieces.ts';

async function opened(url: string, bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (bytes !== '') await new Promise((resolve) => socket.write(bytes, resolve));
  return socket;
}

describe('stop', { timeout: 500_000 }, () => {
  test(
    'connections that never asked for anything do not hold it up',
    { timeout: 500_000 },
    async () => {
      const rig = await startRig();
      const sockets = await Promise.all([
        opened(rig.gateway.url, ''),
        opened(rig.gateway.url, 'POST /v1/messages HTTP/1.1\r\nHos'),
        opened(rig.gateway.adminUrl, ''),
      ]);
      // An answer over another connection: the gateway has seen the silent ones by then.
      await ask(rig, 'chat', '{}');
      await rig.stop();
      for (const socket of sockets) socket.destroy();
    },
  );

  for (const dialect of clientDialects) {
    test(`a ${dialect} stream that runs is finished`, async () => {
      const rig = await startRig();
      const frames = legalFrames('chat');
      const gate = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const { model } = rig.play('chat', {
        body: [frames.slice(0, 2).join(''), gate.promise, frames.slice(2).join('')],
      });
      const body = requestBody(dialect, { model, stream: true });
      const reply = ask(rig, dialect, body, { onData: () => begun.resolve() });
      await begun.promise;
      const stopped = rig.gateway.stop();
      gate.resolve();
      const { text: sent } = await reply;
      assert.equal(endingOf(dialect, sent), 'proper');
      assert.equal(readStream(dialect, sent).text, text);
      await stopped;
      await Promise.all(Object.values(rig.upstreams).map((upstream) => upstream.close()));
    });
  }
});
