/** What Converse answers, through each client: recordings and made answers (wire/bedrock.md §13: 1–18, 20–22, 56, 57). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { converseTraits } from '../../src/core/traits.ts';
import { collect, type Generation, type GenerationEvent } from '../../src/core/generation.ts';
import { bedrockConverseUpstream } from '../../src/dialects/bedrock-converse/upstream.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import {
  endingOf,
  framesOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
  type Seen,
} from '../support/reading.ts';
import { shown } from '../support/requests.ts';
import { whyOmitted } from '../recordings/recorded.ts';
import { converseEvent, eventMessage, eventStream, exceptionMessage } from '../upstream/aws.ts';
import {
  converseAnswer,
  converseStream,
  eventsOf,
  streamOf,
  type ConverseAnswer,
} from '../upstream/converse.ts';
import type { Answer } from '../upstream/scripted.ts';
import { type BedrockScene } from './bedrock-scene.ts';
import { callConverse, claude, startConverse } from './converse-scene.ts';

const recordings = join(import.meta.dirname, '../../../shared/recordings');
const skip = whyOmitted ?? false;

function recordedDocument(name: string): Answer {
  return { body: readFileSync(join(recordings, 'bedrock-converse', `${name}.json`), 'utf8') };
}

function recordedBody(name: string): JsonObject {
  return tryParseObject(String(recordedDocument(name).body)) ?? {};
}

function recordedEvents(name: string): readonly JsonObject[] {
  const file = join(recordings, 'bedrock-converse', `${name}.chunks.txt`);
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '').map((line) => tryParseObject(line) ?? {});
}

function recordedFrames(name: string): Buffer {
  return readFileSync(join(recordings, 'bedrock-frames', `${name}.bin`));
}

let scene: BedrockScene;
before(async () => {
  scene = await startConverse();
});
after(() => scene.stop());

interface Told extends Seen {
  readonly status: number;
  readonly raw: string;
}

/** An answer as the client sees it. */
async function seen(
  dialect: ClientDialect,
  answer: Answer,
  { stream = false, more = {} }: { readonly stream?: boolean; readonly more?: JsonObject } = {},
): Promise<Told> {
  const call = { dialect, model: claude, stream, more: { ...shown(dialect), ...more } };
  const { reply } = await callConverse(scene, call, answer);
  const read = stream
    ? readStream(dialect, reply.text)
    : readDocument(dialect, tryParseObject(reply.text) ?? {});
  return { ...read, status: reply.status, raw: reply.text };
}

const oneByte = (bytes: Buffer): readonly Buffer[] =>
  Array.from(bytes, (byte) => Buffer.from([byte]));

/** The texts of the blocks of a message, reasoning left out. */
function textOf(body: JsonObject): string {
  const content = listAt(objectAt(objectAt(body, 'output'), 'message'), 'content');
  return content
    .map((block) => (block['text'] === undefined ? '' : textAt(block, 'text')))
    .join('');
}

/** The texts of the deltas of a stream. */
function deltasOf(events: readonly JsonObject[]): string {
  return events
    .map(({ contentBlockDelta: event }) => {
      const delta = isObject(event) ? objectAt(event, 'delta') : {};
      return typeof delta['text'] === 'string' ? delta['text'] : '';
    })
    .join('');
}

function usageOf(events: readonly JsonObject[]): JsonObject {
  const metadata = events.find(({ metadata: event }) => event !== undefined) ?? {};
  return objectAt(objectAt(metadata, 'metadata'), 'usage');
}

function assertUsage({ usage }: Seen, told: JsonObject): void {
  const number = (name: string): number => Number(told[name] ?? 0);
  assert.deepEqual(usage, {
    fresh: number('inputTokens'),
    cacheRead: number('cacheReadInputTokens'),
    cacheWrite: number('cacheWriteInputTokens'),
    output: number('outputTokens'),
    reasoning: 0,
  });
}

