/** Requirements on streams, each as its entry says it (requirements.md A5, A9, B11–B16, C1–C4, E1, E9, E11). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import {
  framesOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
  type Seen,
} from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody, shown } from '../support/requests.ts';
import { allSdks } from '../support/sdks.ts';
import { chatChunk, chatDocument, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesFrame,
  messageStart,
  messageStop,
} from '../upstream/messages.ts';
import { answerIn, plainUsage, replying, seenOf, type Reply } from '../upstream/reply.ts';
import { callItem, reasoningItem, responsesAnswer, textItem } from '../upstream/responses.ts';
import { everyBytes, type Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig(({ chat, messages }) => ({
    models: { alias: { targets: ['up-chat/real'] }, 'alias-m': { targets: ['up-messages/real'] } },
    providers: {
      // The vendors whose beta rules differ, at the same upstreams.
      anthropic: { base_url: `http://127.0.0.1:${messages.port}`, api_key: 'key' },
      picky: {
        dialect: 'anthropic-messages',
        base_url: `http://127.0.0.1:${messages.port}`,
        api_key: 'key',
        betas: ['known-2025-01-01'],
      },
      'like-chat': {
        dialect: 'openai-chat',
        base_url: `http://127.0.0.1:${chat.port}/v1`,
        api_key: 'key',
      },
    },
  }));
});
after(() => rig.stop());

const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };

function chatStream(chunks: readonly JsonObject[]): Answer {
  return { body: chunks.map((each) => chatFrame(each)).join('') + chatDone, framing: 'chunked' };
}

function messagesStream(events: readonly JsonObject[]): Answer {
  return { body: events.map((each) => messagesFrame(each)).join(''), framing: 'chunked' };
}

/** A stream as raw clients and all SDKs of the dialect read it; the SDKs must not fail. */
async function streamed(
  dialect: ClientDialect,
  upstream: ClientDialect,
  answer: Answer,
): Promise<Seen> {
  const { model } = rig.play(upstream, answer);
  const body = requestBody(dialect, { model, stream: true, more: shown(dialect) });
  const reply = await ask(rig, dialect, body);
  assert.equal(reply.status, 200, reply.text);
  const seen = readStream(dialect, reply.text);
  for (const sdk of allSdks.filter((each) => each.dialect === dialect)) {
    const found = await sdk.connect({ url: rig.gateway.url }).final({ model, text: 'Hi' });
    assert.equal(found.text, seen.text, sdk.name);
    assert.deepEqual(found.calls, seen.calls, sdk.name);
  }
  return seen;
}

/** One piece of each kind; n tells the pieces of a stream apart. */
const chatKinds: { readonly [kind: string]: (n: number) => JsonObject } = {
  text: (n) => ({ content: `text${n} ` }),
  thinking: (n) => ({ reasoning_content: `thought${n} ` }),
  tool: (n) => ({
    tool_calls: [
      {
        index: n,
        id: `call_${n}`,
        type: 'function',
        function: { name: `f${n}`, arguments: `{"n":${n}}` },
      },
    ],
  }),
};

const messagesKinds: { readonly [kind: string]: (n: number) => readonly JsonObject[] } = {
  text: (n) => [
    blockStart(n, { type: 'text', text: '' }),
    blockDelta(n, { type: 'text_delta', text: `text${n} ` }),
    blockStop(n),
  ],
  thinking: (n) => [
    blockStart(n, { type: 'thinking', thinking: '', signature: '' }),
    blockDelta(n, { type: 'thinking_delta', thinking: `thought${n} ` }),
    blockDelta(n, { type: 'signature_delta', signature: `sig${n}` }),
    blockStop(n),
  ],
  tool: (n) => [
    blockStart(n, { type: 'tool_use', id: `call_${n}`, name: `f${n}`, input: {} }),
    blockDelta(n, { type: 'input_json_delta', partial_json: `{"n":${n}}` }),
    blockStop(n),
  ],
};

