/** E2 R1: signs of life while an upstream says nothing, before its answer and in the middle of it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertErrorBody } from '../support/legality.ts';
import {
  clientDialects,
  pairs,
  upstreamDialects,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { sampledTests } from '../support/depth.ts';
import { endingOf, readStream, streamError } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { eventMessage } from '../upstream/aws.ts';
import { answerIn, errorIn, joined, seenOf, type Reply } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';
import { begun, type Bytes, rest, seen } from './stream-pieces.ts';

let rig: Rig;
/** A gateway that leaves chat clients alone. */
let quiet: Rig;
before(async () => {
  rig = await startRig(
    {
      clients: { keep_alive: '200ms' },
      models: Object.fromEntries(
        pairs.map(({ client: dialect, upstream }) => [
          `spare-${dialect}-${upstream}`,
          { targets: [`up-${upstream}/late-${dialect}`, `up-${upstream}/spare-${dialect}`] },
        ]),
      ),
    },
    { random: () => 0 },
  );
  quiet = await startRig({ clients: { keep_alive: { chat: 'never', messages: '200ms' } } });
});
after(() => Promise.all([rig.stop(), quiet.stop()]));

const reply: Reply = { text: 'At last.' };
/** A Responses stream has one of its own, so that at least two of them are the gateway's. */
const wanted = 3;
/** Comments, pings, and events of a Responses stream that say nothing new. */
const sign = /^(:|event: ping|event: response\.in_progress)|"delta":""/;

function signsIn(text: string): number {
  return text.split('\n\n').filter((each) => sign.test(each)).length;
}

/** Bytes of a stream that are no event of its answer. */
const comment = ': waiting\n\n';
const sayNothing: { readonly [D in UpstreamDialect]: Bytes } = {
  chat: comment,
  messages: comment,
  responses: comment,
  gemini: comment,
  converse: eventMessage({ ':message-type': 'event', ':event-type': 'initial-response' }, '{}'),
};

/** Resolves when the client has seen this number of keep-alives. */
function watch(count = wanted): {
  readonly enough: Promise<void>;
  readonly onData: (chunk: Buffer) => void;
} {
  const enough = Promise.withResolvers<void>();
  let text = '';
  const onData = (chunk: Buffer): void => {
    text += chunk.toString();
    if (signsIn(text) >= count) enough.resolve();
  };
  return { enough: enough.promise, onData };
}

/** `npm test` plays one in three of these. */
const cellTest = sampledTests(3);

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    const mode = `${dialect === upstream ? 'relay' : 'translate'} from ${upstream}`;
    const full = answerIn(upstream, reply, true);
    const whole = joined(full.body);

    for (const [name, first] of [
      ['nothing', ''],
      ['headers and what says nothing', sayNothing[upstream]],
    ] as const) {
      cellTest()(`E2 R1 ${name} before the answer, ${dialect}, ${mode}`, async () => {
        const { enough, onData } = watch();
        const answer: Answer = { ...full, body: [first, enough, whole] };
        const { model } = rig.play(upstream, first === '' ? { ...answer } : answer);
        const body = requestBody(dialect, { model, stream: true });
        const got = await ask(rig, dialect, body, { onData });
        assert.equal(got.status, 200, got.text);
        assert.equal(got.headers['x-accel-buffering'], 'no');
        assert.equal(got.headers['cache-control'], 'no-cache, no-transform');
        assert.deepEqual(readStream(dialect, got.text), seenOf(reply, model));
      });
    }

    cellTest()(`E2 a long gap in the middle of an answer, ${dialect}, ${mode}`, async () => {
      const { enough, onData } = watch();
      const { model } = rig.play(upstream, { body: [begun(upstream), enough, rest(upstream)] });
      const body = requestBody(dialect, { model, stream: true });
      const got = await ask(rig, dialect, body, { onData });
      assert.equal(endingOf(dialect, got.text), 'proper', got.text);
      assert.equal(readStream(dialect, got.text).text, seen.text);
    });

    cellTest()(
      `R1 another target may still answer behind a sign of life, ${dialect}, ${mode}`,
      async () => {
        const { enough, onData } = watch(1);
        const late = { body: ['', enough], framing: 'chunked', ending: 'fin' } as const;
        rig.upstreams[upstream].script(`late-${dialect}`, late);
        const spare = rig.upstreams[upstream].script(`spare-${dialect}`, full);
        const model = `spare-${dialect}-${upstream}`;
        const body = requestBody(dialect, { model, stream: true });
        const got = await ask(rig, dialect, body, { onData });
        assert.deepEqual(readStream(dialect, got.text), seenOf(reply, model));
        assert.equal(spare.requests.length, 1);
        const row = await rig.gateway.callRow(String(got.headers['x-request-id']));
        assert.equal(row['attempts'], 2);
      },
    );

    cellTest()(
      `R1 EM what fails behind a sign of life is an error frame, ${dialect}, ${mode}`,
      async () => {
        const { enough, onData } = watch(1);
        const refusal = errorIn(upstream, 400, 'no such thing');
        const { model } = rig.play(upstream, {
          ...refusal,
          rawHead: '',
          framing: 'close',
          body: [
            enough,
            `HTTP/1.1 400 No\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n`,
            typeof refusal.body === 'string' ? refusal.body : '',
          ],
        });
        const body = requestBody(dialect, { model, stream: true });
        const got = await ask(rig, dialect, body, { onData });
        assert.equal(got.status, 200);
        assert.equal(endingOf(dialect, got.text), 'error', got.text);
        assert.match(String(streamError(got.text)['message']), /no such thing/);
        const row = await rig.gateway.callRow(String(got.headers['x-request-id']));
        assert.equal(row['outcome'], 'failed');
      },
    );
  }
}

test('R1 a document waits for its status: no sign of life before it', async () => {
  const pause = new Promise((resolve) => setTimeout(resolve, 700));
  await Promise.all(
    clientDialects.map(async (dialect) => {
      const refusal = errorIn(dialect, 422, 'no');
      const { model } = rig.play(dialect, {
        rawHead: '',
        framing: 'close',
        body: [
          pause,
          'HTTP/1.1 422 No\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n',
          typeof refusal.body === 'string' ? refusal.body : '',
        ],
      });
      const got = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
      assert.equal(got.status, 422, got.text);
      assertErrorBody(dialect, got.json);
    }),
  );
});

test('R1 signs of life are switched off for chat, and only for chat', async () => {
  const { enough, onData } = watch(1);
  const refusal = errorIn('chat', 400, 'no');
  const { model, script } = quiet.play('chat', {
    rawHead: '',
    framing: 'close',
    body: [
      enough,
      'HTTP/1.1 400 No\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n',
      typeof refusal.body === 'string' ? refusal.body : '',
    ],
  });
  const chat = ask(quiet, 'chat', requestBody('chat', { model, stream: true }));
  await script.request(0);
  // Asked later, it gets its sign of life at a time at which the chat client would have had one.
  const body = requestBody('messages', { model, stream: true });
  const messages = await ask(quiet, 'messages', body, { onData });
  assert.equal(messages.status, 200, messages.text);
  assert.ok(signsIn(messages.text) > 0);
  // Nothing was sent to the chat client, so that its status is still the real one.
  const { status, text } = await chat;
  assert.equal(status, 400, text);
  assert.equal(signsIn(text), 0);
});
