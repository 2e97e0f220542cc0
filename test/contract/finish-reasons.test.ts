/** B11–B13, §7.3: why an answer ended, both ways, as a document and as a stream. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Json, JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import type { Reply } from '../support/http.ts';
import {
  endingOf,
  framesOf,
  listAt,
  objectAt,
  readDocument,
  readStream,
  streamError,
} from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatAnswer, chatChunk, chatDocument, chatFrame } from '../upstream/chat.ts';
import { messagesAnswer, messagesDocument } from '../upstream/messages.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const call = { id: 'call_1', name: 'f', arguments: '{}' } as const;

interface Row {
  readonly upstream: string;
  readonly client: string;
  readonly withCall?: true;
  /** The end is told as unexplained, where headers still can. */
  readonly noted?: true;
}

const chatRows: readonly Row[] = [
  { upstream: 'stop', client: 'end_turn' },
  { upstream: 'stop', withCall: true, client: 'tool_use' },
  { upstream: 'length', client: 'max_tokens' },
  { upstream: 'length', withCall: true, client: 'max_tokens' },
  { upstream: 'tool_calls', withCall: true, client: 'tool_use' },
  { upstream: 'tool_calls', client: 'end_turn', noted: true },
  { upstream: 'function_call', withCall: true, client: 'tool_use' },
  { upstream: 'content_filter', client: 'refusal' },
  { upstream: 'model_length', client: 'max_tokens' },
  { upstream: 'eos', client: 'end_turn' },
  { upstream: 'something_new', client: 'end_turn', noted: true },
  { upstream: 'something_new', withCall: true, client: 'tool_use' },
];

const messagesRows: readonly Row[] = [
  { upstream: 'end_turn', client: 'stop' },
  { upstream: 'stop_sequence', client: 'stop' },
  { upstream: 'max_tokens', client: 'length' },
  { upstream: 'tool_use', withCall: true, client: 'tool_calls' },
  { upstream: 'pause_turn', client: 'length' },
  { upstream: 'refusal', client: 'content_filter' },
  { upstream: 'model_context_window_exceeded', client: 'length' },
  { upstream: 'compaction', client: 'stop' },
  { upstream: 'something_new', client: 'stop', noted: true },
];

function stopReason(reply: Reply, stream: boolean): Json | undefined {
  if (!stream) return reply.json['stop_reason'];
  const deltas = framesOf(reply.text).filter(({ event }) => event === 'message_delta');
  return objectAt(tryParseObject(deltas.at(-1)?.data ?? '') ?? {}, 'delta')['stop_reason'];
}

function finishReason(reply: Reply, stream: boolean): Json | undefined {
  const documents = stream
    ? framesOf(reply.text).map(({ data }) => tryParseObject(data) ?? {})
    : [reply.json];
  const choices = documents.flatMap((document) => listAt(document, 'choices'));
  return choices.findLast((choice) => typeof choice['finish_reason'] === 'string')?.[
    'finish_reason'
  ];
}

async function assertNoted(reply: Reply, row: Row, field: string): Promise<void> {
  const call = await rig.gateway.callRow(String(reply.headers['x-request-id']));
  const noted = JSON.stringify(call['notes'] ?? []).includes(field);
  assert.equal(noted, row.noted === true, JSON.stringify(call['notes']));
}

