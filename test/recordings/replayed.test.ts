/** Every recorded answer through the gateway to each client (recordings/README.md, 1–4). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { isInSample, runsNow } from '../support/depth.ts';
import { assertErrorBody } from '../support/legality.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import {
  endingOf,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  streamError,
  textAt,
  type Seen,
  type SeenUsage,
} from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody, shown } from '../support/requests.ts';
import { allSdks } from '../support/sdks.ts';
import {
  expectedOfDocument,
  expectedOfStream,
  recordedDocuments,
  recordedStreams,
  whyOmitted,
  withRecordedIds,
  type RecordedStream,
} from './recorded.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

if (whyOmitted !== undefined) test('recordings', { skip: whyOmitted }, () => undefined);

/** A recording of a stream that was spliced from two: no client can make sense of it. */
const spliced = 'spliced-message-start';
/** A stream that tells of a failure before any content. */
const failed = 'openai-error.1';
/** An error body that names a parameter. */
const refusedParameter = 'reasoning-model-legacy-parameter-error';
/** The helper of the official client throws on the events of the patch itself, as it does at OpenAI. */
const patch = 'openai-apply-patch-tool.1';
/** Content parts as lists: legal for Mistral, beyond what the chat SDKs can add up. */
const listContent = 'mistral-reasoning';

// `npm test` plays three recordings in five, each with one client.
for (const [i, dialect] of clientDialects.entries()) {
  describe(`${dialect} client, documents`, () => {
    for (const [j, recorded] of recordedDocuments().entries()) {
      if (!isInSample(i + j, 5) || isObject(recorded.body['error'])) continue;
      test(`F2 F3 ${recorded.name}`, async () => {
        const { model } = rig.play(recorded.upstream, { body: recorded.text });
        const reply = await ask(
          rig,
          dialect,
          requestBody(dialect, { model, stream: false, more: shown(dialect) }),
        );
        assert.equal(reply.status, 200, reply.text);
        const expected = expectedOfDocument(recorded, dialect);
        assertSame(readDocument(dialect, reply.json), {
          ...expected,
          model,
        });
        await assertBooked(
          String(reply.headers['x-request-id']),
          expectedOfDocument(recorded).usage,
        );
        for (const sdk of allSdks.filter((each) => each.dialect === dialect)) {
          const answer = await sdk.connect({ url: rig.gateway.url }).plain({ model, text: 'Hi' });
          // It asks for no summary of the reasoning.
          const { reasoning } = dialect === 'responses' ? answer : expected;
          assertSame(answer, { ...expected, model, reasoning });
        }
      });
    }
  });

  describe(`${dialect} client, streams`, () => {
    for (const [j, recorded] of recordedStreams().entries()) {
      if (!isInSample(i + j, 5)) continue;
      if (recorded.name === spliced || recorded.name === failed) continue;
      test(`F2 F3 C3 ${recorded.name}`, async () => {
        const { model } = rig.play(recorded.upstream, {
          body: recorded.whole,
          framing: 'chunked',
        });
        const reply = await ask(
          rig,
          dialect,
          requestBody(dialect, { model, stream: true, more: shown(dialect) }),
        );
        assert.equal(reply.status, 200, reply.text);
        assert.equal(endingOf(dialect, reply.text), 'proper', reply.text.slice(-500));
        const expected = { ...expectedOfStream(recorded, dialect), model };
        assertSame(readStream(dialect, reply.text), expected);
        await assertBooked(String(reply.headers['x-request-id']), expectedOfStream(recorded).usage);
        await assertSdks(dialect, recorded, expected);
      });
    }
  });
}

/** Equal in all that the client's dialect can say. */
function assertSame(actual: Seen, expected: Seen): void {
  assert.equal(actual.model, expected.model, 'C4');
  assert.equal(actual.text, expected.text);
  assert.equal(actual.finish, expected.calls.length > 0 ? 'tools' : expected.finish);
  assert.deepEqual(withRecordedIds(actual.calls, expected.calls), expected.calls);
  assert.equal(actual.reasoning, expected.reasoning);
  // Where nothing is told the ledger has an estimate, and so has a client of another dialect.
  if (expected.usage !== undefined) assert.deepEqual(actual.usage, expected.usage);
}