const responsesKinds: { readonly [kind: string]: (n: number) => JsonObject } = {
  text: (n) => ({ ...textItem(`text${n} `), id: `msg_${n}` }),
  thinking: (n) => reasoningItem(`thought${n} `, `blob${n}`),
  tool: (n) => callItem(`call_${n}`, `f${n}`, `{"n":${n}}`),
};

/** A stream whose pieces have these kinds. */
function inOrder(upstream: ClientDialect, order: readonly string[]): Answer {
  const called = order.includes('tool');
  switch (upstream) {
    case 'chat':
      return chatStream([
        ...order.map((kind, n) =>
          chatChunk({ ...(n === 0 ? { role: 'assistant' } : {}), ...indexed(order, kind, n) }),
        ),
        chatChunk({}, called ? 'tool_calls' : 'stop'),
        chatUsageChunk(usage),
      ]);
    case 'messages':
      return messagesStream([
        messageStart(),
        ...order.flatMap((kind, n) => messagesKinds[kind]?.(n) ?? []),
        messageDelta(called ? 'tool_use' : 'end_turn'),
        messageStop,
      ]);
    case 'responses':
      return responsesAnswer(
        order.map((kind, n) => responsesKinds[kind]?.(n) ?? {}),
        { stream: true },
      );
    default:
      return upstream satisfies never;
  }
}

function expectedOf(kinds: readonly string[]): Pick<Seen, 'text' | 'reasoning' | 'calls'> {
  const told = (kind: string, word: string): string =>
    kinds.map((each, n) => (each === kind ? `${word}${n} ` : '')).join('');
  return {
    text: told('text', 'text'),
    reasoning: told('thinking', 'thought'),
    calls: kinds.flatMap((kind, n) =>
      kind === 'tool' ? [{ id: `call_${n}`, name: `f${n}`, arguments: { n } }] : [],
    ),
  };
}

describe('C1 the first delta comes with the switch of kind', () => {
  const kinds = ['text', 'thinking', 'tool'];
  for (const dialect of clientDialects) {
    for (const first of kinds) {
      for (const second of kinds) {
        for (const third of kinds) {
          const order = [first, second, third];
          for (const upstream of clientDialects) {
            test(`C1 C3 ${order.join(' → ')}, ${upstream} upstream, ${dialect} client`, async () => {
              const seen = await streamed(dialect, upstream, inOrder(upstream, order));
              const expected = expectedOf(order);
              // Texts of a Responses upstream that something stands between are paragraphs.
              const apart = upstream === 'responses' ? '\n\n' : '';
              assert.equal(seen.text.replaceAll(apart, ''), expected.text);
              assert.equal(seen.reasoning.replaceAll('\n\n', ''), expected.reasoning);
              assert.deepEqual(seen.calls, expected.calls);
              assert.equal(seen.finish, order.includes('tool') ? 'tools' : 'stop');
            });
          }
        }
      }
    }
  }
});

/** The piece, with the call's place among the calls: chat numbers those alone. */
function indexed(order: readonly string[], kind: string, n: number): JsonObject {
  const piece = chatKinds[kind]?.(n) ?? {};
  const [call] = listAt(piece, 'tool_calls');
  if (call === undefined) return piece;
  const index = order.slice(0, n).filter((each) => each === 'tool').length;
  return { tool_calls: [{ ...call, index }] };
}

describe('C2 white space between two calls', () => {
  for (const dialect of clientDialects) {
    test(`C2 tool, newline, tool: ${dialect} client`, async () => {
      const chunks = [
        chatChunk({ role: 'assistant', content: null }),
        chatChunk(indexed(['tool'], 'tool', 0)),
        chatChunk({ content: '\n' }),
        chatChunk({ ...indexed(['tool', 'tool'], 'tool', 1) }),
        chatChunk({}, 'tool_calls'),
        chatUsageChunk(usage),
      ];
      const seen = await streamed(dialect, 'chat', chatStream(chunks));
      assert.deepEqual(seen.calls, expectedOf(['tool', 'tool']).calls);
      assert.equal(seen.text.trim(), '');
    });
  }
});