describe('recordings', { skip }, () => {
  for (const dialect of clientDialects) {
    it(`bedrock 1 a text document reaches a ${dialect} client`, async () => {
      const body = recordedBody('amazon-bedrock-text');
      const told = await seen(dialect, recordedDocument('amazon-bedrock-text'));
      assert.equal(told.finish, 'stop');
      assert.equal(told.text, textOf(body));
      assertUsage(told, objectAt(body, 'usage'));
    });

    it(`bedrock 2 a text stream reaches a ${dialect} client, cut at every byte`, async () => {
      const events = recordedEvents('amazon-bedrock-text');
      const whole = converseStream(events);
      const told = await seen(dialect, whole, { stream: true });
      assert.equal(told.text, deltasOf(events));
      assert.equal(told.finish, 'stop');
      assertUsage(told, usageOf(events));
      const bytewise = await seen(dialect, { ...whole, split: oneByte }, { stream: true });
      assert.deepEqual({ ...bytewise, raw: '' }, { ...told, raw: '' });
    });

    it(`bedrock 3 4 a call is a call for a ${dialect} client, in documents and streams`, async () => {
      const rows = [
        ['amazon-bedrock-tool-call.1', 'bash', { command: 'ls -l' }],
        ['amazon-bedrock-tool-no-args', 'updateIssueList', {}],
      ] as const;
      for (const [name, tool, args] of rows) {
        const told = await seen(dialect, recordedDocument(name));
        assert.deepEqual(
          told.calls.map((call) => [call.name, call.arguments]),
          [[tool, args]],
        );
        assert.equal(told.finish, 'tools');
        assertUsage(told, objectAt(recordedBody(name), 'usage'));
      }
      // No messageStart, one empty piece of arguments, metadata before the stop.
      const streams = [
        ['amazon-bedrock-tool-call.1', 'test-tool', { value: 'Sparkle Day' }],
        ['amazon-bedrock-tool-no-args', 'updateIssueList', {}],
      ] as const;
      for (const [name, tool, args] of streams) {
        const events = recordedEvents(name);
        const told = await seen(dialect, converseStream(events), { stream: true });
        assert.deepEqual(
          told.calls.map((call) => [call.name, call.arguments]),
          [[tool, args]],
        );
        assert.equal(told.text, deltasOf(events));
        assert.equal(told.finish, 'tools');
        assertUsage(told, usageOf(events));
      }
    });

    it(`bedrock 5 reasoning stands before the text for a ${dialect} client, and is kept`, async () => {
      const body = recordedBody('amazon-bedrock-reasoning');
      const told = await seen(dialect, recordedDocument('amazon-bedrock-reasoning'));
      assert.equal(told.text, textOf(body));
      assert.match(told.reasoning, /^Let me count the r's in "strawberry"/);
      const events = recordedEvents('amazon-bedrock-reasoning');
      const streamed = await seen(dialect, converseStream(events), { stream: true });
      assert.equal(streamed.text, deltasOf(events));
      assert.match(streamed.reasoning, /So there are 3 r's\.$/);
      assert.ok(streamed.raw.indexOf('Let me count') < streamed.raw.indexOf('There'));
      assertUsage(streamed, usageOf(events));
    });

    it(`bedrock 7 8 9 unsigned reasoning, a cap and written tokens reach a ${dialect} client`, async () => {
      const unsigned = await seen(dialect, recordedDocument('agentgateway-reasoning-unsigned'));
      assert.equal(unsigned.text, 'The answer is 4.');
      assert.equal(unsigned.reasoning, 'Two plus two is four.');
      const capped = await seen(dialect, recordedDocument('agentgateway-max-tokens'));
      assert.equal(capped.finish, 'length');
      assert.equal(capped.text, 'Partial response');
      const cached = await seen(dialect, recordedDocument('agentgateway-cache-write'));
      assertUsage(cached, objectAt(recordedBody('agentgateway-cache-write'), 'usage'));
    });

    it(`bedrock 10 texts and two calls reach a ${dialect} client in their order`, async () => {
      const told = await seen(dialect, recordedDocument('amazon-bedrock-json-with-tool.1'));
      const events = recordedEvents('amazon-bedrock-json-with-tool.1');
      const streamed = await seen(dialect, converseStream(events), { stream: true });
      for (const each of [told, streamed]) {
        assert.deepEqual(
          each.calls.map(({ name }) => name),
          ['get-weather', 'json'],
        );
        assert.equal(each.finish, 'tools');
      }
      assert.match(told.text, /^Let me call a tool first\.\s*Now the JSON\.$/);
      assert.match(streamed.text, /^Calling a tool first\.\s*Now JSON\.$/);
    });

    it(`bedrock 13 real frames reach a ${dialect} client, cut at every byte`, async () => {
      for (const name of ['agentgateway-text', 'agentgateway-tools']) {
        const bytes = recordedFrames(name);
        const whole = await seen(dialect, eventStream([bytes]), { stream: true });
        assert.equal(whole.status, 200, whole.raw);
        const cut = await seen(dialect, eventStream([bytes], { split: oneByte }), { stream: true });
        assert.deepEqual({ ...cut, raw: '' }, { ...whole, raw: '' });
        if (name.endsWith('tools')) assert.ok(whole.calls.length > 0, whole.raw);
        else assert.ok(whole.text !== '', whole.raw);
        assert.equal(endingOf(dialect, whole.raw), 'proper');
      }
    });

    it(`bedrock 14 15 16 damaged and cut streams are no clean ending for a ${dialect} client`, async () => {
      const rows: readonly (readonly [string, RegExp])[] = [
        ['made-truncated', /closed the stream before its end/],
        ['made-bad-message-crc', /./],
        ['agentgateway-corrupt', /./],
        ['made-throttling-exception', /./],
        ['made-error-message', /./],
      ];
      for (const [name, words] of rows) {
        const { reply } = await callConverse(
          scene,
          { dialect, model: claude, stream: true },
          eventStream([recordedFrames(name)]),
        );
        assert.match(reply.text, words, name);
        assert.doesNotMatch(reply.text, /\[DONE\]|message_stop|response\.completed/, name);
      }
    });
  }
});

// Readers, without a gateway around them.

function read(events: readonly JsonObject[]): readonly GenerationEvent[] {
  const reader = bedrockConverseUpstream.streamReader(converseTraits);
  const told = events.flatMap((each) => {
    const [[event, payload] = ['', {}]] = Object.entries(each);
    return reader.read({ bytes: Buffer.alloc(0), event, data: JSON.stringify(payload) });
  });
  return [...told, ...reader.end()];
}

function generation(answer: ConverseAnswer, form: 'document' | 'stream'): Generation | undefined {
  if (form === 'stream') return collect(read(eventsOf(answer)));
  const body = tryParseObject(String(converseAnswer(answer).body)) ?? {};
  return bedrockConverseUpstream.readResponse(body, converseTraits);
}

/** The events of an answer whose calls have no piece of arguments. */
function withoutArguments(answer: ConverseAnswer): readonly JsonObject[] {
  return eventsOf(answer).filter(
    ({ contentBlockDelta: delta }) =>
      !isObject(delta) || !JSON.stringify(delta).includes('toolUse'),
  );
}

const forms = ['document', 'stream'] as const;

describe('parts', () => {
  for (const form of forms) {
    it(`bedrock 6 reasoning that is not shown, in a ${form}`, () => {
      const content = [
        { reasoningContent: { redactedContent: Buffer.from('abcdef').toString('base64') } },
        { text: 'ok' },
      ];
      const parts = generation({ content }, form)?.parts;
      assert.deepEqual(parts, [
        { type: 'reasoning', text: '', encrypted: Buffer.from('abcdef').toString('base64') },
        { type: 'text', text: 'ok' },
      ]);
    });

    it(`bedrock 56 citations, in a ${form}`, () => {
      const citation = {
        title: 'A',
        sourceContent: [{ text: 'so ' }, { text: 'it is' }],
        location: { web: { url: 'https://a.example/1' } },
      };
      const made =
        form === 'document'
          ? generation(
              {
                content: [
                  { citationsContent: { content: [{ text: 'It is.' }], citations: [citation] } },
                ],
              },
              form,
            )
          : collect(
              read([
                { contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'It is.' } } },
                { contentBlockDelta: { contentBlockIndex: 0, delta: { citation } } },
                { messageStop: { stopReason: 'end_turn' } },
              ]),
            );
      const [part] = made?.parts ?? [];
      assert.ok(part?.type === 'text');
      assert.equal(part.text, 'It is.');
      const [{ url, title, citedText } = {}] = part.citations ?? [];
      assert.deepEqual(
        { url, title, citedText },
        { url: 'https://a.example/1', title: 'A', citedText: 'so it is' },
      );
    });

    it(`calls of the provider's own tools are shown to no client as calls, in a ${form}`, () => {
      const content = [
        {
          toolUse: { toolUseId: 's1', name: 'nova_grounding', input: {}, type: 'server_tool_use' },
        },
        { text: 'found' },
      ];
      const made = generation({ content, stopReason: 'end_turn' }, form);
      assert.deepEqual(
        made?.parts.map(({ type }) => type),
        ['opaque', 'text'],
      );
      assert.equal(made?.finish.kind, 'stop');
    });
  }

  it('bedrock 6 pieces are decoded each for itself', () => {
    const piece = (text: string): JsonObject => ({
      contentBlockDelta: {
        contentBlockIndex: 0,
        delta: { reasoningContent: { redactedContent: Buffer.from(text).toString('base64') } },
      },
    });
    const stop = { messageStop: { stopReason: 'end_turn' } };
    const [part] = collect(read([piece('a'), piece('bcd'), stop]))?.parts ?? [];
    assert.equal(
      part?.type === 'reasoning' && part.encrypted,
      Buffer.from('abcd').toString('base64'),
    );
  });

  it('bedrock 11 calls may interleave, and ends may be missing', () => {
    const start = (contentBlockIndex: number, name: string): JsonObject => ({
      contentBlockStart: { contentBlockIndex, start: { toolUse: { toolUseId: name, name } } },
    });
    const piece = (contentBlockIndex: number, input: string): JsonObject => ({
      contentBlockDelta: { contentBlockIndex, delta: { toolUse: { input } } },
    });
    const text = (contentBlockIndex: number, said: string): JsonObject => ({
      contentBlockDelta: { contentBlockIndex, delta: { text: said } },
    });
    const events = read([
      text(0, 'first'),
      start(1, 'a'),
      start(2, 'b'),
      piece(1, '{"x":'),
      piece(2, '{}'),
      piece(1, '1}'),
      { messageStop: { stopReason: 'tool_use' } },
    ]);
    const parts = collect(events)?.parts ?? [];
    assert.deepEqual(
      parts.map((part) =>
        part.type === 'tool-call' ? part.argumentsJson : part.type === 'text' ? part.text : '',
      ),
      ['first', '{"x":1}', '{}'],
    );
    const ends = events.filter(({ type }) => type === 'part-end');
    assert.equal(ends.length, 3);
  });

  for (const [form, stream] of [
    ['document', false],
    ['stream', true],
  ] as const) {
    it(`R-15 a response whose call was cut is gone on with, without a result of the call, in a ${form}`, async () => {
      const content = [
        { text: 'Let me see.' },
        { toolUse: { toolUseId: 'c1', name: 'w', input: {} } },
      ];
      const cut = { stopReason: 'max_tokens', content };
      const tools = [{ type: 'function', name: 'w', parameters: { type: 'object' } }];
      const call = { dialect: 'responses', model: claude } as const;
      const { reply } = await callConverse(
        scene,
        { ...call, stream, more: { tools } },
        stream ? converseStream(withoutArguments(cut)) : converseAnswer(cut),
      );
      const { data = '' } = framesOf(reply.text).findLast(({ event }) => event !== undefined) ?? {};
      const response = stream ? objectAt(tryParseObject(data) ?? {}, 'response') : reply.json;
      assert.deepEqual(
        listAt(response, 'output').map(({ type, status }) => [type, status]),
        [
          ['message', 'completed'],
          ['function_call', 'incomplete'],
        ],
      );
      const more = { tools, previous_response_id: textAt(response, 'id'), input: 'Go on.' };
      const next = await callConverse(scene, { ...call, more }, converseAnswer());
      assert.equal(next.reply.status, 200, next.reply.text);
      assert.doesNotMatch(JSON.stringify(next.received.at(-1)?.json['messages']), /toolUse/);
    });

    it(`R-15 arguments that broke off stay so, none at all where more follows, in a ${form}`, () => {
      const calls = ['a', 'b'].map((toolUseId) => ({
        toolUse: { toolUseId, name: 'w', input: {} },
      }));
      const told = (stopReason: string): readonly string[] => {
        const answer = { stopReason, content: calls };
        const made = stream
          ? collect(read(withoutArguments(answer)))
          : generation(answer, 'document');
        return (made?.parts ?? []).flatMap((part) =>
          part.type === 'tool-call' ? [part.argumentsJson] : [],
        );
      };
      assert.deepEqual(told('tool_use'), ['{}', '{}']);
      for (const stopReason of [
        'max_tokens',
        'model_context_window_exceeded',
        'content_filtered',
      ]) {
        assert.deepEqual(told(stopReason), ['{}', '']);
      }
    });
  }

  it('R-15 the last call of a document that was cut has no whole arguments', () => {
    const content = ['a', 'b'].map((toolUseId) => ({
      toolUse: { toolUseId, name: 'w', input: { x: 1 } },
    }));
    const told = (stopReason: string): readonly unknown[] =>
      generation({ stopReason, content }, 'document')?.parts.map(
        (part) => part.type === 'tool-call' && part.argumentsJson,
      ) ?? [];
    assert.deepEqual(told('tool_use'), ['{"x":1}', '{"x":1}']);
    assert.deepEqual(told('max_tokens'), ['{"x":1}', '{"x":1,']);
  });

  it('numbers keep their digits', async () => {
    const data =
      '{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"n":12345678901234567890}}}]}},"stopReason":"tool_use"}';
    const { reply } = await callConverse(scene, { model: claude }, { body: data });
    assert.match(reply.text, /12345678901234567890/);
  });

  it('a member of a wrong type fails the answer', () => {
    const rows: readonly JsonObject[] = [
      { text: [1] },
      { toolUse: { toolUseId: 'a', input: {} } },
      { reasoningContent: 'x' },
    ];
    for (const block of rows) {
      assert.throws(() => generation({ content: [block] }, 'document'), {
        code: 'upstream_invalid',
      });
    }
    assert.throws(
      () =>
        read([{ contentBlockDelta: { contentBlockIndex: 0, delta: { toolUse: { input: 'x' } } } }]),
      { code: 'upstream_invalid' },
    );
  });
});

