/** What Gemini answers, through each client: recordings and made answers (wire/gemini.md §11: 1–5, 13–24, 47). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { geminiUpstream } from '../../src/dialects/gemini/upstream.ts';
import { geminiTraits } from '../../src/core/traits.ts';
import type { Part } from '../../src/core/conversation.ts';
import { collect, type GenerationEvent } from '../../src/core/generation.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import type { Reply } from '../support/http.ts';
import {
  framesOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
  type Seen,
} from '../support/reading.ts';
import { whyOmitted } from '../recordings/recorded.ts';
import { geminiAnswer, geminiStream, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { callGemini, startGemini, type GeminiScene } from './gemini-scene.ts';

const folder = join(import.meta.dirname, '../../../shared/recordings/gemini');
const skip = whyOmitted ?? false;

function recordedDocument(name: string): Answer {
  return { body: readFileSync(join(folder, `${name}.json`), 'utf8') };
}

function recordedChunks(name: string): readonly JsonObject[] {
  const lines = readFileSync(join(folder, `${name}.chunks.txt`), 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '').map((line) => tryParseObject(line) ?? {});
}

let scene: GeminiScene;
before(async () => {
  scene = await startGemini();
});
after(() => scene.stop());

let played = 0;

/** An answer as the client sees it. */
async function seen(
  dialect: ClientDialect,
  answer: Answer,
  { stream = false, model }: { readonly stream?: boolean; readonly model?: string } = {},
): Promise<Seen & { readonly status: number; readonly text: string; readonly raw: string }> {
  played += 1;
  const name = model ?? `gemini-3-answers-${played}`;
  const more = dialect === 'responses' ? { reasoning: { summary: 'auto' } } : {};
  const { reply } = await callGemini(scene, { dialect, model: name, stream, more }, answer);
  const read = stream
    ? readStream(dialect, reply.text)
    : readDocument(dialect, tryParseObject(reply.text) ?? {});
  return { ...read, status: reply.status, raw: reply.text };
}

const reasoningOfText = { fresh: 9, cacheRead: 0, cacheWrite: 0 };

describe('recordings', { skip }, () => {
  for (const dialect of clientDialects) {
    it(`1 a text document reaches a ${dialect} client`, async () => {
      const told = await seen(dialect, recordedDocument('google-text'));
      const usage = objectAt(recordedBody('google-text'), 'usageMetadata');
      assert.equal(told.finish, 'stop');
      assert.equal(told.text, textOf(recordedBody('google-text')));
      assertUsage(told, usage);
    });

    it(`2 a text stream reaches a ${dialect} client, cut at every byte`, async () => {
      const chunks = recordedChunks('google-text');
      const whole = geminiStream(chunks);
      const told = await seen(dialect, whole, { stream: true });
      const bytewise = await seen(
        dialect,
        { ...whole, split: (bytes) => Array.from(bytes, (byte) => Buffer.from([byte])) },
        { stream: true },
      );
      assert.equal(told.text, chunks.map(textOf).join(''));
      assert.equal(told.finish, 'stop');
      assertUsage(told, objectAt(chunks.at(-1) ?? {}, 'usageMetadata'));
      assert.deepEqual({ ...bytewise, raw: '', model: '' }, { ...told, raw: '', model: '' });
    });

    it(`3 thoughts of 2.5 stand before the text for a ${dialect} client`, async () => {
      const chunks = recordedChunks('google-reasoning');
      const told = await seen(dialect, geminiStream(chunks), { stream: true });
      assert.equal(told.text, chunks.map(textOf).join(''));
      assert.equal(told.finish, 'stop');
      assertUsage(told, objectAt(chunks.at(-1) ?? {}, 'usageMetadata'));
    });

    it(`5 6 a call is a call for a ${dialect} client, whatever the word of its end`, async () => {
      for (const name of [
        'google-tool-call',
        'google-tool-call-gemini3',
        'agentgateway-tool-with-id',
      ]) {
        const told = await seen(dialect, recordedDocument(name));
        const [call] = told.calls;
        assert.equal(told.finish, 'tools', name);
        assert.equal(told.calls.length, 1, name);
        assert.match(call?.name ?? '', /weather/i);
        assert.ok(isObject(call?.arguments) && 'location' in call.arguments);
        assert.notEqual(call?.id, '');
        assertUsage(told, objectAt(recordedBody(name), 'usageMetadata'));
      }
    });

    it(`13 streamed arguments are whole for a ${dialect} client`, async () => {
      const chunks = recordedChunks('google-stream-tool-call-arguments');
      const told = await seen(dialect, geminiStream(chunks), { stream: true });
      assert.deepEqual(
        told.calls.map(({ name, arguments: args }) => [name, args]),
        [
          ['getWeather', { location: 'Boston' }],
          ['getWeather', { location: 'San Francisco' }],
        ],
      );
      assert.equal(told.finish, 'tools');
      assertUsage(told, objectAt(chunks.at(-1) ?? {}, 'usageMetadata'));
    });

    it(`17 a blocked prompt is told to a ${dialect} client as an answer that a filter ended`, async () => {
      const answer = recordedDocument('agentgateway-blocked');
      const chunk = tryParseObject(String(answer.body)) ?? {};
      for (const stream of [false, true]) {
        const told = await seen(dialect, stream ? geminiStream([chunk]) : answer, { stream });
        assert.equal(told.status, 200, told.raw);
        assert.equal(told.finish, 'filter', told.raw);
        assert.equal(told.text, '');
        assert.equal(told.usage?.fresh, 12);
        assert.equal(told.usage?.output, 0);
      }
    });

    it(`21 cached tokens and thoughts are counted for a ${dialect} client`, async () => {
      const told = await seen(dialect, recordedDocument('google-reasoning-gemini3'));
      assert.deepEqual(told.usage, { ...reasoningOfText, output: 29 + 258, reasoning: 258 });
    });
  }
});

