/** How streams of InvokeModel end, through each client (wire/bedrock.md §10.3, which holds for both APIs). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { send, type Reply } from '../support/http.ts';
import { endingOf, readStream } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { eventMessage, eventStream, exceptionMessage, invokeChunk } from '../upstream/aws.ts';
import type { Answer } from '../upstream/scripted.ts';
import {
  claude,
  claudeChunks,
  claudeDocument,
  pathOf,
  startBedrock,
  withKeys,
  type BedrockScene,
} from './bedrock-scene.ts';

let scene: BedrockScene;
before(async () => {
  scene = await startBedrock(({ bedrock }) => ({ providers: { bedrock: withKeys(bedrock) } }));
});
after(() => scene.stop());

async function played(dialect: ClientDialect, answer: Answer): Promise<Reply> {
  scene.bedrock.script(pathOf(claude, 'invoke-with-response-stream'), answer);
  const body = requestBody(dialect, { model: `bedrock/${claude}`, stream: true });
  return send(`${scene.gateway.url}${endpointOf[dialect]}`, body);
}

const told = claudeChunks(['said']);
/** Up to the one that says why the answer ended. */
const reasoned = told.slice(0, -1);

for (const dialect of clientDialects) {
  describe(`bedrock 14, InvokeModel, for a ${dialect} client`, () => {
    it('a stream that ends within its last message is cut, although the stop reason came', async () => {
      const last = told.at(-1) ?? Buffer.alloc(0);
      for (const left of [1, 11, 40, last.length - 1]) {
        const reply = await played(dialect, eventStream([...reasoned, last.subarray(0, left)]));
        assert.match(reply.text, /said/);
        assert.match(reply.text, /closed the stream before its end/, `${left}`);
        assert.equal(endingOf(dialect, reply.text), 'error');
      }
    });

    it('one that ends behind the message with the stop reason is whole', async () => {
      const { text } = await played(dialect, eventStream(reasoned));
      assert.equal(endingOf(dialect, text), 'proper');
      const seen = readStream(dialect, text);
      assert.deepEqual([seen.text, seen.finish], ['said', 'stop']);
      assert.deepEqual([seen.usage?.fresh, seen.usage?.output], [8, 2]);
    });

    it('one that ends behind any earlier message is cut', async () => {
      for (let count = 3; count < reasoned.length; count++) {
        const { text } = await played(dialect, eventStream(told.slice(0, count)));
        assert.equal(endingOf(dialect, text), 'error', `${count}`);
      }
    });

    it('messages of unknown types, events without a type and padding change nothing', async () => {
      const json = { ':content-type': 'application/json' };
      const answer = eventStream([
        ...told.slice(0, 1),
        invokeChunk({ type: 'ping' }),
        eventMessage({ ':event-type': 'chunk', ...json }, wrapped({ type: 'ping' })),
        invokeChunk({ type: 'something_new', x: 1 }),
        ...told.slice(1),
      ]);
      const { text } = await played(dialect, answer);
      assert.equal(endingOf(dialect, text), 'proper', text);
      assert.equal(readStream(dialect, text).text, 'said');
      assert.doesNotMatch(text, /invocationMetrics|abcdefghijkl/);
    });

    it('a document in answer to a stream request is read as one', async () => {
      const json = { 'content-type': 'application/json' };
      const { text } = await played(dialect, { ...claudeDocument('said'), headers: json });
      assert.equal(endingOf(dialect, text), 'proper', text);
      assert.equal(readStream(dialect, text).text, 'said');
    });

    it('a chunk that wraps nothing readable fails the stream', async () => {
      const broken = ['{}', '{"bytes":7}', '{"bytes":"/w=="}', 'no JSON'];
      for (const payload of broken) {
        const chunk = eventMessage({ ':message-type': 'event', ':event-type': 'chunk' }, payload);
        const { text } = await played(dialect, eventStream([...told.slice(0, 3), chunk]));
        assert.equal(endingOf(dialect, text), 'error', payload);
        assert.match(text, /said/);
      }
    });
  });
}

function wrapped(event: JsonObject): string {
  return JSON.stringify({ bytes: Buffer.from(JSON.stringify(event)).toString('base64') });
}

/** What the table of exceptions says, as each client has it before content. */
const exceptions = [
  ['throttlingException', { message: 'Too many tokens' }, 429, 429],
  ['serviceUnavailableException', { message: 'no' }, 503, 529],
  ['internalServerException', { message: 'no' }, 502, 502],
  ['modelStreamErrorException', { originalStatusCode: 429, originalMessage: 'no' }, 429, 429],
  ['modelStreamErrorException', { originalStatusCode: 500, originalMessage: 'no' }, 502, 502],
  ['modelTimeoutException', { message: 'no' }, 504, 504],
  ['validationException', { message: 'Input is too long for requested model.' }, 400, 400],
] as const;

describe('bedrock 15 20, InvokeModel: exceptions in the stream', () => {
  for (const [type, payload, status, messages] of exceptions) {
    it(`${type} ${JSON.stringify(payload)}: a status before content, a failed stream behind it`, async () => {
      for (const dialect of clientDialects) {
        const early = await played(dialect, eventStream([exceptionMessage(type, payload)]));
        const wanted = dialect === 'messages' ? messages : status;
        assert.equal(early.status, wanted, `${dialect}: ${early.text}`);
        const begun = [...told.slice(0, 3), exceptionMessage(type, payload)];
        const late = await played(dialect, eventStream(begun));
        assert.equal(late.status, 200);
        assert.match(late.text, /said/);
        assert.equal(endingOf(dialect, late.text), 'error', dialect);
      }
    });
  }
});