describe('ends', () => {
  const words: readonly (readonly [string, string])[] = [
    ['end_turn', 'stop'],
    ['max_tokens', 'length'],
    ['stop_sequence', 'stop'],
    ['guardrail_intervened', 'filter'],
    ['content_filtered', 'filter'],
    ['malformed_model_output', 'stop'],
    ['malformed_tool_use', 'stop'],
    ['refusal', 'filter'],
    ['a_new_one', 'stop'],
  ];
  for (const dialect of clientDialects) {
    it(`bedrock 21 57 each reason has its word for a ${dialect} client, and the text is kept`, async () => {
      const own = dialect === 'messages' ? 'model_context_window_exceeded' : 'length';
      const all = [...words, ['model_context_window_exceeded', own] as const];
      for (const [stopReason, word] of all) {
        const answer = { stopReason, content: [{ text: 'so far' }] };
        for (const stream of [false, true]) {
          const told = await seen(dialect, stream ? streamOf(answer) : converseAnswer(answer), {
            stream,
          });
          assert.equal(told.finish, word, `${stopReason} ${told.raw}`);
          assert.equal(told.text, 'so far');
        }
      }
    });
  }

  it('bedrock 21 calls make an end of their own, and no calls make none', () => {
    const call = { toolUse: { toolUseId: 'a', name: 'f', input: {} } };
    for (const form of forms) {
      const kind = (stopReason: string, content: readonly JsonObject[]): string | undefined =>
        generation({ stopReason, content }, form)?.finish.kind;
      assert.equal(kind('end_turn', [call]), 'tool-calls');
      assert.equal(kind('tool_use', [{ text: 'a' }]), 'stop');
      assert.equal(kind('max_tokens', [call]), 'length');
    }
  });

  it('bedrock 21 what is malformed and empty is asked for once more, and then is an error', async () => {
    for (const stream of [false, true]) {
      const empty = { stopReason: 'malformed_tool_use', content: [] };
      const play = stream ? streamOf : converseAnswer;
      const again = await callConverse(scene, { stream }, play(empty), play({}));
      assert.equal(again.reply.status, 200, again.reply.text);
      assert.equal(again.received.length, 2);
      const failed = await callConverse(scene, { stream }, play(empty));
      assert.equal(failed.reply.status, 502);
      assert.equal(failed.received.length, 2, 'once');
    }
  });

  it('bedrock 22 the stop sequence that was met', async () => {
    const answer = (form: 'delta' | 'document'): ConverseAnswer => ({
      stopReason: 'stop_sequence',
      more: {
        additionalModelResponseFields:
          form === 'delta' ? { delta: { stop_sequence: 'END' } } : { stop_sequence: 'END' },
      },
    });
    const more = { stop_sequences: ['END', 'X'] };
    const told = await seen('messages', streamOf(answer('delta')), { stream: true, more });
    assert.match(told.raw, /"stop_sequence":"END"/);
    const { reply, received } = await callConverse(
      scene,
      { dialect: 'messages', model: claude, more },
      converseAnswer(answer('document')),
    );
    assert.equal(reply.json['stop_sequence'], 'END');
    assert.deepEqual(received[0]?.json['additionalModelResponseFieldPaths'], ['/stop_sequence']);
  });

  it('bedrock 12 without metadata the answer is whole, and its usage is estimated', async () => {
    for (const dialect of clientDialects) {
      const told = await seen(dialect, streamOf({ usage: null }), { stream: true });
      assert.equal(told.text, 'ok');
      assert.equal(told.finish, 'stop');
      assert.equal(endingOf(dialect, told.raw), 'proper');
    }
  });

  it('a close without a reason is no end', async () => {
    for (const dialect of clientDialects) {
      const { reply } = await callConverse(
        scene,
        { dialect, stream: true },
        converseStream(eventsOf({}).slice(0, 2)),
      );
      assert.match(reply.text, /closed the stream before its end/);
      assert.equal(endingOf(dialect, reply.text), 'error');
    }
  });

  it('no answer at all is an error in each form', () => {
    const readBody = (body: JsonObject): unknown =>
      bedrockConverseUpstream.readResponse(body, converseTraits);
    const message = { role: 'assistant', content: [{ text: 'a' }] };
    for (const body of [{}, { output: {} }, { output: { message } }, { choices: [] }]) {
      assert.throws(() => readBody(body), { code: 'upstream_invalid' });
    }
    assert.deepEqual(
      read([]).map((event) => event.type === 'error' && event.error.code),
      ['upstream_invalid'],
    );
  });
});