function recordedBody(name: string): JsonObject {
  return tryParseObject(String(recordedDocument(name).body)) ?? {};
}

/** The text of a response object, thoughts left out. */
function textOf(body: JsonObject): string {
  const parts = listAt(objectAt(listAt(body, 'candidates')[0] ?? {}, 'content'), 'parts');
  return parts.map((part) => (part['thought'] === true ? '' : textAt(part, 'text'))).join('');
}

function assertUsage({ usage }: Seen, told: JsonObject): void {
  const number = (name: string): number => Number(told[name] ?? 0);
  const cached = number('cachedContentTokenCount');
  assert.deepEqual(usage, {
    fresh: number('promptTokenCount') - cached,
    cacheRead: cached,
    cacheWrite: 0,
    output: number('candidatesTokenCount') + number('thoughtsTokenCount'),
    reasoning: number('thoughtsTokenCount'),
  });
}

// Readers, without a gateway around them.

function events(chunks: readonly JsonObject[]): readonly GenerationEvent[] {
  const reader = geminiUpstream.streamReader(geminiTraits);
  const read = chunks.flatMap((chunk) => {
    const data = JSON.stringify(chunk);
    return reader.read({ bytes: Buffer.from(data), event: undefined, data });
  });
  return [...read, ...reader.end()];
}

function chunk(parts: readonly JsonObject[], candidate: JsonObject = {}): JsonObject {
  return { candidates: [{ content: { role: 'model', parts }, ...candidate }], responseId: 'r1' };
}

/** The arguments of the calls of a stream. */
function argumentsOf(chunks: readonly JsonObject[]): readonly Json[] {
  const parts = collect(events(chunks))?.parts ?? [];
  return parts.flatMap((part) =>
    part.type === 'tool-call' ? [tryParseObject(part.argumentsJson) ?? part.argumentsJson] : [],
  );
}

const begunCall = [
  chunk([{ text: 'Let me see.' }]),
  chunk([{ functionCall: { name: 'w', willContinue: true } }]),
  chunk([
    { functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'on' }], willContinue: true } },
  ]),
];

/** The items of a streamed response, and what a request that names it leads to. */
async function goneOnWith(answer: Answer): Promise<{
  readonly items: readonly JsonObject[];
  readonly next: Reply;
  readonly received: Received | undefined;
}> {
  const model = 'gemini-3-cut';
  const tools = [{ type: 'function', name: 'w', parameters: { type: 'object' } }];
  const call = { dialect: 'responses', model } as const;
  const { reply } = await callGemini(scene, { ...call, stream: true, more: { tools } }, answer);
  const { data = '' } = framesOf(reply.text).findLast(({ data: each }) => each !== undefined) ?? {};
  const response = objectAt(tryParseObject(data) ?? {}, 'response');
  assert.equal(response['status'], 'incomplete', reply.text);
  const more = { tools, previous_response_id: textAt(response, 'id'), input: 'Go on.' };
  const { reply: next, received } = await callGemini(scene, { ...call, more }, geminiAnswer());
  return { items: listAt(response, 'output'), next, received: received.at(-1) };
}

