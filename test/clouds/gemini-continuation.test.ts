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
import { requestBody } from '../support/requests.ts';
import { send } from '../support/http.ts';
import { geminiErrorBody, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { callGemini, geminiKey, startGemini, type GeminiScene } from './gemini-scene.ts';

let scene: GeminiScene;
before(async () => {
  scene = await startGemini((address) => ({
    providers: {
      gemini: { base_url: `${address}/v1beta`, api_key: geminiKey, server_tools: true },
      drained: {
        like: 'gemini',
        base_url: `${address}/v1beta`,
        api_key: geminiKey,
        on_abort: 'drain',
      },
    },
  }));
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

/** The same request with what the first part left of its cap, where it has one. */
function afterFirst(asked: JsonObject): JsonObject {
  const config = objectAt(asked, 'generationConfig');
  const most = config['maxOutputTokens'];
  if (typeof most !== 'number') return asked;
  return { ...asked, generationConfig: { ...config, maxOutputTokens: most - 5 } };
}

/** The caps of the requests. */
function capsOf({ received }: Told): readonly unknown[] {
  return received.map(({ json }) => objectAt(json, 'generationConfig')['maxOutputTokens']);
}

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
        assert.deepEqual(again, { ...afterFirst(asked ?? {}), continuationToken: 'token-1' });
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

    it(`ends in an error for a ${dialect} client when its second request fails`, async () => {
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

  it('continues with the last token, five times at most', async () => {
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

  for (const [what, tools] of [
    ['alone', {}],
    ['beside a tool of the provider', { web_search_options: {} }],
  ] as const) {
    for (const stream of [true, false]) {
      const asking = (max_completion_tokens: number): Asking => ({
        stream,
        more: { max_completion_tokens, ...tools },
      });

      it(`is not gone on with where the cap of the client is spent, ${what}, ${stream ? 'streamed' : 'whole'}`, async () => {
        const told = await seen('chat', [first, last], asking(5));
        assert.deepEqual(capsOf(told), [5]);
        assert.deepEqual([told.text, told.finish, told.usage?.output], ['Once ', 'length', 5]);
        assert.deepEqual(countsOf(told.row, 'charged'), [12, 5]);
        assert.equal(told.row['outcome'], 'ok');
        if (stream) assert.equal(endingOf('chat', told.raw), 'proper');
      });

      it(`continues with what is left of the cap of the client, ${what}, ${stream ? 'streamed' : 'whole'}`, async () => {
        const second = paused({ parts: [{ text: 'upon ' }], usage: usage(17, 3) }, 'token-2');
        const third = paused({ parts: [{ text: 'a' }], usage: usage(20, 2) }, 'token-3');
        const told = await seen('chat', [first, second, third, last], asking(10));
        assert.deepEqual(capsOf(told), [10, 5, 2]);
        assert.deepEqual([told.text, told.finish], ['Once upon a', 'length']);
        assert.deepEqual(countsOf(told.row, 'charged'), [49, 10]);
      });
    }
  }

  it('is not gone on with where the cap is spent by what came, though it reports no counts', async () => {
    const silent = paused({ parts: [{ text: 'word '.repeat(40) }], usage: null });
    const told = await seen('chat', [silent, last], { more: { max_completion_tokens: 5 } });
    assert.deepEqual([told.received.length, told.finish], [1, 'length']);
  });

  for (const part of ['first', 'second']) {
    it(`F73 no further request is sent for a client that left in the ${part} one, whose counts are read`, async () => {
      const gone = Promise.withResolvers<void>();
      const model = `gemini-4-left-in-the-${part}`;
      const held = paused({ parts: [{ text: 'Once ' }, { text: 'more' }], usage: usage(12, 5) });
      assert.ok(Array.isArray(held.body));
      const [begun, rest] = held.body;
      const gated: Answer = { ...held, body: [begun, gone.promise, rest] };
      const answers = part === 'first' ? [gated, last] : [first, gated, last];
      const { requests } = scene.gemini.script(model, ...answers);
      const leaving = new AbortController();
      const before = part === 'first' ? 1 : 2;
      const body = requestBody('chat', { model: `drained/${model}`, stream: true });
      await send(`${scene.gateway.url}/v1/chat/completions`, body, {
        signal: leaving.signal,
        onData: () => {
          if (requests.length === before) leaving.abort();
        },
      }).catch(() => undefined);
      // What comes on another connection afterwards is read behind the end of this one.
      await scene.gateway.callRows(`drained/${model}`, 0);
      gone.resolve();
      const [row] = await scene.gateway.callRows(`drained/${model}`, 1);
      await scene.gateway.noneLeft();
      assert.equal(requests.length, before);
      assert.deepEqual([row?.['outcome'], row?.['usage_source']], ['canceled', 'reported']);
      assert.deepEqual(countsOf(row ?? {}, 'charged'), part === 'first' ? [12, 5] : [24, 10]);
    });
  }

  it('ends with the length limit without a token, and on models that have no continuation', async () => {
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
