/** An answer of Gemini 4 that comes in several requests (wire/gemini.md §3.3, §11: 54). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import {
  endingOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  type Seen,
} from '../support/reading.ts';
import { geminiErrorBody, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { callGemini, startGemini, type GeminiScene } from './gemini-scene.ts';

let scene: GeminiScene;
before(async () => {
  scene = await startGemini();
});
after(() => scene.stop());

let played = 0;

interface Told extends Seen {
  readonly status: number;
  readonly raw: string;
  readonly row: JsonObject;
  readonly received: readonly Received[];
}

interface Asking {
  readonly stream?: boolean;
  readonly model?: string;
  readonly more?: JsonObject;
}

async function seen(
  dialect: ClientDialect,
  answers: readonly Answer[],
  { stream = true, model = 'gemini-4-argon', more = {} }: Asking = {},
): Promise<Told> {
  played += 1;
  const call = { dialect, model: `${model}-${played}`, stream, more };
  const { reply, received } = await callGemini(scene, call, ...answers);
  const read = stream
    ? readStream(dialect, reply.text)
    : readDocument(dialect, tryParseObject(reply.text) ?? {});
  const row = await scene.gateway.callRow(String(reply.headers['x-request-id']));
  return { ...read, status: reply.status, raw: reply.text, row, received };
}

function countsOf(row: JsonObject, member: 'charged' | 'reported'): readonly unknown[] {
  const counts = objectAt(row, member);
  return [counts['fresh_input_tokens'], counts['output_tokens']];
}

const usage = (prompt: number, output: number): JsonObject => ({
  promptTokenCount: prompt,
  candidatesTokenCount: output,
  totalTokenCount: prompt + output,
});

/** A part of an answer, which a further request goes on with. */
function paused(answer: GeminiAnswer, token = 'token-1'): Answer {
  const candidate = token === '' ? {} : { continuationToken: token };
  return streamOf({ ...answer, finishReason: 'CONTINUATION', candidate });
}

const first = paused({ parts: [{ text: 'Once ' }], usage: usage(12, 5) });
const last = streamOf({ parts: [{ text: 'upon a time.' }], usage: usage(17, 7) });

describe('54 a paused answer', () => {
  for (const dialect of clientDialects) {
    for (const stream of [true, false]) {
      it(`is one answer to a ${dialect} client, its counts are sums, ${stream ? 'streamed' : 'whole'}`, async () => {
        const told = await seen(dialect, [first, last], { stream });
        assert.equal(told.status, 200, told.raw);
        assert.equal(told.text, 'Once upon a time.');
        assert.equal(told.finish, 'stop');
        assert.equal(told.usage?.fresh, 29);
        assert.equal(told.usage?.output, 12);
        if (stream) assert.equal(endingOf(dialect, told.raw), 'proper');
        const [asked, again] = told.received.map(({ json }) => json);
        assert.equal(told.received.length, 2);
        assert.deepEqual(again, { ...asked, continuationToken: 'token-1' });
        // The call is charged for both, and each request tells its own.
        assert.deepEqual(countsOf(told.row, 'charged'), [29, 12]);
        assert.equal(told.row['usage_source'], 'reported');
        const each = listAt(told.row, 'attempt_list').map((one) => countsOf(one, 'reported'));
        assert.deepEqual(each, [
          [12, 5],
          [17, 7],
        ]);
      });
    }

    it(`that fails later on is no success for a ${dialect} client`, async () => {
      const failing: Answer = { status: 400, body: JSON.stringify(geminiErrorBody('No.', 400)) };
      const call = { dialect, model: `gemini-4-failing-${dialect}`, stream: true };
      const { reply, received } = await callGemini(scene, call, first, failing);
      assert.equal(received.length, 2);
      assert.match(reply.text, /Once /);
      assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
    });
  }

  it('has calls in whichever request, and ends with them', async () => {
    const call = paused({ parts: [{ functionCall: { id: 'c1', name: 'w', args: { a: 1 } } }] });
    const told = await seen('chat', [call, streamOf({ parts: [{ text: 'Done.' }] })]);
    assert.equal(told.finish, 'tools');
    assert.deepEqual(told.calls, [{ id: 'c1', name: 'w', arguments: { a: 1 } }]);
  });

  it('goes on with the last token, five times at most', async () => {
    const rounds = Array.from({ length: 7 }, (_, i) =>
      paused({ parts: [{ text: `${i}` }], usage: usage(10, 1) }, `token-${i}`),
    );
    const told = await seen('chat', rounds);
    assert.equal(told.text, '012345');
    assert.equal(told.finish, 'length');
    assert.deepEqual(
      told.received.map(({ json }) => json['continuationToken']),
      [undefined, 'token-0', 'token-1', 'token-2', 'token-3', 'token-4'],
    );
    assert.equal(told.usage?.output, 6);
  });

  it('is not gone on with where the cap of the client is spent', async () => {
    const told = await seen('chat', [first, last], { more: { max_completion_tokens: 5 } });
    assert.equal(told.received.length, 1);
    assert.deepEqual([told.text, told.finish], ['Once ', 'length']);
  });

  it('is cut where there is no token, or the model is not known to go on', async () => {
    const bare = paused({ parts: [{ text: 'Once ' }] }, '');
    for (const told of [
      await seen('chat', [bare, last]),
      await seen('messages', [first, last], { model: 'gemini-3-pro' }),
    ]) {
      assert.equal(told.received.length, 1);
      assert.deepEqual([told.text, told.finish], ['Once ', 'length'], told.raw);
    }
  });
});