describe('arguments in pieces', () => {
  const start = chunk([{ functionCall: { name: 'f', willContinue: true } }]);
  const piece = (...partialArgs: readonly JsonObject[]): JsonObject =>
    chunk([{ functionCall: { partialArgs, willContinue: true } }]);
  const stop = { finishReason: 'STOP' };

  it('14 objects and lists are put together, without an end piece too', () => {
    const pieces = [
      start,
      piece({ jsonPath: '$.a.b[0].c', stringValue: 'on', willContinue: true }),
      piece({ jsonPath: '$.a.b[0].c', stringValue: 'e' }),
      piece({ jsonPath: '$.a.b[1]', numberValue: 2 }, { jsonPath: "$['x y']", boolValue: true }),
      piece({ jsonPath: '$.n', nullValue: null }),
    ];
    const whole = { a: { b: [{ c: 'one' }, 2] }, 'x y': true, n: null };
    assert.deepEqual(argumentsOf([...pieces, chunk([{ functionCall: {} }], stop)]), [whole]);
    assert.deepEqual(argumentsOf([...pieces, chunk([], stop)]), [whole]);
  });

  it('R-15 a call in whose midst the answer was cut has no whole arguments', () => {
    const begun = [start, piece({ jsonPath: '$.a.b', stringValue: 'on', willContinue: true })];
    const reasons = ['MAX_TOKENS', 'SAFETY', 'CONTINUATION', 'MALFORMED_FUNCTION_CALL', 'OTHER'];
    for (const finishReason of reasons) {
      const end = chunk([], { finishReason, continuationToken: 'token-1' });
      assert.deepEqual(argumentsOf([...begun, end]), ['{"a":{"b":"on"}'], finishReason);
      assert.deepEqual(argumentsOf([start, end]), ['{'], finishReason);
      const told = collect(events([...begun, end]))?.finish.kind;
      assert.equal(told, finishReason === 'SAFETY' ? 'content-filter' : 'length', finishReason);
    }
    const whole = [
      ...begun,
      chunk([{ functionCall: {} }]),
      chunk([], { finishReason: 'MAX_TOKENS' }),
    ];
    assert.deepEqual(argumentsOf(whole), [{ a: { b: 'on' } }]);
  });

  it('R-15 a response whose call was cut is gone on with, without a result of the call', async () => {
    for (const finishReason of ['MAX_TOKENS', 'MALFORMED_FUNCTION_CALL', 'OTHER']) {
      const cut = [...begunCall, chunk([], { finishReason })];
      const { items, next, received } = await goneOnWith(geminiStream(cut));
      assert.deepEqual(
        items.map(({ type, status }) => [type, status]),
        [
          ['message', 'completed'],
          ['function_call', 'incomplete'],
        ],
        finishReason,
      );
      assert.equal(next.status, 200, next.text);
      assert.doesNotMatch(JSON.stringify(received?.json), /functionCall/);
    }
  });

  it('15 __proto__ is a name like any other', () => {
    const args = argumentsOf([
      start,
      piece({ jsonPath: '$.__proto__.x', stringValue: 'y' }),
      chunk([{ functionCall: {} }], stop),
    ]);
    assert.equal(JSON.stringify(args), '[{"__proto__":{"x":"y"}}]');
  });

  it('16 a call without arguments has none', () => {
    assert.deepEqual(argumentsOf([chunk([{ functionCall: { name: 'f' } }], stop)]), [{}]);
    assert.deepEqual(argumentsOf([chunk([{ functionCall: { name: 'f', args: {} } }], stop)]), [{}]);
  });

  it('a place that does not fit fails the answer', () => {
    for (const jsonPath of ['a', '$.a.b', '$[0]', '$.a[-1]', '$.a[99999]', '$']) {
      assert.throws(
        () =>
          events([
            start,
            piece({ jsonPath: '$.a', stringValue: 'x' }),
            piece({ jsonPath, stringValue: 'y' }),
          ]),
        jsonPath,
      );
    }
  });

  it('numbers keep their digits', async () => {
    const data =
      '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":12345678901234567890}}}]},"finishReason":"STOP"}]}';
    const reader = geminiUpstream.streamReader(geminiTraits);
    const read = reader.read({ bytes: Buffer.from(data), event: undefined, data });
    const part = collect([...read, ...reader.end()])?.parts[0];
    assert.equal(part?.type === 'tool-call' && part.argumentsJson, '{"n":12345678901234567890}');
    const { reply } = await callGemini(scene, { model: 'gemini-digits' }, { body: data });
    assert.match(reply.text, /12345678901234567890/);
  });
});

