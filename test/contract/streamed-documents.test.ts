/**
 * §1.2: a document for a chat client goes up to a messages upstream as a stream and is put together
 * here. It says the same as the document that the upstream would have sent.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { recordedStreams, whyOmitted } from '../recordings/recorded.ts';
import { objectAt, readDocument, readStream } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, impatientConfig, startRig, type Rig } from '../support/rig.ts';
import {
  messagesAnswer,
  messageDelta,
  messagesDocument,
  messagesError,
  messagesFrame,
  messageStart,
  textBlock,
  type MessagesReply,
} from '../upstream/messages.ts';
import { replying } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig((upstreams) => ({
    ...impatientConfig(upstreams),
    models: {
      'two-targets': { targets: ['up-messages/first', 'up-chat/second'] },
      'slow-document': {
        targets: ['up-messages/slow'],
        timeouts: { first_event: '600ms', document: '60s' },
      },
    },
  }));
});
after(() => rig.stop());

const wait = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

const replies: { readonly [name: string]: MessagesReply } = {
  text: { text: 'Hello, 你好🦀' },
  thinking: { thinking: 'Hm.', signature: 'c2ln', text: 'So.' },
  calls: {
    text: 'Let me look.',
    calls: [
      { id: 'toolu_1', name: 'f', arguments: '{"a":9007199254740993,"b":"x"}' },
      { id: 'toolu_2', name: 'g', arguments: '{}' },
    ],
  },
  'a cut answer': { text: 'Hel', stop: 'max_tokens' },
  'a refusal': { text: '', stop: 'refusal' },
  'caches and tiers': {
    text: 'x',
    usage: {
      input_tokens: 3,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 20,
      cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 15 },
      output_tokens: 8,
      service_tier: 'priority',
    },
  },
};

async function answerTo(answer: Answer): Promise<JsonObject> {
  const { model, script } = rig.play('messages', answer);
  const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
  assert.equal(reply.status, 200, reply.text);
  assert.equal((await script.request(0)).json['stream'], true);
  const [row] = await rig.gateway.callRows(model, 1);
  assert.equal(row?.['outcome'], 'ok');
  assert.equal(row['usage_source'], 'reported');
  assert.equal(row['mode'], 'translate');
  const { created: _time, model: _model, ...shown } = reply.json;
  return { ...shown, charged: objectAt(row, 'charged') };
}

describe('equal to the document', () => {
  for (const [name, reply] of Object.entries(replies)) {
    test(`§1.2 ${name}`, async () => {
      const streamed = await answerTo(messagesAnswer(reply, true));
      const whole = await answerTo({ body: JSON.stringify(messagesDocument(reply)) });
      assert.deepEqual(streamed, whole);
    });
  }
});

describe('equal to the stream', () => {
  if (whyOmitted !== undefined) test('recordings', { skip: whyOmitted }, () => undefined);
  for (const { name, upstream, frames } of recordedStreams()) {
    if (upstream !== 'messages' || name === 'spliced-message-start') continue;
    test(`§1.2 F2 ${name}`, async () => {
      const { model } = rig.play('messages', { body: frames.join(''), framing: 'chunked' });
      const whole = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
      const streamed = await ask(rig, 'chat', requestBody('chat', { model, stream: true }));
      assert.equal(whole.status, 200, whole.text);
      assert.deepEqual(readDocument('chat', whole.json), readStream('chat', streamed.text));
      const rows = await rig.gateway.callRows(model, 2);
      assert.deepEqual(rows[0]?.['charged'], rows[1]?.['charged']);
    });
  }
});

describe('failures are statuses, as for a document', () => {
  const broken = [messageStart(), ...textBlock(0, 'Hello')].map((event) => messagesFrame(event));
  const overloaded = `event: error\ndata: ${messagesError('Overloaded', 'overloaded_error')}\n\n`;
  const rows: readonly (readonly [name: string, answer: Answer, status: number])[] = [
    ['a reset in mid-stream', { body: broken, framing: 'chunked', ending: 'reset' }, 502],
    ['an end without a stop', { body: broken, framing: 'chunked' }, 502],
    ['an error in mid-stream', { body: [...broken, overloaded], framing: 'chunked' }, 503],
    ['no event that can be read', { body: [...broken, 'event: message_delta\ndata: {\n\n'] }, 502],
  ];
  for (const [name, answer, status] of rows) {
    test(`E4 E5 ${name}`, async () => {
      const { model } = rig.play('messages', answer);
      const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
      assert.equal(reply.status, status, reply.text);
      assert.equal(typeof objectAt(reply.json, 'error')['message'], 'string');
      const [row] = await rig.gateway.callRows(model, 1);
      assert.equal(row?.['outcome'], 'failed');
    });

    test(`R3 ${name}: nothing was sent, so the next target is asked`, async () => {
      rig.upstreams.messages.script('first', answer);
      rig.upstreams.chat.script('second', replying('chat', { text: 'Hello from the second' }));
      const model = 'two-targets';
      const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
      assert.equal(reply.status, 200, reply.text);
      assert.equal(readDocument('chat', reply.json).text, 'Hello from the second');
      assert.equal(reply.headers['x-gateway-attempts'], '2');
      assert.equal(reply.headers['x-gateway-target'], 'up-chat/second');
    });
  }

  test('R7 silence in mid-stream is a timeout', async () => {
    const { model } = rig.playImpatient('messages', { body: broken, ending: 'hang' });
    const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
    assert.equal(reply.status, 504, reply.text);
  });

  test('§1.2 an answer may take longer than a document may, while it comes', async () => {
    const { model } = rig.playImpatient('messages', () => ({
      body: [
        messagesFrame(messageStart()),
        ...textBlock(0, 'Hello').flatMap((event, i) => [wait(150 * (i + 1)), messagesFrame(event)]),
        messagesFrame(messageDelta('end_turn')),
        messagesFrame({ type: 'message_stop' }),
      ],
      framing: 'chunked',
    }));
    const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
    assert.equal(reply.status, 200, reply.text);
    assert.equal(readDocument('chat', reply.json).text, 'Hello');
  });

  test('R7 an upstream that sends a document all the same has the time of a document', async () => {
    const whole = JSON.stringify(messagesDocument({ text: 'Hello' }));
    rig.upstreams.messages.script('slow', () => ({
      headers: { 'content-type': 'application/json' },
      body: [whole.slice(0, 20), wait(1200), whole.slice(20)],
      framing: 'chunked',
    }));
    const body = requestBody('chat', { model: 'slow-document', stream: false });
    const reply = await ask(rig, 'chat', body);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(readDocument('chat', reply.json).text, 'Hello');
  });

  test('LC a client that leaves cancels the stream behind its document', async () => {
    const { model, script } = rig.play('messages', { body: broken, ending: 'hang' });
    const leaving = new AbortController();
    const body = requestBody('chat', { model, stream: false });
    const asked = ask(rig, 'chat', body, { signal: leaving.signal });
    const request = await script.request(0);
    await wait(50);
    leaving.abort();
    await asked.catch(() => undefined);
    assert.equal(await request.closed, 'gateway');
    await rig.gateway.noneLeft();
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(row?.['outcome'], 'canceled');
  });
});

test('§1.2 a relayed document stays a document', async () => {
  const { model, script } = rig.play('messages', replying('messages', { text: 'Hello' }));
  await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
  assert.equal((await script.request(0)).json['stream'], undefined);
});