const spoken: Reply = {
  text: '你好🦀 – ok',
  calls: [{ id: 'call_1', name: 'say', arguments: '{"words":"你好🦀"}' }],
};

describe('E1 one byte a read', () => {
  for (const dialect of clientDialects) {
    for (const upstream of clientDialects) {
      test(`E1 text and tool arguments of any script, ${upstream} upstream, ${dialect} client`, async () => {
        const answer = { ...answerIn(upstream, spoken, true), split: everyBytes(1) };
        const { model } = rig.play(upstream, answer);
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        assert.ok(!reply.text.includes('\ufffd'), reply.text);
        assert.deepEqual(readStream(dialect, reply.text), seenOf(spoken, model));
      });
    }
  }
});

describe('A9 E11 the client decides how it is answered', () => {
  for (const dialect of clientDialects) {
    for (const upstream of clientDialects) {
      for (const sends of ['stream', 'document'] as const) {
        test(`E11 ${upstream} upstream only sends a ${sends}, ${dialect} client`, async () => {
          const { model } = rig.play(upstream, answerIn(upstream, spoken, sends === 'stream'));
          const { stream: _stream, ...without } = requestBody(dialect, { model, stream: false });
          const whole = await ask(rig, dialect, without);
          assert.match(String(whole.headers['content-type']), /^application\/json/, 'A9');
          assert.deepEqual(readDocument(dialect, whole.json), seenOf(spoken, model));
          const live = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
          assert.match(String(live.headers['content-type']), /^text\/event-stream/, 'A9');
          assert.deepEqual(readStream(dialect, live.text), seenOf(spoken, model));
          for (const reply of [whole, live]) {
            const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
            assert.equal(objectAt(row, 'charged')['output_tokens'], plainUsage.output);
          }
        });
      }
    }
  }
});

describe('B11 B12 why it ended', () => {
  const call = {
    index: 0,
    id: 'call_0',
    type: 'function',
    function: { name: 'f0', arguments: '{"n":0}' },
  };
  for (const dialect of clientDialects) {
    test(`B11 a call with a natural stop is reported as a call, ${dialect} client`, async () => {
      const chunks = [
        chatChunk({ role: 'assistant', tool_calls: [call] }),
        chatChunk({}, 'stop'),
        chatUsageChunk(usage),
      ];
      const stream = rig.play('chat', chatStream(chunks));
      const reply = await ask(
        rig,
        dialect,
        requestBody(dialect, { model: stream.model, stream: true }),
      );
      assert.equal(readStream(dialect, reply.text).finish, 'tools', reply.text);
      const whole = chatDocument({
        calls: [{ id: 'call_0', name: 'f0', arguments: '{}' }],
        finish: 'stop',
      });
      const document = rig.play('chat', { body: JSON.stringify(whole) });
      const answered = await ask(
        rig,
        dialect,
        requestBody(dialect, { model: document.model, stream: false }),
      );
      assert.equal(readDocument(dialect, answered.json).finish, 'tools', answered.text);
    });

    test(`B11 the mirror: tool_calls without a call, ${dialect} client`, async () => {
      const chunks = [
        chatChunk({ role: 'assistant', content: 'Hi' }),
        chatChunk({}, 'tool_calls'),
        chatUsageChunk(usage),
      ];
      const stream = rig.play('chat', chatStream(chunks));
      const reply = await ask(
        rig,
        dialect,
        requestBody(dialect, { model: stream.model, stream: true }),
      );
      assert.equal(readStream(dialect, reply.text).finish, 'stop', reply.text);
      const whole = chatDocument({ text: 'Hi', finish: 'tool_calls' });
      const document = rig.play('chat', { body: JSON.stringify(whole) });
      const answered = await ask(
        rig,
        dialect,
        requestBody(dialect, { model: document.model, stream: false }),
      );
      assert.equal(readDocument(dialect, answered.json).finish, 'stop', answered.text);
    });
  }
});

