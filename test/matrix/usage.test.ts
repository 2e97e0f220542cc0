/**
 * Token counts in every spelling and at every place that real servers use, for each client, streamed
 * and whole, and in the ledger (F1–F4, E7). The expected numbers are the requirements' own.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import {
  framesOf,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  type SeenUsage,
} from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { allSdks } from '../support/sdks.ts';
import {
  chatChunk,
  chatChunks,
  chatDocument,
  chatDone,
  chatFrame,
  chatUsageChunk,
} from '../upstream/chat.ts';
import { converseAnswer, streamOf as converseStreamOf } from '../upstream/converse.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import {
  messageDelta,
  messagesDocument,
  messagesFrame,
  messagesFrames,
  messageStart,
  messageStop,
  textBlock,
} from '../upstream/messages.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';
import { bookedUsage } from './cells.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

interface Row {
  readonly name: string;
  readonly upstream: UpstreamDialect;
  readonly usage: JsonObject;
  readonly means: SeenUsage;
}

const none = { cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const hundred = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 };

function chatRow(name: string, usage: JsonObject, means: SeenUsage): Row {
  return { name, upstream: 'chat', usage, means };
}

const cached: SeenUsage = { ...none, fresh: 40, cacheRead: 60, output: 7 };
const written: SeenUsage = { ...none, fresh: 70, cacheWrite: 30, output: 7 };

const rows: readonly Row[] = [
  chatRow(
    'F1 100 prompt, 60 cached, 7 out',
    { ...hundred, prompt_tokens_details: { cached_tokens: 60 } },
    cached,
  ),
  chatRow(
    'F3 DeepSeek',
    { ...hundred, prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 },
    cached,
  ),
  chatRow('F3 LiteLLM reads', { ...hundred, cache_read_input_tokens: 60 }, cached),
  chatRow(
    'F3 vLLM without details',
    { ...hundred, prompt_tokens_details: null },
    { ...none, fresh: 100, output: 7 },
  ),
  chatRow(
    'F3 OpenAI and OpenRouter writes',
    { ...hundred, prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 30 } },
    written,
  ),
  chatRow(
    'F3 writes as cache_creation_tokens',
    { ...hundred, prompt_tokens_details: { cache_creation_tokens: 30 } },
    written,
  ),
  chatRow(
    'F3 writes as cache_creation_input_tokens',
    { ...hundred, cache_creation_input_tokens: 30 },
    written,
  ),
  chatRow(
    'F3 reads and writes',
    { ...hundred, prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } },
    { fresh: 10, cacheRead: 60, cacheWrite: 30, output: 7, reasoning: 0 },
  ),
  chatRow(
    'F3 xAI counts reasoning beside the completion',
    {
      prompt_tokens: 12,
      completion_tokens: 2,
      total_tokens: 334,
      prompt_tokens_details: { cached_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 320 },
    },
    { fresh: 10, cacheRead: 2, cacheWrite: 0, output: 322, reasoning: 320 },
  ),
  chatRow(
    'F3 xAI counts reasoning and what is cached beside the sums',
    {
      prompt_tokens: 50,
      completion_tokens: 2,
      total_tokens: 402,
      prompt_tokens_details: { cached_tokens: 30 },
      completion_tokens_details: { reasoning_tokens: 320 },
    },
    { fresh: 50, cacheRead: 30, cacheWrite: 0, output: 322, reasoning: 320 },
  ),
  chatRow(
    'F3 OpenAI counts reasoning within',
    {
      prompt_tokens: 15,
      completion_tokens: 78,
      total_tokens: 93,
      completion_tokens_details: { reasoning_tokens: 64 },
    },
    { ...none, fresh: 15, output: 78, reasoning: 64 },
  ),
  chatRow(
    'F4 Gemini: thoughts only in the total',
    { prompt_tokens: 20, completion_tokens: 151, total_tokens: 553 },
    { ...none, fresh: 20, output: 533, reasoning: 382 },
  ),
  chatRow(
    'F4 Gemini: thoughts counted, beside the completion',
    {
      prompt_tokens: 20,
      completion_tokens: 151,
      total_tokens: 553,
      completion_tokens_details: { reasoning_tokens: 382 },
    },
    { ...none, fresh: 20, output: 533, reasoning: 382 },
  ),
  chatRow(
    'F4 the usual sum holds with thoughts',
    {
      prompt_tokens: 20,
      completion_tokens: 533,
      total_tokens: 553,
      completion_tokens_details: { reasoning_tokens: 382 },
    },
    { ...none, fresh: 20, output: 533, reasoning: 382 },
  ),
  {
    name: 'F2 Anthropic: 3 fresh, 12304 written, 0 read, 550 out',
    upstream: 'messages',
    usage: {
      input_tokens: 3,
      cache_creation_input_tokens: 12304,
      cache_read_input_tokens: 0,
      output_tokens: 550,
    },
    means: { fresh: 3, cacheRead: 0, cacheWrite: 12304, output: 550, reasoning: 0 },
  },
  {
    name: 'F2 Anthropic: all four classes, thinking within',
    upstream: 'messages',
    usage: {
      input_tokens: 3,
      cache_creation_input_tokens: 50,
      cache_read_input_tokens: 800,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 },
      output_tokens: 550,
      output_tokens_details: { thinking_tokens: 500 },
    },
    means: { fresh: 3, cacheRead: 800, cacheWrite: 50, output: 550, reasoning: 500 },
  },
  {
    name: 'Gemini: cached within the prompt, thoughts and tools beside what is counted',
    upstream: 'gemini',
    usage: {
      promptTokenCount: 100,
      cachedContentTokenCount: 60,
      toolUsePromptTokenCount: 5,
      candidatesTokenCount: 7,
      thoughtsTokenCount: 30,
      totalTokenCount: 142,
    },
    means: { fresh: 45, cacheRead: 60, cacheWrite: 0, output: 37, reasoning: 30 },
  },
  {
    name: 'Converse: caches beside the input, which the total may leave out',
    upstream: 'converse',
    usage: {
      inputTokens: 16,
      cacheReadInputTokens: 60,
      cacheWriteInputTokens: 2387,
      outputTokens: 9,
      totalTokens: 25,
    },
    means: { fresh: 16, cacheRead: 60, cacheWrite: 2387, output: 9, reasoning: 0 },
  },
  {
    name: 'R-81 Responses: reads and writes, reasoning within',
    upstream: 'responses',
    usage: {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
      output_tokens: 70,
      output_tokens_details: { reasoning_tokens: 64 },
      total_tokens: 170,
    },
    means: { fresh: 10, cacheRead: 60, cacheWrite: 30, output: 70, reasoning: 64 },
  },
  {
    name: 'R-81 Responses without details',
    upstream: 'responses',
    usage: { input_tokens: 100, output_tokens: 7, total_tokens: 107 },
    means: { ...none, fresh: 100, output: 7 },
  },
  {
    name: 'R-81 xAI as it was recorded: what is cached and reasoning stand within the sums',
    upstream: 'responses',
    usage: {
      input_tokens: 1875,
      input_tokens_details: { cached_tokens: 1578 },
      output_tokens: 695,
      output_tokens_details: { reasoning_tokens: 397 },
      total_tokens: 2570,
    },
    means: { fresh: 297, cacheRead: 1578, cacheWrite: 0, output: 695, reasoning: 397 },
  },
  {
    name: 'R-81 reasoning beside the output, what is cached beside a larger input',
    upstream: 'responses',
    usage: {
      input_tokens: 50,
      input_tokens_details: { cached_tokens: 30 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 320 },
      total_tokens: 402,
    },
    means: { fresh: 50, cacheRead: 30, cacheWrite: 0, output: 322, reasoning: 320 },
  },
  {
    name: 'R-81 xAI counts what is cached beside the input',
    upstream: 'responses',
    usage: {
      input_tokens: 40,
      input_tokens_details: { cached_tokens: 60 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 107,
    },
    means: cached,
  },
];

function answer({ upstream, usage }: Row, stream: boolean): Answer {
  if (upstream === 'converse') return (stream ? converseStreamOf : converseAnswer)({ usage });
  if (upstream === 'gemini') return (stream ? streamOf : geminiAnswer)({ usage });
  if (upstream === 'responses') return responsesAnswer([textItem('Hi')], { stream, usage });
  if (upstream === 'chat') {
    return stream
      ? {
          body:
            chatChunks({ text: 'Hi', usage })
              .map((each) => chatFrame(each))
              .join('') + chatDone,
          framing: 'chunked',
        }
      : { body: JSON.stringify(chatDocument({ text: 'Hi', usage })) };
  }
  return stream
    ? { body: messagesFrames({ text: 'Hi', usage }).join(''), framing: 'chunked' }
    : { body: JSON.stringify(messagesDocument({ text: 'Hi', usage })) };
}

/** The usage object as the client gets it, in its own words. */
function rawUsage(text: string, stream: boolean): JsonObject {
  if (!stream) return objectAt(tryParseObject(text) ?? {}, 'usage');
  const usages = framesOf(text).map(({ data }) => {
    const event = tryParseObject(data) ?? {};
    return objectAt('response' in event ? objectAt(event, 'response') : event, 'usage');
  });
  return usages.findLast((usage) => Object.keys(usage).length > 0) ?? {};
}

