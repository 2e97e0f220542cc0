/** §1.4, §2.1: stop sequences that the upstream cannot take end the answer all the same. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Json } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import type { Reply } from '../support/http.ts';
import {
  framesOf,
  listAt,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Played, type Rig } from '../support/rig.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  messagesFrame,
  messageStart,
  textBlock,
} from '../upstream/messages.ts';
import { replying } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

/** Text that never ends by itself, in the given pieces. */
function endless(upstream: Dialect, pieces: readonly string[]): Answer {
  const frames =
    upstream === 'chat'
      ? [
          chatFrame(chatChunk({ role: 'assistant', content: '' })),
          ...pieces.map((content) => chatFrame(chatChunk({ content }))),
        ]
      : [
          messageStart(),
          blockStart(0, { type: 'text', text: '' }),
          ...pieces.map((text) => blockDelta(0, { type: 'text_delta', text })),
        ].map((event) => messagesFrame(event));
  return { body: frames, ending: 'hang' };
}

const other: { readonly [D in Dialect]: Dialect } = { chat: 'messages', messages: 'chat' };
const field: { readonly [D in Dialect]: string } = { chat: 'stop', messages: 'stop_sequences' };

interface Row {
  readonly name: string;
  readonly client: Dialect;
  readonly stops: readonly string[];
  /** The request that the upstream gets. */
  readonly native: Json | undefined;
  readonly pieces: readonly string[];
  readonly text: string;
  readonly sequence: string;
}

const rows: readonly Row[] = [
  {
    name: 'white space on a messages upstream',
    client: 'chat',
    stops: ['\n\n', 'END'],
    native: ['END'],
    pieces: ['One', '\n', 'two\n', '\nthree', ' and so on'],
    text: 'One\ntwo',
    sequence: '\n\n',
  },
  {
    name: 'more than a chat upstream takes',
    client: 'messages',
    stops: ['one', 'two', 'three', 'four', 'five'],
    native: undefined,
    pieces: ['ze', 'ro, f', 'i', 've, six'],
    text: 'zero, ',
    sequence: 'five',
  },
];

async function asked(row: Row, stream: boolean): Promise<{ reply: Reply; played: Played }> {
  const upstream = other[row.client];
  const played = rig.play(upstream, endless(upstream, row.pieces));
  const more = { [field[row.client]]: row.stops };
  const body = requestBody(row.client, { model: played.model, stream, more });
  return { reply: await ask(rig, row.client, body), played };
}

function seen(client: Dialect, reply: Reply, stream: boolean): Seen {
  return stream ? readStream(client, reply.text) : readDocument(client, reply.json);
}

/** The sequence as the client's dialect names it. */
function sequenceOf(client: Dialect, reply: Reply, stream: boolean): Json | undefined {
  if (client === 'messages') {
    if (!stream) return reply.json['stop_sequence'];
    const deltas = framesOf(reply.text).filter(({ event }) => event === 'message_delta');
    return objectAt(tryParseObject(deltas.at(-1)?.data ?? '') ?? {}, 'delta')['stop_sequence'];
  }
  const documents = stream
    ? framesOf(reply.text).map(({ data }) => tryParseObject(data) ?? {})
    : [reply.json];
  const choices = documents.flatMap((document) => listAt(document, 'choices'));
  return choices.findLast((choice) => choice['stop_reason'] !== undefined)?.['stop_reason'];
}

for (const row of rows) {
  for (const stream of [true, false]) {
    test(`§1.4 ${row.name}, ${stream ? 'stream' : 'document'}`, async () => {
      const { reply, played } = await asked(row, stream);
      assert.equal(reply.status, 200, reply.text);
      const shown = seen(row.client, reply, stream);
      assert.equal(shown.text, row.text);
      assert.equal(shown.finish, 'stop');
      assert.equal(sequenceOf(row.client, reply, stream), row.sequence);
      assert.equal(reply.headers['x-gateway-notes'], undefined, 'nothing is lost');

      const request = await played.script.request(0);
      assert.deepEqual(request.json[field[other[row.client]]], row.native);
      assert.equal(request.json['stream'], true, 'only a stream can be cut');
      assert.equal(await request.closed, 'gateway', 'the upstream is canceled at once');
    });

    test(`F7 §1.4 ${row.name} is charged for what came, ${stream ? 'stream' : 'document'}`, async () => {
      const { played } = await asked(row, stream);
      const [call] = await rig.gateway.callRows(played.model, 1);
      assert.equal(call?.['outcome'], 'ok');
      assert.equal(call['usage_source'], 'estimated');
      const charged = objectAt(call, 'charged');
      const received = row.pieces.join('').length;
      assert.ok(numberAt(charged, 'output_tokens') > 0);
      assert.ok(numberAt(charged, 'output_tokens') <= received);
      if (row.client === 'chat')
        assert.equal(charged['fresh_input_tokens'], 9, 'as it was reported');
    });
  }
}

