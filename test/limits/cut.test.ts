/** Answers against what was reserved for them: F63 (the cap is ignored) and F64 (the money runs out). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { assertAnyStream } from '../support/legality.ts';
import { clientDialects, upstreamDialects } from '../support/dialects.ts';
import { endingOf, readStream } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatChunk, chatFrame, chatFrames } from '../upstream/chat.ts';
import { blockDelta, blockStart, messagesFrame, messageStart } from '../upstream/messages.ts';
import type { Answer } from '../upstream/scripted.ts';
import { endlessAnswer } from './endless.ts';
import { nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    prices: {
      'up-chat/*': { input: 0, output: 10 },
      'up-messages/*': { input: 0, output: 10 },
      'up-responses/*': { input: 0, output: 10 },
      'up-gemini/*': { input: 0, output: 10 },
      'up-converse/*': { input: 0, output: 10 },
      'up-messages/dear': { input: 10, output: 10 },
      'up-chat/dear': { input: 10, output: 10 },
    },
  });
});
after(() => rig.stop());

const word = ' tomorrow';
const cap = 40;

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    test(`F63 an endless stream is cut at what was reserved: ${dialect} on ${upstream}`, async () => {
      const { model, script } = rig.play(upstream, endlessAnswer(upstream));
      const key = await rig.key({ budget: 1, per: 'day' });
      const body = requestBody(dialect, { model, stream: true, more: { max_tokens: cap } });
      const reply = await rig.call(key, dialect, body);
      assert.equal(reply.status, 200);
      assert.ok(reply.complete);
      assert.equal(endingOf(dialect, reply.text), 'proper');
      const relayed = reply.headers['x-gateway-mode'] === 'relay';
      assertAnyStream({ dialect, origin: relayed ? 'relayed' : 'own' }, body, reply.text);
      const seen = readStream(dialect, reply.text);
      assert.equal(seen.finish, 'length');
      assert.equal(seen.usage?.output, cap);
      assert.equal(await (await script.request(0)).closed, 'gateway');
      const [row] = await rig.gateway.callRows(model, 1);
      assert.equal(row?.['outcome'], 'ok');
      assert.equal(row['usage_source'], 'estimated');
      assert.equal(await rig.spent(key), cap * nanodollarsOfOutput);
    });
  }
}

test('F63 also behind a client that wants a document', async () => {
  const { model } = rig.play('messages', endlessAnswer('messages'));
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: cap, stop: [' '] };
  const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
  assert.equal(reply.status, 200, reply.text);
});

test('F63 all answers of n end', async () => {
  const { model } = rig.play('chat', endlessAnswer('chat'));
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: cap, n: 2 };
  const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
  assert.match(reply.text, /"index":0,"delta":{},"logprobs":null,"finish_reason":"length"/);
  assert.match(reply.text, /"index":1,"delta":{},"logprobs":null,"finish_reason":"length"/);
});

test('an answer that keeps to its cap is never cut, whatever its characters', async () => {
  const texts = [
    'x9$ '.repeat(10),
    '你好世界'.repeat(9),
    '\n\n\t{}[]();'.repeat(3),
    'aaaa'.repeat(30),
  ];
  for (const text of texts) {
    const usage = { prompt_tokens: 9, completion_tokens: cap, total_tokens: 9 + cap };
    const { model } = rig.play('chat', { body: chatFrames({ text, finish: 'length', usage }) });
    const key = await rig.key({ budget: 1, per: 'day' });
    const more = { max_tokens: cap };
    const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
    assert.equal(readStream('chat', reply.text).text, text);
    assert.equal(readStream('chat', reply.text).usage?.output, cap);
  }
});

test('reasoning beside the cap is cut where a budget pays for it, and not where tokens are counted', async () => {
  const thoughts = Array.from({ length: 300 }, () =>
    chatFrame(chatChunk({ reasoning_content: ' perhaps' })),
  );
  const gate = Promise.withResolvers<void>();
  const { model, script } = rig.play(
    'chat',
    { body: [...thoughts, gate.promise, ...chatFrames({ text: 'Yes.' })] },
    { body: thoughts, ending: 'hang' },
  );
  const body = requestBody('chat', { model, stream: true, more: { max_tokens: cap } });
  const counted = rig.call(await rig.key({ tpm: 10_000 }), 'chat', body);
  await script.request(0);
  gate.resolve();
  assert.equal(readStream('chat', (await counted).text).text, 'Yes.');
  const paid = await rig.call(await rig.key({ budget: 1, per: 'day' }), 'chat', body);
  assert.equal(readStream('chat', paid.text).finish, 'length');
});

test('a key without budgets and limits is not cut', async () => {
  const { model } = rig.play('chat', { body: chatFrames({ text: word.repeat(400) }) });
  const more = { max_tokens: cap };
  const reply = await rig.call(await rig.key(), 'chat', {
    ...requestBody('chat', { model, stream: true, more }),
  });
  assert.equal(readStream('chat', reply.text).text, word.repeat(400));
});

/** The prompt turns out to be dear, and the answer goes on and on. */
function expensivePrompt(tokens: number): Answer {
  return {
    body: [
      messagesFrame(messageStart({ input_tokens: tokens, output_tokens: 1 })),
      messagesFrame(blockStart(0, { type: 'text', text: '' })),
      ...Array.from({ length: 2000 }, () =>
        messagesFrame(blockDelta(0, { type: 'text_delta', text: word })),
      ),
    ],
    ending: 'hang',
  };
}