for (const stream of [false, true]) {
  const how = stream ? 'streamed' : 'whole';

  describe(`chat upstreams to messages clients, ${how}`, () => {
    for (const row of chatRows) {
      const { upstream: finish, client, withCall } = row;
      test(`B13 ${finish}${withCall === true ? ' with a call' : ''} is ${client}`, async () => {
        const calls = withCall === true ? [call] : [];
        const answer = chatAnswer({ text: 'Hello', calls, finish }, stream);
        const { model } = rig.play('chat', answer);
        const reply = await ask(rig, 'messages', requestBody('messages', { model, stream }));
        assert.equal(stopReason(reply, stream), client, reply.text);
        if (stream) assert.equal(endingOf('messages', reply.text), 'proper');
        await assertNoted(reply, row, 'stop_reason');
      });
    }

    test('B13 a stop sequence that the server names', async () => {
      const named = { stop_reason: 'END' };
      const document = chatDocument({ text: 'Hello' });
      const [choice] = listAt(document, 'choices');
      const body = stream
        ? [
            chatChunk({ role: 'assistant', content: 'Hello' }),
            {
              ...chatChunk({}),
              choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...named }],
            },
          ]
            .map((chunk) => chatFrame(chunk))
            .concat('data: [DONE]\n\n')
            .join('')
        : JSON.stringify({ ...document, choices: [{ ...choice, ...named }] });
      const { model } = rig.play('chat', { body, ...(stream ? { framing: 'chunked' } : {}) });
      const reply = await ask(rig, 'messages', requestBody('messages', { model, stream }));
      assert.equal(stopReason(reply, stream), 'stop_sequence');
      assert.match(reply.text, /"stop_sequence":"END"/);
    });

    const failures: readonly (readonly [word: string, status: number, type: string])[] = [
      ['insufficient_system_resource', 529, 'overloaded_error'],
      ['error', 502, 'api_error'],
      ['abort', 502, 'api_error'],
      ['cancelled', 502, 'api_error'],
    ];
    for (const [word, status, type] of failures) {
      test(`B13 E5 ${word} before any content is ${status}`, async () => {
        const { model } = rig.play('chat', chatAnswer({ finish: word }, stream));
        const reply = await ask(rig, 'messages', requestBody('messages', { model, stream }));
        assert.equal(reply.status, status, reply.text);
        assert.equal(objectAt(reply.json, 'error')['type'], type);
      });

      test(`B13 E5 ${word} behind content is an error`, async () => {
        const { model } = rig.play('chat', chatAnswer({ text: 'Hello', finish: word }, stream));
        const reply = await ask(rig, 'messages', requestBody('messages', { model, stream }));
        if (!stream) return assert.equal(reply.status, status, reply.text);
        assert.equal(endingOf('messages', reply.text), 'error');
        assert.equal(streamError(reply.text)['type'], type);
      });
    }
  });

  describe(`messages upstreams to chat clients, ${how}`, () => {
    for (const row of messagesRows) {
      const { upstream: stop, client, withCall } = row;
      test(`B13 ${stop} is ${client}`, async () => {
        const calls = withCall === true ? [call] : [];
        // The upstream may answer with documents too: both ways must say the same.
        for (const asStream of [true, false]) {
          const answer = messagesAnswer({ text: 'Hello', calls, stop }, asStream);
          const { model } = rig.play('messages', answer);
          const reply = await ask(rig, 'chat', requestBody('chat', { model, stream }));
          assert.equal(finishReason(reply, stream), client, reply.text);
          const seen = stream ? readStream('chat', reply.text) : readDocument('chat', reply.json);
          assert.equal(seen.text, 'Hello');
          await assertNoted(reply, row, 'finish_reason');
        }
      });
    }
  });
}

/** The status of a response, or why it is incomplete, by the word that a chat or a messages client gets. */
const responsesEnds: { readonly [word: string]: string } = {
  length: 'max_output_tokens',
  max_tokens: 'max_output_tokens',
  content_filter: 'content_filter',
  refusal: 'content_filter',
};

for (const stream of [false, true]) {
  describe(`upstreams to responses clients, ${stream ? 'streamed' : 'whole'}`, () => {
    for (const [upstream, rows] of [
      ['chat', chatRows],
      ['messages', messagesRows],
    ] as const) {
      for (const row of rows) {
        const { upstream: word, client, withCall } = row;
        const end = responsesEnds[client] ?? 'completed';
        test(`§5.3 ${word} of ${upstream}${withCall === true ? ' with a call' : ''} is ${end}`, async () => {
          const reply = { text: 'Hello', calls: withCall === true ? [call] : [] };
          const answer =
            upstream === 'chat'
              ? chatAnswer({ ...reply, finish: word }, stream)
              : messagesAnswer({ ...reply, stop: word }, stream);
          const { model } = rig.play(upstream, answer);
          const got = await ask(rig, 'responses', requestBody('responses', { model, stream }));
          const last = tryParseObject(framesOf(got.text).at(-1)?.data ?? '') ?? {};
          const response = stream ? objectAt(last, 'response') : got.json;
          const reason = objectAt(response, 'incomplete_details')['reason'];
          assert.equal(reason ?? response['status'], end, got.text);
          await assertNoted(got, row, 'status');
        });
      }
    }
  });
}

describe('no reason at all', () => {
  test('§7.3 in a whole chat answer it is a natural end, and noted', async () => {
    const document = chatDocument({ text: 'Hello' });
    const [choice] = listAt(document, 'choices');
    const body: JsonObject = { ...document, choices: [{ ...choice, finish_reason: null }] };
    const { model } = rig.play('chat', { body: JSON.stringify(body) });
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
    assert.equal(reply.json['stop_reason'], 'end_turn');
    assert.match(String(reply.headers['x-gateway-notes']), /^stop_reason: changed/);
  });

  test('§7.3 in a whole messages answer it is a natural end, and noted', async () => {
    const body = { ...messagesDocument({ text: 'Hello' }), stop_reason: null };
    const { model } = rig.play('messages', { body: JSON.stringify(body) });
    const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
    assert.equal(finishReason(reply, false), 'stop');
    assert.match(String(reply.headers['x-gateway-notes']), /^finish_reason: changed/);
  });

  test('E4 in a stream it is a failure', async () => {
    const chunks = [chatChunk({ role: 'assistant', content: 'Hello' })].map((each) =>
      chatFrame(each),
    );
    const { model } = rig.play('chat', { body: [...chunks, 'data: [DONE]\n\n'] });
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: true }));
    assert.equal(endingOf('messages', reply.text), 'error');
  });
});
