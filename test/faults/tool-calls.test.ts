/** Tool calls as engines really send them (B1, B6, B10–B12, C1–C3, D7, F59, F55). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { endingOf, objectAt, readDocument, readStream, type Seen } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import {
  clientDialects,
  pairs,
  type ClientDialect,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { requestBody } from '../support/requests.ts';
import { allSdks } from '../support/sdks.ts';
import {
  chatAnswer,
  chatChunk,
  chatDocument,
  chatDone,
  chatFrame,
  chatUsageChunk,
} from '../upstream/chat.ts';
import { converseAnswer, streamOf as converseStreamOf } from '../upstream/converse.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import { messagesAnswer, messagesDocument } from '../upstream/messages.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };

function part(index: number | undefined, fields: JsonObject): JsonObject {
  return { ...(index === undefined ? {} : { index }), ...fields };
}

function start(index: number | undefined, id: string, name: string, args: string): JsonObject {
  return part(index, { id, type: 'function', function: { name, arguments: args } });
}

function more(index: number, args: string): JsonObject {
  return part(index, { function: { arguments: args } });
}

function calls(...parts: readonly JsonObject[]): JsonObject {
  return chatChunk({ tool_calls: parts });
}

function chatStream(chunks: readonly JsonObject[], finish: string | null = 'tool_calls'): Answer {
  const all = [
    chatChunk({ role: 'assistant', content: null }),
    ...chunks,
    ...(finish === null ? [] : [chatChunk({}, finish)]),
    chatUsageChunk(usage),
  ];
  return { body: all.map((chunk) => chatFrame(chunk)).join('') + chatDone, framing: 'chunked' };
}

/** What a client of a dialect sees of a chat upstream's stream; checked for its legal form. */
async function streamed(dialect: ClientDialect, answer: Answer): Promise<Seen> {
  const { model } = rig.play('chat', answer);
  const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
  assert.equal(reply.status, 200, reply.text);
  assert.equal(endingOf(dialect, reply.text), 'proper', reply.text);
  for (const sdk of allSdks.filter((candidate) => candidate.dialect === dialect)) {
    await sdk.connect({ url: rig.gateway.url }).final({ model, text: 'Hi' });
  }
  return readStream(dialect, reply.text);
}

const two: Seen['calls'] = [
  { id: 'call_a', name: 'f', arguments: { x: 1 } },
  { id: 'call_b', name: 'g', arguments: { y: [2] } },
];

const twoCallStreams: { readonly [name: string]: readonly JsonObject[] } = {
  'B1 fragments of two calls in turn': [
    calls(start(0, 'call_a', 'f', '')),
    calls(start(1, 'call_b', 'g', '')),
    calls(more(0, '{"x"')),
    calls(more(1, '{"y"')),
    calls(more(0, ':1}')),
    calls(more(1, ':[2]}')),
  ],
  'B1 fragments of two calls in one chunk': [
    calls(start(0, 'call_a', 'f', ''), start(1, 'call_b', 'g', '')),
    calls(more(1, '{"y":[2'), more(0, '{"x":')),
    calls(more(0, '1}'), more(1, ']}')),
  ],
  'C1 the opening chunk carries the whole arguments': [
    calls(start(0, 'call_a', 'f', '{"x":1}')),
    calls(start(1, 'call_b', 'g', '{"y":[2]}')),
  ],
  'C1 text in the chunk that opens a call': [
    chatChunk({ content: '', tool_calls: [start(0, 'call_a', 'f', '{"x":1}')] }),
    calls(start(1, 'call_b', 'g', '{"y":[2]}')),
  ],
};