const filtered = [
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'LANGUAGE',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
];
const nothingOfUse = [
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'OTHER',
  'FINISH_REASON_UNSPECIFIED',
  'A_NEW_ONE',
];

describe('ends', () => {
  for (const dialect of clientDialects) {
    it(`18 each reason of §3.2 has its word for a ${dialect} client, in documents and streams`, async () => {
      const rows: readonly (readonly [string, string])[] = [
        ['STOP', 'stop'],
        ['MAX_TOKENS', 'length'],
        ['CONTINUATION', 'length'],
        ...filtered.map((reason) => [reason, 'filter'] as const),
        ...nothingOfUse.map((reason) => [reason, 'stop'] as const),
      ];
      for (const [finishReason, word] of rows) {
        const answer: GeminiAnswer = { finishReason, parts: [{ text: 'so far' }] };
        for (const stream of [false, true]) {
          const told = await seen(dialect, stream ? streamOf(answer) : geminiAnswer(answer), {
            stream,
          });
          assert.equal(told.finish, word, `${finishReason} ${told.raw}`);
          assert.equal(told.text, 'so far');
        }
      }
    });
  }

  it('18 the words of a filter reach the client', async () => {
    const answer = geminiAnswer({
      finishReason: 'SAFETY',
      parts: [],
      candidate: { finishMessage: 'It was not safe.' },
    });
    assert.match((await seen('chat', answer)).raw, /"refusal":"It was not safe\."/);
    assert.match((await seen('messages', answer)).raw, /"explanation":"It was not safe\."/);
  });

  it('18 a reason that is no natural end outweighs a later one', () => {
    const read = events([
      chunk([{ text: 'a' }], { finishReason: 'SAFETY' }),
      chunk([], { finishReason: 'STOP' }),
    ]);
    assert.equal(collect(read)?.finish.kind, 'content-filter');
  });

  it('19 an end without content is asked for once more, and then is an error', async () => {
    for (const finishReason of nothingOfUse) {
      const empty: GeminiAnswer = { finishReason, parts: [] };
      for (const stream of [false, true]) {
        const play = stream ? streamOf : geminiAnswer;
        const model = `gemini-empty-${finishReason}-${String(stream)}`;
        const again = await callGemini(scene, { model, stream }, play(empty), play({}));
        assert.equal(again.reply.status, 200, again.reply.text);
        assert.equal(again.received.length, 2);
        const failed = await callGemini(scene, { model: `${model}-2`, stream }, play(empty));
        assert.equal(failed.reply.status, 502);
        assert.equal(failed.received.length, 2, 'once');
      }
    }
  });

  it('20 all tokens spent on thoughts: nothing is said, and the length is the reason', async () => {
    const usage = { promptTokenCount: 3, thoughtsTokenCount: 40, totalTokenCount: 43 };
    const answer: GeminiAnswer = { finishReason: 'MAX_TOKENS', parts: [], usage };
    for (const dialect of clientDialects) {
      for (const stream of [false, true]) {
        const told = await seen(dialect, stream ? streamOf(answer) : geminiAnswer(answer), {
          stream,
        });
        assert.equal(told.finish, 'length');
        assert.equal(told.text, '');
        assert.equal(told.usage?.output, 40);
        assert.equal(told.usage?.reasoning, 40);
      }
    }
  });

  it('23 24 chunks without a candidate are nothing; a close without a reason is no end', async () => {
    const usage = {
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 1, totalTokenCount: 5 },
    };
    const proper = [
      { candidates: [], ...usage },
      chunk([{ text: 'a' }]),
      chunk([], { finishReason: 'STOP' }),
      usage,
    ];
    for (const dialect of clientDialects) {
      const told = await seen(dialect, geminiStream(proper), { stream: true });
      assert.equal(told.text, 'a');
      assert.equal(told.finish, 'stop');
      const { reply } = await callGemini(
        scene,
        { dialect, model: `gemini-cut-${dialect}`, stream: true },
        geminiStream([chunk([{ text: 'a' }])]),
      );
      assert.doesNotMatch(reply.text, /\[DONE\]|message_stop|response\.completed/);
      assert.match(reply.text, /closed the stream before its end/);
    }
  });

  it('24 no answer at all is an error in each form', () => {
    const read = (body: JsonObject): unknown => geminiUpstream.readResponse(body, geminiTraits);
    for (const body of [
      {},
      { candidates: [] },
      { candidates: [{ content: { parts: [{ text: 'a' }] } }] },
    ]) {
      assert.throws(() => read(body), { code: 'upstream_invalid' });
    }
    assert.throws(() => read({ choices: [] }), { code: 'upstream_invalid' });
  });
});