describe('what is not cut', () => {
  test('§1.4 an answer that holds none of them ends as it would', async () => {
    for (const stream of [true, false]) {
      const { model } = rig.play('messages', replying('messages', { text: 'One\nand two\n' }));
      const body = requestBody('chat', { model, stream, more: { stop: '\n\n' } });
      const reply = await ask(rig, 'chat', body);
      const shown = seen('chat', reply, stream);
      assert.equal(shown.text, 'One\nand two\n');
      assert.equal(shown.finish, 'stop');
      assert.equal(sequenceOf('chat', reply, stream), undefined);
      assert.equal(shown.usage?.output, 7, 'as it was reported');
    }
  });

  test('§1.4 a call is not looked into, and its answer stays whole', async () => {
    const calls = [{ id: 'toolu_1', name: 'f', arguments: '{"a":"x\\n\\ny","b":[\n\n]}' }];
    for (const stream of [true, false]) {
      const { model } = rig.play('messages', replying('messages', { text: 'Hi', calls }));
      const body = requestBody('chat', { model, stream, more: { stop: ['\n\n', ' '] } });
      const shown = seen('chat', await ask(rig, 'chat', body), stream);
      assert.equal(shown.text, 'Hi');
      assert.equal(shown.finish, 'tools');
      assert.deepEqual(shown.calls[0]?.arguments, { a: 'x\n\ny', b: [] });
    }
  });

  test('E4 what was held back is shown before a failure', async () => {
    const frames = [messageStart(), ...textBlock(0, 'One\n').slice(0, -1)];
    const { model } = rig.play('messages', {
      body: frames.map((event) => messagesFrame(event)),
      framing: 'chunked',
    });
    const body = requestBody('chat', { model, stream: true, more: { stop: '\n\n' } });
    const reply = await ask(rig, 'chat', body);
    assert.match(reply.text, /"content":"\\n"/);
    assert.match(reply.text, /"error":/);
    assert.doesNotMatch(reply.text, /\[DONE\]/);
  });
});

test('F1 §1.4 usage that came along behind a sequence is reported in streams as in documents', async () => {
  for (const stream of [true, false]) {
    const pieces = [
      chatChunk({ role: 'assistant', content: 'One END two' }),
      chatChunk({}, 'stop'),
      { ...chatChunk({}), choices: [], usage: { prompt_tokens: 50, completion_tokens: 4 } },
    ];
    const body = pieces.map((piece) => chatFrame(piece)).join('');
    const { model } = rig.play('chat', { body, headers: { 'content-type': 'text/event-stream' } });
    const more = { stop_sequences: ['END', 'a', 'b', 'c', 'd'] };
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream, more }));
    const last = stream
      ? tryParseObject(
          framesOf(reply.text).find(({ event }) => event === 'message_delta')?.data ?? '',
        )
      : reply.json;
    const usage = objectAt(last ?? {}, 'usage');
    assert.equal(numberAt(usage, 'input_tokens'), 50, reply.text);
    assert.equal(numberAt(usage, 'output_tokens'), 4);
    const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
    assert.equal(objectAt(row, 'charged')['output_tokens'], 4);
  }
});

test("§1.4 relayed sequences are the upstream's own business", async () => {
  const { model, script } = rig.play('chat', replying('chat', { text: 'a\n\nb' }));
  const body = requestBody('chat', { model, stream: true, more: { stop: ['\n\n'] } });
  const reply = await ask(rig, 'chat', body);
  assert.equal(readStream('chat', reply.text).text, 'a\n\nb');
  assert.deepEqual((await script.request(0)).json['stop'], ['\n\n']);
});

test('E11 an upstream that answers with a document is cut as well', async () => {
  for (const stream of [true, false]) {
    const { model } = rig.play('messages', () => {
      const document = {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text: 'One\n\ntwo' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 9, output_tokens: 5 },
      };
      return { body: JSON.stringify(document) };
    });
    const body = requestBody('chat', { model, stream, more: { stop: '\n\n' } });
    const reply = await ask(rig, 'chat', body);
    const shown = seen('chat', reply, stream);
    assert.equal(shown.text, 'One');
    assert.equal(sequenceOf('chat', reply, stream), '\n\n');
    const [call] = await rig.gateway.callRows(model, 1);
    assert.equal(call?.['usage_source'], 'reported', 'all of it was generated and told');
  }
});