for (const dialect of clientDialects) {
  test(`F64 a prompt above the estimate takes the money of the answer: ${dialect}`, async () => {
    const model = 'up-messages/dear';
    const script = rig.upstreams.messages.script('dear', expensivePrompt(5000));
    // 10 µ$ a token: 5,000 for the prompt leave some 1,000 of 6,000.
    const key = await rig.key({ budget: '0.06', per: 'day', shrink: false });
    const body = requestBody(dialect, { model, stream: true, more: { max_tokens: 5900 } });
    const reply = await rig.call(key, dialect, body);
    assert.equal(reply.status, 200);
    assert.equal(endingOf(dialect, reply.text), 'error');
    const expected = dialect === 'messages' ? /"billing_error"/ : /"code":"insufficient_quota"/;
    assert.match(reply.text, expected);
    assert.equal(await (await script.request(0)).closed, 'gateway');
    await rig.gateway.callRows(model, 1);
    const spent = await rig.spent(key);
    assert.ok(spent <= 60_000_000, `${spent} is more than the budget`);
    assert.ok(spent >= 50_000_000, `${spent} is less than the prompt cost`);
  });
}

test('F64 where the budget has more, it pays for the larger prompt', async () => {
  const model = 'up-messages/dear';
  const more = [messagesFrame(blockDelta(0, { type: 'text_delta', text: word }))];
  rig.upstreams.messages.script('dear', {
    ...expensivePrompt(5000),
    body: [
      messagesFrame(messageStart({ input_tokens: 5000, output_tokens: 1 })),
      messagesFrame(blockStart(0, { type: 'text', text: '' })),
      ...more,
      messagesFrame({ type: 'content_block_stop', index: 0 }),
      messagesFrame({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 3 },
      }),
      messagesFrame({ type: 'message_stop' }),
    ],
    ending: 'proper',
  });
  const key = await rig.key({ budget: 1, per: 'day' });
  const body = requestBody('messages', { model, stream: true, more: { max_tokens: 100 } });
  const reply = await rig.call(key, 'messages', body);
  assert.equal(endingOf('messages', reply.text), 'proper');
  await rig.gateway.callRows(model, 1);
  assert.equal(await rig.spent(key), 5003 * nanodollarsOfOutput);
});

test('a document that cost more than was reserved is charged in full, and marked', async () => {
  const usage: JsonObject = { prompt_tokens: 900, completion_tokens: 50, total_tokens: 950 };
  rig.upstreams.chat.script('dear', (request) => ({
    body: JSON.stringify({
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: String(request.json['model']),
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage,
    }),
  }));
  const key = await rig.key({ budget: 1, per: 'day' });
  const body = requestBody('chat', {
    model: 'up-chat/dear',
    stream: false,
    more: { max_tokens: 50 },
  });
  assert.equal((await rig.call(key, 'chat', body)).status, 200);
  const [row] = await rig.gateway.callRows('up-chat/dear', 1);
  assert.equal(row?.['overrun'], true);
  assert.equal(await rig.spent(key), 950 * nanodollarsOfOutput);
});