describe('two calls of a chat upstream', () => {
  for (const dialect of clientDialects) {
    for (const [name, chunks] of Object.entries(twoCallStreams)) {
      test(`${name}, for ${dialect}`, async () => {
        const seen = await streamed(dialect, chatStream(chunks));
        assert.deepEqual(seen.calls, two);
        assert.equal(seen.finish, 'tools');
      });
    }
  }

  test('B10 both with index 0 and ids of their own', async () => {
    const seen = await streamed(
      'messages',
      chatStream([
        calls(start(0, 'call_a', 'f', '{"x":1}')),
        calls(start(0, 'call_b', 'g', '{"y":[2]}')),
      ]),
    );
    assert.deepEqual(seen.calls, two);
  });

  test('B6 id and name repeated on every fragment', async () => {
    const seen = await streamed(
      'messages',
      chatStream([
        calls(start(0, 'call_a', 'f', '{"x"')),
        calls(start(0, 'call_a', 'f', ':1}')),
        calls(start(1, 'call_b', 'g', '{"y"')),
        calls(start(1, 'call_b', 'g', ':[2]}')),
      ]),
    );
    assert.deepEqual(seen.calls, two);
  });

  test('F59 a gap in the indexes', async () => {
    const seen = await streamed(
      'messages',
      chatStream([
        calls(start(1, 'call_a', 'f', '{"x":1}')),
        calls(start(4, 'call_b', 'g', '{"y":[2]}')),
      ]),
    );
    assert.deepEqual(seen.calls, two);
  });

  test('F59 the id comes late', async () => {
    const seen = await streamed(
      'messages',
      chatStream([
        calls(part(0, { type: 'function', function: { name: 'f', arguments: '' } })),
        calls(part(0, { id: 'call_a', function: { arguments: '{"x":1}' } })),
        calls(start(1, 'call_b', 'g', '{"y":[2]}')),
      ]),
    );
    assert.deepEqual(
      seen.calls.map(({ name, arguments: args }) => [name, args]),
      two.map(({ name, arguments: args }) => [name, args]),
    );
    assert.ok(seen.calls.every(({ id }) => id !== ''));
  });

  test('C2 white space between two calls', async () => {
    const seen = await streamed(
      'messages',
      chatStream([
        calls(start(0, 'call_a', 'f', '{"x":1}')),
        chatChunk({ content: '\n' }),
        calls(start(1, 'call_b', 'g', '{"y":[2]}')),
      ]),
    );
    assert.deepEqual(seen.calls, two);
    assert.equal(seen.text.trim(), '');
  });

  test('B6 no ids at all: each gets one of its own', async () => {
    const seen = await streamed(
      'messages',
      chatStream([
        calls(part(0, { type: 'function', function: { name: 'f', arguments: '{"x":1}' } })),
        calls(part(1, { type: 'function', function: { name: 'g', arguments: '{"y":[2]}' } })),
      ]),
    );
    const ids = seen.calls.map(({ id }) => id);
    assert.equal(new Set(ids).size, 2);
    assert.ok(
      ids.every((id) => /^[\w-]+$/.test(id)),
      ids.join(),
    );
  });
});

describe('finishes', () => {
  for (const dialect of clientDialects) {
    test(`B11 a call with finish "stop" is a tool finish, ${dialect}`, async () => {
      if (dialect === 'chat') return;
      const seen = await streamed(
        dialect,
        chatStream([calls(start(0, 'a', 'f', '{"x":1}'))], 'stop'),
      );
      assert.equal(seen.finish, 'tools');
    });
  }

  test('B11 the mirror: finish "tool_calls" without a call is a plain end', async () => {
    const seen = await streamed(
      'messages',
      chatStream([chatChunk({ content: 'Hi' })], 'tool_calls'),
    );
    assert.equal(seen.finish, 'stop');
  });

  test('B12 a call that the token limit cut off stays cut off', async () => {
    const { model } = rig.play('chat', chatStream([calls(start(0, 'a', 'f', '{"x":'))], 'length'));
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: true }));
    const seen = readStream('messages', reply.text);
    assert.equal(seen.finish, 'length', reply.text);
  });

  test('B12 the same in a document', async () => {
    const document = chatDocument({
      calls: [{ id: 'a', name: 'f', arguments: '{"x":' }],
      finish: 'length',
    });
    const { model } = rig.play('chat', { body: JSON.stringify(document) });
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
    assert.equal(readDocument('messages', reply.json).finish, 'length', reply.text);
  });
});