describe('streams', () => {
  it('a stream that ends within its last frame is cut, although the stop reason came', async () => {
    const told = eventsOf({ content: [{ text: 'said' }] }).map((each) => {
      const [[name, value] = ['', {}]] = Object.entries(each);
      return converseEvent(name, isObject(value) ? value : {});
    });
    const last = told.at(-1) ?? Buffer.alloc(0);
    for (const dialect of clientDialects) {
      for (const left of [1, 11, 40, last.length - 1]) {
        const { reply } = await callConverse(
          scene,
          { dialect, stream: true },
          eventStream([...told.slice(0, -1), last.subarray(0, left)]),
        );
        assert.match(reply.text, /said/);
        assert.match(reply.text, /closed the stream before its end/, `${left}`);
        assert.equal(endingOf(dialect, reply.text), 'error');
      }
      const { reply } = await callConverse(
        scene,
        { dialect, stream: true },
        eventStream(told.slice(0, -1)),
      );
      assert.equal(endingOf(dialect, reply.text), 'proper');
    }
  });

  it('bedrock 13 18 padding, unknown events and frames without a type change nothing', async () => {
    const events = [
      converseEvent('messageStart', { role: 'assistant' }),
      converseEvent('somethingNew', { x: 1 }),
      eventMessage(
        { ':event-type': 'contentBlockDelta', ':content-type': 'application/json' },
        JSON.stringify({ contentBlockIndex: 0, delta: { text: 'hi' }, p: 'abc' }),
      ),
      converseEvent('messageStop', { stopReason: 'end_turn' }),
    ];
    const told = await seen('chat', eventStream(events), { stream: true });
    assert.equal(told.text, 'hi');
    assert.equal(told.finish, 'stop');
  });

  it('bedrock 15 20 an exception before the content is an error with its status, behind it a failed stream', async () => {
    const rows = [
      ['throttlingException', { message: 'Too many tokens' }, 429],
      ['serviceUnavailableException', { message: 'no' }, 529],
      ['internalServerException', { message: 'no' }, 502],
      ['modelStreamErrorException', { originalStatusCode: 429, originalMessage: 'no' }, 429],
      ['validationException', { message: 'Input is too long for requested model.' }, 400],
    ] as const;
    for (const [type, payload, status] of rows) {
      const failed = await callConverse(
        scene,
        { dialect: 'messages', stream: true, model: claude },
        eventStream([exceptionMessage(type, payload)]),
      );
      assert.equal(failed.reply.status, status, `${type} ${failed.reply.text}`);
      const [start, delta] = eventsOf({ content: [{ text: 'begun' }] });
      const late = await callConverse(
        scene,
        { dialect: 'messages', stream: true, model: claude },
        eventStream([
          ...[start, delta].map((each) => {
            const [[name, value] = ['', {}]] = Object.entries(each ?? {});
            return converseEvent(name, isObject(value) ? value : {});
          }),
          exceptionMessage(type, payload),
        ]),
      );
      assert.equal(late.reply.status, 200);
      assert.match(late.reply.text, /begun/);
      assert.equal(endingOf('messages', late.reply.text), 'error');
    }
  });

  it('a document in answer to a stream request is read as one', async () => {
    for (const dialect of clientDialects) {
      const told = await seen(
        dialect,
        { ...converseAnswer({}), headers: { 'content-type': 'application/json' } },
        { stream: true },
      );
      assert.equal(told.text, 'ok', told.raw);
      assert.equal(told.finish, 'stop');
    }
  });
});

describe('usage', () => {
  const read1 = (usage: JsonObject, more: JsonObject = {}): unknown => {
    const { raw: _, ...counts } = generation({ usage, more }, 'document')?.usage ?? {};
    return counts;
  };

  it('bedrock 9 cached tokens stand beside the others, and writes for an hour among the writes', () => {
    assert.deepEqual(
      read1(
        {
          inputTokens: 10,
          outputTokens: 4,
          cacheReadInputTokens: 100,
          cacheWriteInputTokens: 50,
          cacheDetails: [
            { ttl: '1h', inputTokens: 30 },
            { ttl: '5m', inputTokens: 20 },
          ],
        },
        { serviceTier: { type: 'flex' } },
      ),
      {
        freshInputTokens: 10,
        cacheReadTokens: 100,
        cacheWriteTokens: 50,
        cacheWriteLongTokens: 30,
        outputTokens: 4,
        serviceTier: 'flex',
      },
    );
  });

  it('counts that no model has are not counts', () => {
    assert.deepEqual(read1({ inputTokens: -1, outputTokens: 1e300 }), {});
    assert.deepEqual(read1({ inputTokens: 3, outputTokens: Number.NaN }), {
      freshInputTokens: 3,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    });
  });
});