describe('C4 the model has the name that the client used', () => {
  for (const dialect of clientDialects) {
    for (const [alias, upstream] of [
      ['alias', 'chat'],
      ['alias-m', 'messages'],
    ] as const) {
      for (const stream of [true, false]) {
        test(`C4 ${alias}, ${dialect} client, ${stream ? 'stream' : 'document'}`, async () => {
          rig.upstreams[upstream].script('real', replying(upstream, { text: 'Hi' }));
          const reply = await ask(rig, dialect, requestBody(dialect, { model: alias, stream }));
          if (stream) {
            const named = framesOf(reply.text).map(({ data }) => {
              const value = tryParseObject(data) ?? {};
              const places = [value, objectAt(value, 'message'), objectAt(value, 'response')];
              return (
                places.map((place) => textAt(place, 'model')).find((name) => name !== '') ?? ''
              );
            });
            assert.deepEqual([...new Set(named.filter((name) => name !== ''))], [alias]);
          } else assert.equal(reply.json['model'], alias);
          assert.equal(reply.headers['x-gateway-target'], `up-${upstream}/real`);
          const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
          assert.equal(row['model'], alias);
          assert.ok(JSON.stringify(row).includes('real'), 'the resolved name is in the ledger');
        });
      }
    }
  }
});

describe('A5 beta flags', () => {
  for (const [provider, expected] of [
    ['anthropic', 'known-2025-01-01,unknown-2099-01-01'],
    ['picky', 'known-2025-01-01'],
  ] as const) {
    test(`A5 ${provider} gets ${expected}`, async () => {
      const { model, script } = rig.play('messages', replying('messages', { text: 'Hi' }));
      const name = model.replace(/^[^/]+/, provider);
      const reply = await ask(
        rig,
        'messages',
        requestBody('messages', { model: name, stream: false }),
        {
          headers: { 'anthropic-beta': 'known-2025-01-01,unknown-2099-01-01' },
        },
      );
      assert.equal(reply.status, 200, reply.text);
      assert.equal(script.requests[0]?.header('anthropic-beta')?.replaceAll(' ', ''), expected);
    });
  }
});

describe('E9 compressed upstreams', () => {
  const codings = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync };
  for (const dialect of clientDialects) {
    for (const upstream of clientDialects) {
      for (const [coding, compress] of Object.entries(codings)) {
        for (const stream of [true, false]) {
          test(`E9 ${coding}, ${upstream} upstream, ${dialect} client, ${stream ? 'stream' : 'document'}`, async () => {
            const answer = answerIn(upstream, spoken, stream);
            assert.ok(typeof answer.body === 'string');
            const { model } = rig.play(upstream, {
              ...answer,
              body: compress(answer.body),
              headers: {
                'content-encoding': coding,
                'x-hop': '1',
                connection: 'x-hop, keep-alive',
              },
            });
            const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
            assert.equal(reply.headers['content-encoding'], undefined);
            assert.equal(reply.headers['x-hop'], undefined, 'hop-by-hop');
            const length = reply.headers['content-length'];
            assert.ok(length === undefined || Number(length) === reply.bytes.length);
            const seen = stream
              ? readStream(dialect, reply.text)
              : readDocument(dialect, reply.json);
            assert.deepEqual(seen, seenOf(spoken, model));
          });
        }
      }
    }
  }
});

test('B16 every pair of formats answers', async () => {
  for (const dialect of clientDialects) {
    for (const upstream of clientDialects) {
      for (const stream of [true, false]) {
        const { model } = rig.play(upstream, replying(upstream, { text: 'Hi' }));
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
        assert.equal(reply.status, 200, `${dialect} on ${upstream}: ${reply.text}`);
      }
    }
  }
});
