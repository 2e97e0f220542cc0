/** F-3 F-9: bodies that stop in their middle, and bodies and heads that are written in unusual ways. */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { sampledTests } from '../support/depth.ts';
import { readDocument } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { eventStreamType } from '../upstream/aws.ts';
import { answerIn, errorIn, joined, seenOf, type Reply } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';

const reply: Reply = { text: 'Good day.' };
/** A document has all the time that it needs; what has begun must go on. */
const timeouts = { document: '9m', first_event: '9m', total: '10m', idle: '300ms' };
const kinds = ['document', 'blank', 'refusal'] as const;

let rig: Rig;
before(async () => {
  const routes = upstreamDialects.flatMap((upstream) =>
    clientDialects.flatMap((dialect) =>
      kinds.map((kind) => {
        const name = `${kind}-${dialect}-${upstream}`;
        const targets = [`up-${upstream}/half-${name}`, `up-${upstream}/whole-${name}`];
        return [name, { targets, timeouts }] as const;
      }),
    ),
  );
  rig = await startRig({ models: Object.fromEntries(routes) }, { random: () => 0 });
});
after(() => rig.stop());

function bodyOf(upstream: UpstreamDialect): string {
  return String(answerIn(upstream, reply, false).body);
}

const json = { 'content-type': 'application/json' };

/** Answers of which half comes, and then nothing. */
const halves: { readonly [K in (typeof kinds)[number]]: (upstream: UpstreamDialect) => Answer } = {
  document: (upstream) => {
    const whole = bodyOf(upstream);
    return { headers: json, body: [whole.slice(0, whole.length / 2)], ending: 'hang' };
  },
  blank: (upstream) => {
    const whole = bodyOf(upstream);
    return { headers: json, body: ['\n'.repeat(100), whole.slice(0, 9)], ending: 'hang' };
  },
  refusal: (upstream) => {
    const { body, status = 500 } = errorIn(upstream, 503, 'Come back later.');
    const text = typeof body === 'string' ? body : '';
    return { status, headers: json, body: [text.slice(0, 12)], ending: 'hang' };
  },
};

/** `npm test` plays one in five of these. */
const cellTest = sampledTests(5);

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    describe(`${dialect} client, ${upstream} upstream`, () => {
      for (const kind of kinds) {
        cellTest()(`F-3 half a ${kind}, then silence: the other target answers`, async () => {
          const model = `${kind}-${dialect}-${upstream}`;
          const script = rig.upstreams[upstream].script(`half-${model}`, halves[kind](upstream));
          rig.upstreams[upstream].script(`whole-${model}`, answerIn(upstream, reply, false));
          const got = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
          assert.equal(got.status, 200, got.text);
          assert.deepEqual(readDocument(dialect, got.json), seenOf(reply, model));
          assert.equal(got.headers['x-gateway-attempts'], '2');
          assert.equal(await (await script.request(0)).closed, 'gateway');
        });
      }

      cellTest()(
        'F-3 where there is no other target: 504, long before the time of a whole document',
        async () => {
          const model = `document-${dialect}-${upstream}`;
          rig.upstreams[upstream].script(`half-${model}`, halves.document(upstream));
          rig.upstreams[upstream].script(`whole-${model}`, halves.document(upstream));
          const got = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
          assert.equal(got.status, 504, got.text);
          const row = await rig.gateway.callRow(String(got.headers['x-request-id']));
          assert.equal(row['error'], 'timeout');
        },
      );

      for (const [name, before_] of [
        ['a byte order mark', '\ufeff'],
        ['a byte order mark and blank lines', '\ufeff\n \r\n'],
        ['blank lines, as signs of life', '\n'.repeat(300)],
      ] as const) {
        for (const split of [false, true]) {
          cellTest()(
            `F-9 ${name} before a document${split ? ', byte by byte' : ''}: read at the first try`,
            async () => {
              const { model } = rig.play(upstream, {
                headers: json,
                body: [before_ + bodyOf(upstream)],
                ...(split
                  ? { split: (bytes) => Array.from(bytes, (byte) => Buffer.of(byte)) }
                  : {}),
              });
              const got = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
              assert.equal(got.status, 200, got.text);
              assert.deepEqual(readDocument(dialect, got.json), seenOf(reply, model));
              assert.equal(got.headers['x-gateway-attempts'], '1');
            },
          );
        }

        cellTest()(`F-9 ${name} before an error: its words are read`, async () => {
          const refusal = errorIn(upstream, 400, 'The number of cats is too large.');
          const { model } = rig.play(upstream, {
            ...refusal,
            body: before_ + String(refusal.body),
          });
          const got = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
          assert.equal(got.status, 400, got.text);
          assert.match(got.text, /number of cats/);
          assert.doesNotMatch(got.text, /\\"error/);
        });
      }

      for (const stream of [false, true]) {
        for (const status of [200, 400]) {
          cellTest()(
            `F-9 a head of bare line feeds, ${status}, ${stream ? 'a stream' : 'a document'}`,
            async () => {
              const answer =
                status === 200
                  ? answerIn(upstream, reply, stream)
                  : errorIn(upstream, 400, 'No cats.');
              const body = joined(answer.body);
              const streamed = upstream === 'converse' ? eventStreamType : 'text/event-stream';
              const type = stream && status === 200 ? streamed : 'application/json';
              const { model, script } = rig.play(upstream, {
                rawHead: `HTTP/1.1 ${status} Well\ncontent-type: ${type}\ncontent-length: ${Buffer.byteLength(body)}\n\n`,
                framing: 'length',
                body,
              });
              const first = await ask(rig, dialect, requestBody(dialect, { model, stream }));
              assert.equal(first.status, status, first.text);
              assert.equal(
                await (
                  await script.request(0)
                ).closed,
                'gateway',
                'no second answer on it',
              );
              const second = await ask(rig, dialect, requestBody(dialect, { model, stream }));
              assert.equal(second.status, status);
              assert.equal(second.headers['x-gateway-attempts'], '1');
            },
          );
        }
      }
    });
  }
}