describe('usage', () => {
  const read = (usage: JsonObject): unknown => {
    const body = { ...chunk([{ text: 'a' }], { finishReason: 'STOP' }), usageMetadata: usage };
    const { raw: _, ...counts } = geminiUpstream.readResponse(body, geminiTraits).usage ?? {};
    return counts;
  };

  it('21 the prompt holds what was cached and leaves out what tools brought', () => {
    const counts = read({
      promptTokenCount: 100,
      cachedContentTokenCount: 60,
      candidatesTokenCount: 7,
      thoughtsTokenCount: 5,
      toolUsePromptTokenCount: 11,
      totalTokenCount: 123,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 70 },
        { modality: 'IMAGE', tokenCount: 20 },
        { modality: 'AUDIO', tokenCount: 10 },
      ],
      candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 7 }],
      serviceTier: 'flex',
    });
    assert.deepEqual(counts, {
      freshInputTokens: 51,
      cacheReadTokens: 60,
      outputTokens: 12,
      reasoningTokens: 5,
      imageInputTokens: 20,
      audioInputTokens: 10,
      serviceTier: 'flex',
    });
  });

  it('21 what the total alone reports is the output; the kind of traffic alone counts nothing', () => {
    assert.deepEqual(read({ promptTokenCount: 10, totalTokenCount: 25 }), {
      freshInputTokens: 10,
      cacheReadTokens: 0,
      outputTokens: 15,
      reasoningTokens: 0,
    });
    assert.deepEqual(read({ trafficType: 'ON_DEMAND' }), {});
    assert.deepEqual(read({ promptTokenCount: -1, candidatesTokenCount: 1e300 }), {});
  });

  it('22 a document without usage is charged by an estimate', async () => {
    const told = await seen('chat', geminiAnswer({ usage: null }));
    assert.equal(told.status, 200);
    assert.equal(told.finish, 'stop');
  });
});