/** The ledger holds the recorded numbers. */
async function assertBooked(requestId: string, usage: SeenUsage | undefined): Promise<void> {
  const row = await rig.gateway.callRow(requestId);
  assert.equal(row['outcome'], 'ok');
  if (usage === undefined) {
    assert.equal(row['usage_source'], 'estimated');
    return;
  }
  assert.equal(row['usage_source'], 'reported');
  const charged = objectAt(row, 'charged');
  assert.deepEqual(
    {
      fresh: numberAt(charged, 'fresh_input_tokens'),
      cacheRead: numberAt(charged, 'cache_read_tokens'),
      cacheWrite: numberAt(charged, 'cache_write_tokens'),
      output: numberAt(charged, 'output_tokens'),
      reasoning: numberAt(charged, 'reasoning_tokens'),
    },
    usage,
  );
}

async function assertSdks(
  dialect: ClientDialect,
  recorded: RecordedStream,
  expected: Seen,
): Promise<void> {
  if (recorded.name === patch && dialect === recorded.upstream) return;
  for (const sdk of allSdks.filter((each) => each.dialect === dialect)) {
    const client = sdk.connect({ url: rig.gateway.url });
    const final = await client.final({ model: expected.model, text: 'Hi' });
    if (recorded.name === listContent && dialect === 'chat') continue;
    assert.equal(final.text, expected.text, sdk.name);
    assert.deepEqual(withRecordedIds(final.calls, expected.calls), expected.calls, sdk.name);
    assert.equal(final.finish, expected.calls.length > 0 ? 'tools' : expected.finish, sdk.name);
    if (dialect === 'messages') assert.equal(final.reasoning, expected.reasoning, sdk.name);
  }
}

if (runsNow(true))
  describe('single recordings', { skip: whyOmitted ?? false }, () => {
    for (const dialect of clientDialects) {
      test(`F61 C3 a stream spliced from two has one ending, ${dialect}`, async () => {
        const recorded = recordedStreams().find(({ name }) => name === spliced);
        assert.ok(recorded !== undefined);
        const { model } = rig.play(recorded.upstream, {
          body: recorded.whole,
          framing: 'chunked',
        });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        if (endingOf(dialect, reply.text) === 'error') {
          assert.notEqual(textAt(streamError(reply.text), 'type'), '');
          return;
        }
        assert.equal(endingOf(dialect, reply.text), 'proper');
        for (const sdk of allSdks.filter((each) => each.dialect === dialect)) {
          await sdk.connect({ url: rig.gateway.url }).final({ model, text: 'Hi' });
        }
      });

      for (const stream of [false, true]) {
        test(`R-68 F24 a recorded failure without content is an HTTP error, ${dialect}, stream: ${stream}`, async () => {
          const body = stream
            ? recordedStreams().find(({ name }) => name === failed)?.whole
            : recordedDocuments().find(({ name }) => name === failed)?.text;
          assert.ok(body !== undefined);
          const { model } = rig.play('responses', {
            body,
            ...(stream ? { framing: 'chunked' } : {}),
          });
          const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
          // The account that has no quota left is the operator's (decision 0063): the client is not told to pay, nor to wait.
          assert.equal(reply.status, 400, reply.text);
          assert.equal(reply.headers['x-should-retry'], 'false');
          assert.doesNotMatch(reply.text, /insufficient_quota|billing details/);
          assert.match(
            textAt(assertErrorBody(dialect, reply.json), 'message'),
            /credentials or account/,
          );
        });
      }

      test(`F10 a recorded 400 names its parameter, ${dialect}`, async () => {
        const recorded = recordedDocuments().find(({ name }) => name === refusedParameter);
        assert.ok(recorded !== undefined);
        const { model } = rig.play(recorded.upstream, { status: 400, body: recorded.text });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
        assert.equal(reply.status, 400);
        const error: JsonObject = assertErrorBody(dialect, reply.json);
        assert.match(textAt(error, 'message'), /'max_tokens' is not supported with this model/);
        if (dialect === 'chat') {
          assert.equal(error['code'], 'unsupported_parameter');
          assert.equal(error['param'], 'max_tokens');
        }
      });

      test(`B13 a recorded refusal stays a 200, ${dialect}`, async () => {
        const recorded = recordedDocuments().find(({ name }) => name === 'anthropic-refusal');
        assert.ok(recorded !== undefined);
        const { model } = rig.play(recorded.upstream, { body: recorded.text });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
        assert.equal(readDocument(dialect, reply.json).finish, 'filter');
        assert.match(reply.text, /triggered restrictions/, 'the explanation is told');
      });
    }
  });