for (const dialect of clientDialects) {
  describe(`${dialect} client`, () => {
    for (const row of rows) {
      for (const shape of ['stream', 'document'] as const) {
        test(`${row.name}, ${shape}`, async () => {
          const stream = shape === 'stream';
          const { model } = rig.play(row.upstream, answer(row, stream));
          const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
          const seen = stream ? readStream(dialect, reply.text) : readDocument(dialect, reply.json);
          assert.deepEqual(seen.usage, row.means, 'the client');
          const usage = rawUsage(reply.text, stream);
          if (dialect === 'chat') {
            const prompt = numberAt(usage, 'prompt_tokens');
            const { fresh, cacheRead, cacheWrite, output } = row.means;
            assert.equal(prompt, fresh + cacheRead + cacheWrite);
            assert.equal(numberAt(usage, 'total_tokens'), prompt + output, 'the sum holds');
          } else if (dialect === 'responses') {
            const input = numberAt(usage, 'input_tokens');
            const { fresh, cacheRead, cacheWrite, output } = row.means;
            assert.equal(input, fresh + cacheRead + cacheWrite);
            assert.equal(numberAt(usage, 'total_tokens'), input + output, 'the sum holds');
          }
          const ledger = await rig.gateway.callRow(String(reply.headers['x-request-id']));
          assert.deepEqual(bookedUsage(ledger), row.means, 'the ledger');
          assert.equal(ledger['usage_source'], 'reported');
          for (const sdk of allSdks.filter((each) => each.dialect === dialect)) {
            const client = sdk.connect({ url: rig.gateway.url });
            const question = { model, text: 'Hi' };
            const found = stream ? await client.final(question) : await client.plain(question);
            // The native stream tells details of the output that older helpers drop.
            const { reasoning: _reasoning, ...counts } = found.usage ?? row.means;
            const { reasoning: _expected, ...expected } = row.means;
            assert.deepEqual(counts, expected, sdk.name);
          }
        });
      }
    }

    test('F1 message_start is never zero, and the end replaces it', async () => {
      if (dialect !== 'messages') return;
      for (const upstream of upstreamDialects) {
        const usage = {
          chat: { ...hundred, prompt_tokens_details: { cached_tokens: 60 } },
          messages: {
            input_tokens: 40,
            cache_read_input_tokens: 60,
            cache_creation_input_tokens: 0,
            output_tokens: 7,
          },
          responses: {
            input_tokens: 100,
            input_tokens_details: { cached_tokens: 60, cache_write_tokens: 0 },
            output_tokens: 7,
          },
          gemini: {
            promptTokenCount: 100,
            cachedContentTokenCount: 60,
            candidatesTokenCount: 7,
          },
          converse: { inputTokens: 40, cacheReadInputTokens: 60, outputTokens: 7 },
        }[upstream];
        const { model } = rig.play(
          upstream,
          answer({ name: '', upstream, usage, means: cached }, true),
        );
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        const start = tryParseObject(framesOf(reply.text)[0]?.data ?? '') ?? {};
        assert.ok(numberAt(objectAt(objectAt(start, 'message'), 'usage'), 'input_tokens') > 0);
        assert.deepEqual(readStream(dialect, reply.text).usage, cached);
      }
    });
  });
}