describe('sources', () => {
  it('47 offsets count bytes there and units of UTF-16 here', async () => {
    const text = 'Sun 🌞 over Köln. Rain follows.';
    const cited = 'Rain follows.';
    const start = Buffer.from(text.slice(0, text.indexOf(cited))).length;
    const groundingMetadata = {
      webSearchQueries: ['weather', 'köln'],
      groundingChunks: [
        { web: { uri: 'https://a.example/1', title: 'A' } },
        { web: { uri: 'https://b.example/2', title: 'B' } },
      ],
      groundingSupports: [
        {
          segment: { startIndex: start, endIndex: start + Buffer.from(cited).length, text: cited },
          groundingChunkIndices: [0],
        },
      ],
    };
    for (const stream of [false, true]) {
      const answer: GeminiAnswer = { parts: [{ text }], candidate: { groundingMetadata } };
      const { raw } = await seen('chat', stream ? streamOf(answer) : geminiAnswer(answer), {
        stream,
      });
      const at = text.indexOf(cited);
      assert.match(
        raw,
        new RegExp(
          `"url_citation":\\{[^}]*"start_index":${at}[^}]*\\}|"start_index":${at},"end_index":${text.length}`,
        ),
      );
      assert.match(raw, /https:\/\/b\.example\/2/);
    }
    const body = { ...chunk([{ text }], { finishReason: 'STOP', groundingMetadata }) };
    const { usage, parts } = geminiUpstream.readResponse(body, geminiTraits);
    assert.equal(usage?.webSearches, 2);
    const [part] = parts;
    const citations = part?.type === 'text' ? (part.citations ?? []) : [];
    assert.deepEqual(
      citations.map(({ url, span, citedText }) => [url, span, citedText]),
      [
        ['https://a.example/1', { start: text.indexOf(cited), end: text.length }, cited],
        ['https://b.example/2', undefined, undefined],
      ],
    );
  });

  const source = (n: number): JsonObject => ({
    web: { uri: `https://s.example/${n}`, title: `S${n}` },
  });
  const resting = (text: string, at: number): JsonObject => ({
    segment: { text },
    groundingChunkIndices: [at],
  });
  /** What each text rests on. */
  const citedBy = (parts: readonly Part[]): readonly unknown[] =>
    parts.flatMap((part) =>
      part.type === 'text'
        ? [[part.text, (part.citations ?? []).map(({ url, citedText }) => [url, citedText])]]
        : [],
    );
  const call = { functionCall: { name: 'f', args: { a: 1 } } };
  const ending = (grounding: JsonObject): JsonObject => ({
    finishReason: 'STOP',
    groundingMetadata: grounding,
  });

  it('sources that come behind a call are those of the text before it', () => {
    const grounding = { groundingChunks: [source(1)], groundingSupports: [resting('Rain', 0)] };
    const read = events([
      chunk([{ text: 'Rain ' }]),
      chunk([{ text: 'follows.' }]),
      chunk([call]),
      chunk([], ending(grounding)),
    ]);
    const generation = collect(read);
    assert.deepEqual(citedBy(generation?.parts ?? []), [
      ['Rain follows.', [['https://s.example/1', 'Rain']]],
    ]);
    assert.equal(generation?.finish.kind, 'tool-calls');
    const order = read.map((event) =>
      'index' in event ? `${event.type} ${event.index}` : event.type,
    );
    assert.deepEqual(order, [
      'start',
      'part-start 0',
      'part-delta 0',
      'part-delta 0',
      'part-citation 0',
      'part-end 0',
      'part-start 1',
      'part-end 1',
      'finish',
    ]);
  });

  it('sources of a text that has ended, or of none, are reported nevertheless', () => {
    const grounding = {
      groundingChunks: [source(1), source(2)],
      groundingSupports: [resting('one', 0), resting('two', 1)],
    };
    const parts = [{ text: 'one' }, call, { text: 'two' }];
    const streamed = events([...parts.map((part) => chunk([part])), chunk([], ending(grounding))]);
    assert.deepEqual(citedBy(collect(streamed)?.parts ?? []), [
      ['one', []],
      [
        'two',
        [
          ['https://s.example/2', 'two'],
          ['https://s.example/1', undefined],
        ],
      ],
    ]);
    const body = chunk(parts, ending(grounding));
    assert.deepEqual(citedBy(geminiUpstream.readResponse(body, geminiTraits).parts), [
      ['one', [['https://s.example/1', 'one']]],
      ['two', [['https://s.example/2', 'two']]],
    ]);
    const silent = events([chunk([call]), chunk([], ending(grounding))]);
    assert.deepEqual(citedBy(collect(silent)?.parts ?? []), [
      [
        '',
        [
          ['https://s.example/1', undefined],
          ['https://s.example/2', undefined],
        ],
      ],
    ]);
  });

  it('sources behind a call reach chat and Responses clients; a messages client is told that they have no place', async () => {
    const grounding = { groundingChunks: [source(1)], groundingSupports: [resting('Rain', 0)] };
    for (const texts of [[{ text: 'It says: Rain.' }], []]) {
      const answer: GeminiAnswer = {
        parts: [...texts, call, { text: '' }],
        candidate: { groundingMetadata: grounding },
      };
      for (const dialect of clientDialects) {
        for (const stream of [false, true]) {
          const told = await seen(dialect, stream ? streamOf(answer) : geminiAnswer(answer), {
            stream,
          });
          assert.equal(told.status, 200, told.raw);
          assert.equal(told.finish, 'tools');
          assert.equal(told.text, texts[0]?.text ?? '');
          assert.equal(told.calls.length, 1);
          assert.equal(told.raw.includes('https://s.example/1'), dialect !== 'messages', told.raw);
        }
      }
    }
  });
});
