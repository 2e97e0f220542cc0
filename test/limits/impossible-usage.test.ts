/** F-5 F57: reported and charged usage where an upstream reports impossible numbers. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { isInSample, runsNow } from '../support/depth.ts';
import { clientDialects, type UpstreamDialect } from '../support/dialects.ts';
import { endingOf, objectAt, readDocument, readStream } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { framesOf } from '../unit/openai-chat/answer-context.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { chatAnswer, chatChunk, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import { converseAnswer, streamOf as converseStreamOf } from '../upstream/converse.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import { messagesAnswer, messagesFrames } from '../upstream/messages.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';
import { startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  const price = { input: 10, output: 10 };
  rig = await startLimitedRig({
    prices: { 'up-chat/*': price, 'up-messages/*': price, 'up-responses/*': price },
  });
});
after(() => rig.stop());

const nanodollars = 10_000;
const prompt = 'A sentence of the long prompt. '.repeat(800);
const text = 'An answer of some words. '.repeat(20);
const asked = { messages: [{ role: 'user', content: prompt }], max_tokens: 500 };

interface Row {
  readonly name: string;
  readonly upstream: UpstreamDialect;
  readonly usage: JsonObject;
  /** What of the report cannot be, so that it is estimated. */
  readonly estimated: 'input' | 'output' | 'nothing';
}

function chatRow(name: string, usage: JsonObject, estimated: Row['estimated']): Row {
  const counts = { prompt_tokens: 6000, completion_tokens: 100, total_tokens: 6100 };
  return { name, upstream: 'chat', usage: { ...counts, ...usage }, estimated };
}

function messagesRow(name: string, usage: JsonObject, estimated: Row['estimated']): Row {
  const counts = {
    input_tokens: 6000,
    output_tokens: 100,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
  };
  return { name, upstream: 'messages', usage: { ...counts, ...usage }, estimated };
}

function responsesRow(name: string, usage: JsonObject, estimated: Row['estimated']): Row {
  const counts = { input_tokens: 6000, output_tokens: 100, total_tokens: 6100 };
  return { name, upstream: 'responses', usage: { ...counts, ...usage }, estimated };
}