/** The usage of a chat stream at every place where servers put it; earlier reports are wrong. */
const wrong = { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101 };
const right = { ...hundred, prompt_tokens_details: { cached_tokens: 60 } };
const [role, first, second, finish] = chatChunks({ text: 'Hello', usage: null });
const body = [role, first, second].filter((each) => each !== undefined);
const end = finish ?? {};
const places: { readonly [place: string]: readonly JsonObject[] } = {
  'a chunk of its own': [...body, end, chatUsageChunk(right)],
  'the finish chunk': [...body, { ...end, usage: right }],
  'every chunk': [...body.map((each) => ({ ...each, usage: wrong })), { ...end, usage: right }],
  'choices:[{delta:{}}]': [...body, end, chatChunk({}, null, { usage: right })],
  x_groq: [...body, { ...end, x_groq: { id: 'req', usage: right } }],
  'choices absent': [
    ...body,
    end,
    {
      id: 'chatcmpl-scripted',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: 'm',
      usage: right,
    },
  ],
  'before the finish': [...body, chatUsageChunk(right), end],
  'a null behind it': [...body, end, chatUsageChunk(right), chatChunk({}, null, { usage: null })],
  'twice, the last counts': [...body, end, chatUsageChunk(wrong), chatUsageChunk(right)],
};

