/**
 * F40 G9: an upstream that breaks off while its client takes nothing. What had come by then is the client's, and
 * stands before the error; the ledger charges it like that of a client who reads.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createGzip } from 'node:zlib';
import { clientKey } from '../support/keys.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { endingOf, framesOf, numberAt, objectAt } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { startTestGateway, upstreamConfig, type TestGateway } from '../support/gateway.ts';
import { eventStreamType } from '../upstream/aws.ts';
import { joined } from '../upstream/reply.ts';
import { begun, type Bytes, frame, textPiece } from './stream-pieces.ts';

/** The gateway's answer that is being written, by Node's own word. */
let answer: ServerResponse | undefined;
const started = (message: unknown): void => {
  const { request: asked, response } = message as {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
  };
  if (asked.headers['x-seen'] !== undefined) answer = response;
};

/** Text that does not become much smaller, in a frame each; together longer than what gzip looks back. */
const texts = Array.from({ length: 40 }, () => randomBytes(500).toString('hex'));
/** How many of them were sent, the last few in one piece when the client had stopped. */
let sent = 0;
/** How many to send; until the client is full where it is undefined. */
let enough: number | undefined;
const upstream = createServer((asked, response) => {
  void serve(asked, response);
});
let gateway: TestGateway;

const pathOf: { readonly [D in UpstreamDialect]: RegExp } = {
  chat: /\/chat\/completions$/,
  messages: /\/messages$/,
  responses: /\/responses$/,
  gemini: /:streamGenerateContent/,
  converse: /\/converse-stream$/,
};

async function serve(asked: IncomingMessage, response: ServerResponse): Promise<void> {
  asked.resume();
  await once(asked, 'end');
  const path = asked.url ?? '';
  const dialect = upstreamDialects.find((each) => pathOf[each].test(path)) ?? assert.fail();
  const frames = texts.map((text) => frame(dialect, textPiece(dialect, text)));
  const type = dialect === 'converse' ? eventStreamType : 'text/event-stream';
  response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' });
  const zip = createGzip({ level: 1 });
  zip.on('data', (bytes: Buffer) => void response.write(bytes));
  const write = async (some: readonly Bytes[]): Promise<void> => {
    zip.write(joined(some));
    await new Promise<void>((resolve) => zip.flush(() => resolve()));
  };
  await write([begun(dialect)]);
  sent = 0;
  while (enough === undefined ? answer?.writableNeedDrain !== true : sent < enough) {
    await write(frames);
    sent += frames.length;
    // Each is taken before the next one comes: what is in front of the client's socket is short.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await write(frames);
  sent += frames.length;
  // It has come when the connection ends.
  await new Promise((resolve) => setTimeout(resolve, 50));
  response.socket?.destroy();
  await new Promise((resolve) => setTimeout(resolve, 100));
  upstream.emit('broken');
}

before(async () => {
  channel('http.server.request.start').subscribe(started);
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  gateway = await startTestGateway(upstreamConfig(() => port));
});
after(async () => {
  channel('http.server.request.start').unsubscribe(started);
  await gateway.stop();
  upstream.close();
});

for (const dialect of clientDialects) {
  for (const from of upstreamDialects) {
    const mode = `${dialect === from ? 'relay' : 'translate'} from ${from}`;
    test(`F40 G9 LP what came before a break reaches a slow client, ${dialect}, ${mode}`, async () => {
      const ask = async (name: string, slow: boolean) => {
        const model = `up-${from}/${name}`;
        const body = JSON.stringify(requestBody(dialect, { model, stream: true }));
        const asking = request(gateway.url + endpointOf[dialect], {
          method: 'POST',
          agent: false,
          headers: {
            authorization: `Bearer ${clientKey}`,
            'content-type': 'application/json',
            'x-seen': 'yes',
          },
        });
        answer = undefined;
        const broken = once(upstream, 'broken');
        asking.end(body);
        const [reply] = (await once(asking, 'response')) as [IncomingMessage];
        if (slow) await broken;
        reply.setEncoding('utf8');
        let text = '';
        for await (const piece of reply) text += String(piece);
        await broken;
        const [row] = await gateway.callRows(model, 1);
        assert.deepEqual([row?.['outcome'], row?.['error']], ['failed', 'stream_interrupted']);
        const tokens = numberAt(objectAt(row ?? {}, 'charged'), 'output_tokens');
        return { text, tokens };
      };
      enough = undefined;
      const slow = await ask('slow', true);
      const came = framesOf(slow.text).filter(({ data }) =>
        texts.some((one) => data.includes(one)),
      );
      assert.equal(came.length, sent, 'frames of all that was sent');
      assert.equal(endingOf(dialect, slow.text), 'error');
      enough = sent - texts.length;
      const fast = await ask('fast', false);
      assert.equal(fast.tokens, slow.tokens);
      await gateway.noneLeft();
    });
  }
}
