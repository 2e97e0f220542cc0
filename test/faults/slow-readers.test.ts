/** G9 F76: clients that stop reading: little is held for them, the upstream waits, and then they are cut. */
import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { clientKey } from '../support/keys.ts';
import { clientDialects, upstreamDialects } from '../support/dialects.ts';
import { numberAt, objectAt, type AnyDialect } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { joined } from '../upstream/reply.ts';
import { everyBytes } from '../upstream/scripted.ts';
import { begun, frame, textPiece } from './stream-pieces.ts';

const maxHeld = 256 * 1024;
const offered = 64 * 1024 * 1024;
let rig: Rig;
/** The answers of this process that are being written, by Node's own word. */
const responses = new Set<ServerResponse>();
const started = (message: unknown): void => {
  const { response } = message as { readonly response: ServerResponse };
  responses.add(response);
};
before(async () => {
  channel('http.server.request.start').subscribe(started);
  rig = await startRig({ clients: { stalled: '900ms' } });
});
after(async () => {
  channel('http.server.request.start').unsubscribe(started);
  await rig.stop();
});

/** Asks and reads nothing more than the head. */
function askAndStall(dialect: AnyDialect, model: string): Socket {
  const { hostname, port } = new URL(rig.gateway.url);
  const body = JSON.stringify(requestBody(dialect, { model, stream: true }));
  const socket = connect({ port: Number(port), host: hostname });
  socket.on('error', () => undefined);
  socket.write(
    `POST ${endpointOf[dialect]} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${clientKey}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  socket.once('data', () => socket.pause());
  return socket;
}

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    const mode = `${dialect === upstream ? 'relay' : 'translate'} from ${upstream}`;
    test(`G9 F76 clients that stop reading, ${dialect}, ${mode}`, async () => {
      const text = 'word '.repeat(200);
      let sent = 0;
      const piece = Buffer.from(
        joined(Array.from({ length: 64 }, () => frame(upstream, textPiece(upstream, text)))),
      );
      const split = (bytes: Buffer): readonly Buffer[] => {
        sent += bytes.length;
        return everyBytes(16 * 1024)(bytes);
      };
      const pieces = Array.from({ length: Math.floor(offered / piece.length) }, () => piece);
      const { model, script } = rig.play(upstream, {
        body: [begun(upstream), ...pieces],
        framing: 'chunked',
        split,
      });
      responses.clear();
      let held = 0;
      const watch = setInterval(() => {
        for (const response of responses) held = Math.max(held, response.writableLength);
      }, 10);
      const socket = askAndStall(dialect, model);
      const request = await script.request(0);
      assert.equal(await request.closed, 'gateway', 'the upstream is let go');
      clearInterval(watch);
      socket.destroy();
      assert.ok(held > 0, 'the client was seen to be full');
      assert.ok(held <= maxHeld, `${held} bytes were held`);
      assert.ok(sent < offered, 'the upstream had to wait');
      const [row] = await rig.gateway.callRows(model, 1);
      assert.deepEqual([row?.['outcome'], row?.['error']], ['failed', 'interrupted'], 'LP');
      assert.equal(row?.['usage_source'], 'estimated');
      assert.ok(numberAt(objectAt(row ?? {}, 'charged'), 'output_tokens') > 0);
      await rig.gateway.noneLeft();
    });
  }
}