const rows: readonly Row[] = [
  chatRow('0 for all', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, 'input'),
  chatRow('0 for the prompt', { prompt_tokens: 0, total_tokens: 100 }, 'input'),
  chatRow('a negative prompt', { prompt_tokens: -5 }, 'input'),
  chatRow('a prompt that is a text', { prompt_tokens: '6000' }, 'input'),
  chatRow('a prompt beyond any context', { prompt_tokens: 1e15, total_tokens: 1e15 }, 'input'),
  chatRow('an endless prompt', { prompt_tokens: 1e308 }, 'input'),
  chatRow('0 for the output', { completion_tokens: 0, total_tokens: 6000 }, 'output'),
  chatRow('a negative output', { completion_tokens: -1 }, 'output'),
  chatRow('an output beyond any context', { completion_tokens: 1e12 }, 'output'),
  chatRow('negative cached tokens', { prompt_tokens_details: { cached_tokens: -7 } }, 'nothing'),
  chatRow(
    'more reasoning than output',
    { completion_tokens_details: { reasoning_tokens: 900 } },
    'nothing',
  ),
  messagesRow('0 for all', { input_tokens: 0, output_tokens: 0 }, 'input'),
  messagesRow('0 for the prompt', { input_tokens: 0 }, 'input'),
  messagesRow('a negative prompt', { input_tokens: -5 }, 'input'),
  messagesRow('a prompt that is a text', { input_tokens: '6000' }, 'input'),
  messagesRow('a prompt beyond any context', { input_tokens: 1e15 }, 'input'),
  messagesRow('0 for the output', { output_tokens: 0 }, 'output'),
  messagesRow('a negative output', { output_tokens: -1 }, 'output'),
  messagesRow('negative cached tokens', { cache_read_input_tokens: -7 }, 'nothing'),
  responsesRow('0 for all', { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, 'input'),
  responsesRow('0 for the prompt', { input_tokens: 0, total_tokens: 100 }, 'input'),
  responsesRow('a negative prompt', { input_tokens: -5 }, 'input'),
  responsesRow('a prompt that is a text', { input_tokens: '6000' }, 'input'),
  responsesRow('a prompt beyond any context', { input_tokens: 1e15, total_tokens: 1e15 }, 'input'),
  responsesRow('0 for the output', { output_tokens: 0, total_tokens: 6000 }, 'output'),
  responsesRow('a negative output', { output_tokens: -1 }, 'output'),
  responsesRow('an output beyond any context', { output_tokens: 1e12 }, 'output'),
  responsesRow(
    'negative cached tokens',
    { input_tokens_details: { cached_tokens: -7 } },
    'nothing',
  ),
  responsesRow(
    'more reasoning than output',
    { output_tokens_details: { reasoning_tokens: 900 } },
    'nothing',
  ),
];

const answers: { readonly [U in UpstreamDialect]: (usage: JsonObject, stream: boolean) => Answer } =
  {
    chat: (usage, stream) => chatAnswer({ text, usage }, stream),
    messages: (usage, stream) => messagesAnswer({ text, usage }, stream),
    responses: (usage, stream) => responsesAnswer([textItem(text)], { usage, stream }),
    gemini: (usage, stream) => (stream ? streamOf : geminiAnswer)({ parts: [{ text }], usage }),
    converse: (usage, stream) =>
      (stream ? converseStreamOf : converseAnswer)({ content: [{ text }], usage }),
  };

/** The last report that the client got. */
function reportIn(told: string, stream: boolean): JsonObject {
  const bodies = stream
    ? framesOf(told).map(({ data = '' }) => tryParseObject(data))
    : [tryParseObject(told)];
  // The events of a Responses stream have it in the response.
  const holders = bodies.map((body) => (isObject(body?.['response']) ? body['response'] : body));
  const last = holders.findLast((body) => isObject(body?.['usage']));
  return objectAt(last ?? {}, 'usage');
}

/** Every number of a report that is a count of tokens. */
function assertCounts(report: JsonObject, where: string): void {
  for (const [name, value] of Object.entries(report)) {
    if (isObject(value)) assertCounts(value, where);
    else if (name.endsWith('_tokens') && value !== null) {
      const count = Number(value);
      assert.ok(typeof value === 'number' && count >= 0 && count < 1e6, `${name} in ${where}`);
    }
  }
}

for (const [i, dialect] of clientDialects.entries()) {
  for (const stream of [false, true]) {
    describe(`${stream ? 'streams' : 'documents'} for ${dialect} clients`, () => {
      // `npm test` plays three rows in five, each with one client.
      const now = rows.filter((_, j) => isInSample(i + j, 5));
      for (const { name, upstream, usage, estimated } of now) {
        test(`F-5 F57 ${upstream} reports ${name}: told and charged is what can be`, async () => {
          const { model } = rig.play(upstream, answers[upstream](usage, stream));
          const key = await rig.key({ budget: 1, per: 'day' });
          const reply = await rig.call(
            key,
            dialect,
            requestBody(dialect, { model, stream, more: asked }),
          );
          assert.equal(reply.status, 200, reply.text);
          const [row] = await rig.gateway.callRows(model, 1);
          assert.equal(row?.['suspect'], true);
          const source = estimated === 'nothing' ? 'reported' : 'estimated';
          assert.equal(row['usage_source'], source);
          if (!stream) assert.equal(reply.headers['x-gateway-usage'], source);
          assertCounts(reportIn(reply.text, stream), reply.text);
          const seen = stream ? readStream(dialect, reply.text) : readDocument(dialect, reply.json);
          const { fresh = 0, cacheRead = 0, cacheWrite = 0, output = 0 } = seen.usage ?? {};
          const input = fresh + cacheRead + cacheWrite;
          assert.ok(input > 4000 && input < 9000, `a prompt of 24 KB is ${input} tokens`);
          assert.ok(output > 50 && output < 500, `500 characters are ${output} tokens`);
          if (estimated !== 'input') assert.equal(input, 6000);
          assert.equal(await rig.spent(key), (input + output) * nanodollars, 'told is charged');
        });
      }
    });
  }
}

const honest = { prompt_tokens: 6000, completion_tokens: 77, total_tokens: 6077 };
const failing =
  'event: error\ndata: {"error":{"message":"Out of order.","type":"server_error"}}\n\n';

for (const dialect of runsNow(true) ? clientDialects : []) {
  for (const together of [true, false]) {
    test(`F-11 an error behind the finish is charged by what was reported: ${dialect}, ${together ? 'one read' : 'read by read'}`, async () => {
      const frames = [
        chatFrame(chatChunk({ role: 'assistant', content: text })),
        chatFrame(chatChunk({}, 'stop')),
        chatFrame(chatUsageChunk(honest)),
        failing,
      ];
      const { model } = rig.play('chat', { body: together ? frames.join('') : frames });
      const key = await rig.key({ budget: 1, per: 'day' });
      const body = requestBody(dialect, { model, stream: true, more: asked });
      const reply = await rig.call(key, dialect, body);
      assert.equal(endingOf(dialect, reply.text), 'error', 'no success behind an error');
      const [row] = await rig.gateway.callRows(model, 1);
      assert.deepEqual([row?.['outcome'], row?.['usage_source']], ['failed', 'reported']);
      assert.equal(await rig.spent(key), honest.total_tokens * nanodollars);
    });

    test(`F-11 the same of a messages upstream: ${dialect}, ${together ? 'one read' : 'read by read'}`, async () => {
      const usage = { input_tokens: 6000, output_tokens: 77 };
      const frames = [
        ...messagesFrames({ text, usage }).slice(0, -1),
        `event: error\ndata: {"type":"error","error":{"type":"api_error","message":"Out."}}\n\n`,
      ];
      const { model } = rig.play('messages', { body: together ? frames.join('') : frames });
      const key = await rig.key({ budget: 1, per: 'day' });
      const body = requestBody(dialect, { model, stream: true, more: asked });
      const reply = await rig.call(key, dialect, body);
      assert.equal(endingOf(dialect, reply.text), 'error');
      const [row] = await rig.gateway.callRows(model, 1);
      assert.deepEqual([row?.['outcome'], row?.['usage_source']], ['failed', 'reported']);
      assert.equal(await rig.spent(key), 6077 * nanodollars);
    });
  }
}
