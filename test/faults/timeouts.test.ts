/** Every wait ends (R7, J2): connection refused, silence before and behind the headers. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { assertErrorBody } from '../support/legality.ts';
import {
  clientDialects,
  sseUpstreams,
  upstreamDialects,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { endingOf, objectAt, type AnyDialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { providerAt } from '../support/gateway.ts';
import { requestBody } from '../support/requests.ts';
import { freePort } from '../support/server-process.ts';
import { answerIn } from '../upstream/reply.ts';
import { errorTable as e, lookOf, refused, rowsWith } from './fault-row.ts';
import { runRows } from './run-rows.ts';
import { begun, frame } from './stream-pieces.ts';

const attempts = { stream: 2, collected: 2, document: 1 } as const;

runRows(
  // Silence is borne once more where a stream was asked for (R2).
  rowsWith(
    { impatient: 'to begin', hangs: true, outcome: refused(e.e13), attempts, maybeBilled: true },
    [
      { id: 'F8', name: 'no headers', play: () => ({ body: '', mute: true, ending: 'hang' }) },
      {
        id: 'F8',
        name: 'headers, then silence',
        play: (_, stream) => ({
          headers: stream ? {} : { 'content-type': 'application/json' },
          body: [],
          framing: 'chunked',
          ending: 'hang',
        }),
      },
      {
        id: 'F8 F49',
        name: 'comments only: a ping is no progress',
        play: () => ({ body: [': ping\n\n', ': ping\n\n'], framing: 'chunked', ending: 'hang' }),
        shapes: ['stream'],
        upstream: sseUpstreams,
      },
      {
        id: 'F8',
        name: 'half a document, then silence',
        play: () => ({
          headers: { 'content-type': 'application/json' },
          body: ['{"id":'],
          framing: 'chunked',
          ending: 'hang',
        }),
        shapes: ['document'],
      },
    ],
  ),
);

interface Pair {
  readonly dialect: AnyDialect;
  readonly upstream: UpstreamDialect;
  readonly stream: boolean;
}

function spareName({ dialect, upstream, stream }: Pair): string {
  return `spare-${dialect}-${upstream}-${stream ? 'stream' : 'document'}`;
}

describe('with upstreams that do not exist, and a total time limit', () => {
  let rig: Rig;
  before(async () => {
    const port = await freePort();
    rig = await startRig(
      {
        providers: Object.fromEntries(
          upstreamDialects.map((upstream) => [`gone-${upstream}`, providerAt(upstream, port)]),
        ),
        models: Object.fromEntries(
          upstreamDialects.flatMap((upstream) => [
            [
              `short-${upstream}`,
              { targets: [`up-${upstream}/short-${upstream}`], timeouts: { total: '400ms' } },
            ],
            // A route for each test: after some failures a target is not asked any more.
            ...clientDialects.flatMap((dialect) =>
              [true, false].map((stream): [string, JsonObject] => {
                const spare = spareName({ dialect, upstream, stream });
                return [
                  spare,
                  { targets: [`gone-${upstream}/${spare}`, `up-${upstream}/${spare}`] },
                ];
              }),
            ),
          ]),
        ),
      },
      { random: () => 0 },
    );
  });
  after(() => rig.stop());

  for (const dialect of clientDialects) {
    for (const upstream of upstreamDialects) {
      const mode = `${dialect === upstream ? 'relay' : 'translate'} from ${upstream}`;
      for (const stream of [true, false]) {
        const shape = stream ? 'stream' : 'document';

        test(`F1 connection refused, ${dialect}, ${mode}, ${shape}`, async () => {
          const body = requestBody(dialect, { model: `gone-${upstream}/x`, stream });
          const reply = await ask(rig, dialect, body);
          assert.equal(reply.status, lookOf(e.e11, dialect).status);
          const error = assertErrorBody(dialect, reply.json);
          assert.equal(error['type'], lookOf(e.e11, dialect).type);
          const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
          assert.equal(row['outcome'], 'failed');
          assert.ok(Object.values(objectAt(row, 'charged')).every((count) => count === null));
        });

        test(`R3 I1 a target that refuses is passed over, ${dialect}, ${mode}, ${shape}`, async () => {
          const spare = spareName({ dialect, upstream, stream });
          const script = rig.upstreams[upstream].script(
            spare,
            answerIn(upstream, { text: 'Hello' }, stream),
          );
          const body = requestBody(dialect, { model: spare, stream });
          const reply = await ask(rig, dialect, body);
          assert.equal(reply.status, 200, reply.text);
          assert.equal(reply.headers['x-gateway-attempts'], '2');
          assert.equal(script.requests.length, 1);
        });
      }

      test(`J2 R7 the total time limit ends a stream that does not end, ${dialect}, ${mode}`, async () => {
        const script = rig.upstreams[upstream].script(`short-${upstream}`, {
          body: [begun(upstream), frame(upstream, { type: 'ping', choices: [] })],
          framing: 'chunked',
          ending: 'hang',
        });
        const body = requestBody(dialect, { model: `short-${upstream}`, stream: true });
        const reply = await ask(rig, dialect, body);
        assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
        const request = await script.request(0);
        assert.equal(await request.closed, 'gateway');
      });
    }
  }
});
