/** The client goes away (F72–F75, E10), and one broken stream among many (E8). */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { clientKey } from '../support/keys.ts';
import { clientDialects, pairs, upstreamDialects } from '../support/dialects.ts';
import { sampledTests } from '../support/depth.ts';
import { endingOf, numberAt, objectAt, readStream, type AnyDialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';
import { begun, legalFrames, text } from './stream-pieces.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

/** Stands in the last event of a complete stream only. */
const lastMark = {
  chat: '[DONE]',
  messages: 'message_stop',
  responses: 'response.completed',
} as const;
const silence: Answer = { body: '', mute: true, ending: 'hang' };
const headersOnly: Answer = { body: [], framing: 'chunked', ending: 'hang' };

/** Asks, and leaves when `moment` comes. */
async function leave(
  dialect: AnyDialect,
  ask_: {
    readonly model: string;
    readonly stream: boolean;
    readonly when: (abort: () => void) => void;
    readonly onData?: () => void;
  },
): Promise<void> {
  const abort = new AbortController();
  const { model, stream, when, onData } = ask_;
  when(() => abort.abort());
  await ask(rig, dialect, requestBody(dialect, { model, stream }), {
    signal: abort.signal,
    ...(onData === undefined ? {} : { onData }),
  }).catch(() => undefined);
}

/** `npm test` plays one in three of these. */
const cellTest = sampledTests(3);

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    const mode = `${dialect === upstream ? 'relay' : 'translate'} from ${upstream}`;
    describe(`${dialect}, ${mode}`, () => {
      for (const stream of [true, false]) {
        const shape = stream ? 'stream' : 'document';
        for (const [name, answer] of Object.entries({
          'before the headers': silence,
          'before content': headersOnly,
        })) {
          cellTest()(`F72 E10 the client leaves ${name}, ${shape}`, async () => {
            const { model, script } = rig.play(upstream, answer);
            await leave(dialect, {
              model,
              stream,
              when: (abort) => void script.request(0).then(abort),
            });
            const request = await script.request(0);
            assert.equal(await request.closed, 'gateway');
            const [row] = await rig.gateway.callRows(model, 1);
            assert.equal(row?.['outcome'], 'canceled');
            assert.equal(script.requests.length, 1, 'F37 nothing is tried again');
          });
        }
      }

      cellTest()(
        'F73 E10 F7 the client leaves in mid-stream: what was sent is charged',
        async () => {
          const { model, script } = rig.play(upstream, {
            body: [begun(upstream)],
            framing: 'chunked',
            ending: 'hang',
          });
          const left = Promise.withResolvers<void>();
          await leave(dialect, {
            model,
            stream: true,
            when: (abort) => void left.promise.then(abort),
            onData: left.resolve,
          });
          const request = await script.request(0);
          assert.equal(await request.closed, 'gateway');
          const [row] = await rig.gateway.callRows(model, 1);
          assert.equal(row?.['outcome'], 'canceled');
          assert.equal(row?.['usage_source'], 'estimated');
          assert.ok(numberAt(objectAt(row ?? {}, 'charged'), 'output_tokens') > 0);
          assert.ok(numberAt(objectAt(row ?? {}, 'charged'), 'fresh_input_tokens') > 0);
        },
      );

      cellTest()('F74 a client that closes right behind the ending has completed', async () => {
        const { model } = rig.play(upstream, answerIn(upstream, { text }, true));
        await rawStream(dialect, model, (seen, socket) => {
          if (seen.includes(lastMark[dialect])) socket.destroy();
        });
        const [row] = await rig.gateway.callRows(model, 1);
        assert.equal(row?.['outcome'], 'ok');
        assert.equal(numberAt(objectAt(row ?? {}, 'charged'), 'output_tokens'), 7);
      });

      cellTest()('F75 a half-closed connection is a client that left', async () => {
        const { model, script } = rig.play(upstream, silence);
        const closed = rawStream(dialect, model, (_, socket) => void socket, true);
        const request = await script.request(0);
        assert.equal(await request.closed, 'gateway');
        await closed;
        const [row] = await rig.gateway.callRows(model, 1);
        assert.equal(row?.['outcome'], 'canceled');
      });

      cellTest()('E8 broken streams harm no other', async () => {
        const good = rig.play(upstream, { body: legalFrames(upstream), framing: 'chunked' });
        const bad = rig.play(upstream, {
          body: [begun(upstream)],
          framing: 'chunked',
          ending: 'fin',
        });
        const replies = await Promise.all(
          Array.from({ length: 40 }, (_, index) => {
            const { model } = index % 4 === 0 ? bad : good;
            return ask(rig, dialect, requestBody(dialect, { model, stream: true }));
          }),
        );
        replies.forEach((reply, index) => {
          const broken = index % 4 === 0;
          assert.equal(endingOf(dialect, reply.text), broken ? 'error' : 'proper');
          if (!broken) assert.equal(readStream(dialect, reply.text).text, text);
        });
        assert.equal((await rig.gateway.callRows(good.model, 30)).length, 30, 'F8');
        assert.equal((await rig.gateway.callRows(bad.model, 10)).length, 10, 'F8');
      });
    });
  }
}

test('E10 nothing is left of a hundred calls whose clients went away', async () => {
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const { client: dialect, upstream } = pairs[index % pairs.length] ?? assert.fail();
      const { model, script } = rig.play(upstream, index % 3 === 0 ? silence : headersOnly);
      const stream = index % 5 !== 0;
      await leave(dialect, { model, stream, when: (abort) => void script.request(0).then(abort) });
      const request = await script.request(0);
      assert.equal(await request.closed, 'gateway');
      await rig.gateway.callRows(model, 1);
    }),
  );
  await rig.gateway.noneLeft();
});

/** A streamed request on a bare socket; `halfClose` ends our side behind the request. */
function rawStream(
  dialect: AnyDialect,
  model: string,
  onText: (seen: string, socket: { destroy(): unknown }) => void,
  halfClose = false,
): Promise<void> {
  const { hostname, port } = new URL(rig.gateway.url);
  const body = JSON.stringify(requestBody(dialect, { model, stream: true }));
  const head = `POST ${endpointOf[dialect]} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${clientKey}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    let seen = '';
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString('latin1');
      onText(seen, socket);
    });
    socket.on('end', () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    if (halfClose) socket.end(head + body);
    else socket.write(head + body);
  });
}