describe('E7 usage in odd places', () => {
  for (const dialect of clientDialects) {
    for (const asked of dialect === 'chat' ? [true, false] : [true]) {
      for (const [place, chunks] of Object.entries(places)) {
        test(`E7 E6 ${place}, ${dialect}, ${asked ? 'asked for' : 'not asked for'}`, async () => {
          const text = chunks.map((each) => chatFrame(each)).join('') + chatDone;
          const { model, script } = rig.play('chat', { body: text, framing: 'chunked' });
          const request = requestBody(dialect, { model, stream: true });
          const { stream_options: _options, ...plain } = request;
          // Relayed frames stay where the upstream put them; what they say must be the same.
          const reply = await ask(
            rig,
            dialect,
            asked ? request : plain,
            dialect === 'chat' ? { oddFrames: true } : {},
          );
          const seen = readStream(dialect, reply.text);
          assert.equal(seen.text, 'Hello');
          assert.equal(seen.finish, 'stop');
          assert.deepEqual(seen.usage, asked ? cached : undefined);
          const sent = objectAt(script.requests[0]?.json ?? {}, 'stream_options');
          assert.equal(sent['include_usage'], true, 'E6: the upstream is always asked');
          const ledger = await rig.gateway.callRow(String(reply.headers['x-request-id']));
          assert.deepEqual(bookedUsage(ledger), cached);
        });
      }
    }
  }
});

describe('F2 usage of messages streams', () => {
  const start = {
    input_tokens: 9,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 60,
    output_tokens: 1,
  };
  const streams: { readonly [name: string]: readonly JsonObject[] } = {
    'replaced by message_delta, never added': [
      messageStart(start),
      ...textBlock(0, 'Hello'),
      messageDelta('end_turn', { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 7 }),
      messageStop,
    ],
    'kept where message_delta tells only the output': [
      messageStart({ ...start, input_tokens: 40 }),
      ...textBlock(0, 'Hello'),
      messageDelta('end_turn', { output_tokens: 7 }),
      messageStop,
    ],
    'told in several deltas, the last counts': [
      messageStart({ ...start, input_tokens: 40 }),
      ...textBlock(0, 'Hello'),
      messageDelta(null, { output_tokens: 3 }),
      messageDelta('end_turn', { output_tokens: 7 }),
      messageStop,
    ],
  };
  for (const dialect of clientDialects) {
    for (const [name, events] of Object.entries(streams)) {
      test(`F2 ${name}, ${dialect}`, async () => {
        const text = events.map((event) => messagesFrame(event)).join('');
        const { model } = rig.play('messages', { body: text, framing: 'chunked' });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        assert.deepEqual(readStream(dialect, reply.text).usage, cached);
        const ledger = await rig.gateway.callRow(String(reply.headers['x-request-id']));
        assert.deepEqual(bookedUsage(ledger), cached);
      });
    }
  }
});