describe('broken arguments', () => {
  const broken = '{"x": tru, oops}';

  test('F59 relayed as they are on the same wire', async () => {
    const seen = await streamed('chat', chatStream([calls(start(0, 'a', 'f', broken))]));
    assert.deepEqual(seen.calls, [{ id: 'a', name: 'f', arguments: broken }]);
  });

  test('F59 streamed to a messages client: an error, for its input must be an object', async () => {
    const { model } = rig.play('chat', chatStream([calls(start(0, 'a', 'f', broken))]));
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: true }));
    assert.equal(endingOf('messages', reply.text), 'error', reply.text);
  });

  test('F-9 F59 in a document for a messages client: an error, as in a stream', async () => {
    const document = chatDocument({ calls: [{ id: 'a', name: 'f', arguments: broken }] });
    const { model } = rig.play('chat', { body: JSON.stringify(document) });
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
    assert.equal(reply.status, 502, reply.text);
    const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
    assert.deepEqual([row['outcome'], row['error']], ['failed', 'upstream_invalid']);
    assert.ok(
      Number(objectAt(row, 'charged')['output_tokens']) > 0,
      'it was made, and is paid for',
    );
  });

  for (const stream of [true, false]) {
    test(`F59 what begins like no object is wrapped for a messages client, ${stream ? 'streamed' : 'in a document'}`, async () => {
      const answer = stream
        ? chatStream([calls(start(0, 'a', 'f', 'no JSON'))])
        : {
            body: JSON.stringify(
              chatDocument({ calls: [{ id: 'a', name: 'f', arguments: 'no JSON' }] }),
            ),
          };
      const { model } = rig.play('chat', answer);
      const reply = await ask(rig, 'messages', requestBody('messages', { model, stream }));
      const seen = stream
        ? readStream('messages', reply.text)
        : readDocument('messages', reply.json);
      assert.deepEqual(seen.calls, [{ id: 'a', name: 'f', arguments: { _raw: 'no JSON' } }]);
    });
  }

  for (const stream of [true, false]) {
    for (const dialect of clientDialects) {
      test(`F-8 a call without a name is an error beside a text: ${dialect}, ${stream ? 'stream' : 'document'}`, async () => {
        const call = { id: 'a', type: 'function', function: { arguments: '{}' } };
        const document = chatDocument({ text: 'Looking.' });
        const choices = [
          {
            index: 0,
            message: { content: 'Looking.', tool_calls: [call] },
            finish_reason: 'tool_calls',
          },
        ];
        const answer = stream
          ? chatStream([chatChunk({ content: 'Looking.' }), calls(part(0, call))])
          : { body: JSON.stringify({ ...document, choices }) };
        const { model } = rig.play('chat', answer);
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }), {
          oddFrames: true,
        });
        if (stream) assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
        else assert.equal(reply.status, 502, reply.text);
      });
    }
  }
});

describe('reasoning of a chat upstream for a messages client', () => {
  const spellings: { readonly [name: string]: (text: string) => JsonObject } = {
    reasoning_content: (text) => ({ reasoning_content: text }),
    reasoning: (text) => ({ reasoning: text }),
    'both spellings': (text) => ({ reasoning_content: text, reasoning: text }),
  };
  for (const [name, spell] of Object.entries(spellings)) {
    test(`D7 C1 ${name}: once, before the text`, async () => {
      const seen = await streamed(
        'messages',
        chatStream(
          [chatChunk(spell('Let me ')), chatChunk(spell('think.')), chatChunk({ content: 'So.' })],
          'stop',
        ),
      );
      assert.equal(seen.reasoning, 'Let me think.');
      assert.equal(seen.text, 'So.');
    });
  }
});

describe('F55 usage that never comes', () => {
  for (const { client: dialect, upstream } of pairs) {
    for (const stream of [true, false]) {
      const cases: { readonly [U in UpstreamDialect]: Answer } = {
        chat: chatAnswer({ text: 'Hello there, this is an answer.', usage: null }, stream),
        messages: stream
          ? messagesAnswer({ text: 'Hello there, this is an answer.', usage: {} }, true)
          : {
              body: JSON.stringify({
                ...messagesDocument({ text: 'Hello there, this is an answer.' }),
                usage: undefined,
              }),
            },
        responses: responsesAnswer([textItem('Hello there, this is an answer.')], {
          stream,
          usage: null,
        }),
        gemini: (stream ? streamOf : geminiAnswer)({
          parts: [{ text: 'Hello there, this is an answer.' }],
          usage: null,
        }),
        converse: (stream ? converseStreamOf : converseAnswer)({
          content: [{ text: 'Hello there, this is an answer.' }],
          usage: null,
        }),
      };

      test(`${dialect} on ${upstream}, ${stream ? 'stream' : 'document'}: estimated and marked`, async () => {
        const { model } = rig.play(upstream, cases[upstream]);
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
        assert.equal(reply.status, 200, reply.text);
        const seen = stream ? readStream(dialect, reply.text) : readDocument(dialect, reply.json);
        assert.ok((seen.usage?.output ?? 0) > 0, `an estimate is told: ${reply.text}`);
        assert.ok((seen.usage?.fresh ?? 0) > 0, `an estimate is told: ${reply.text}`);
        if (!stream) assert.equal(reply.headers['x-gateway-usage'], 'estimated');
        const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
        assert.equal(row['usage_source'], 'estimated');
        assert.equal(row['outcome'], 'ok');
        const charged = objectAt(row, 'charged');
        assert.equal(seen.usage?.output, charged['output_tokens'], 'told as it is charged');
        assert.equal(seen.usage?.fresh, charged['fresh_input_tokens'], 'told as it is charged');
      });
    }
  }
});
