/** What the ledger makes of answers whose upstream counts oddly, late, or not at all (F55, F57, F58, F62). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects } from '../support/dialects.ts';
import { endingOf, objectAt, readStream } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatChunk, chatDone, chatFrame, chatFrames, chatUsageChunk } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    prices: {
      'up-chat/dear*': { input: 10, output: 10 },
      'up-chat/*': { input: 0, output: 10 },
    },
  });
});
after(() => rig.stop());

const word = ' tomorrow';

function choiceChunk(index: number, delta: JsonObject, finish: string | null = null): string {
  const choices = [{ index, delta, logprobs: null, finish_reason: finish }];
  return chatFrame({ ...chatChunk({}), choices });
}

async function lastRow(model: string): Promise<JsonObject> {
  const [row] = await rig.gateway.callRows(model, 1);
  assert.ok(row);
  return row;
}

for (const dialect of clientDialects) {
  test(`F58 F64 an answer that is whole is not failed by a late report of a dear prompt: ${dialect}`, async () => {
    const name = `dear-${dialect}`;
    const finished = Promise.withResolvers<void>();
    const reported = Promise.withResolvers<void>();
    const usage = { prompt_tokens: 9000, completion_tokens: 5, total_tokens: 9005 };
    rig.upstreams.chat.script(name, {
      body: [
        chatFrame(chatChunk({ role: 'assistant', content: 'Good day.' })),
        chatFrame(chatChunk({}, 'stop')),
        finished.promise,
        chatFrame(chatUsageChunk(usage)),
        reported.promise,
        chatDone,
      ],
    });
    const key = await rig.key({ budget: '0.0095', per: 'day', shrink: false });
    const model = `up-chat/${name}`;
    const body = requestBody(dialect, { model, stream: true, more: { max_tokens: 900 } });
    // Each piece is a packet of its own: the report stands alone.
    setTimeout(finished.resolve, 50);
    setTimeout(reported.resolve, 100);
    const reply = await rig.call(key, dialect, body);
    assert.equal(endingOf(dialect, reply.text), 'proper');
    const row = await lastRow(model);
    assert.deepEqual([row['outcome'], row['overrun']], ['ok', true]);
    assert.equal(await rig.spent(key), 9005 * nanodollarsOfOutput);
  });
}

test('F55 all answers of n are charged where no usage is reported', async () => {
  const said = [0, 1, 2, 3].flatMap((index) => [
    ...Array.from({ length: 50 }, () => choiceChunk(index, { content: word })),
    choiceChunk(index, {}, 'stop'),
  ]);
  const { model } = rig.play('chat', { body: [...said, chatDone] });
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: 500, n: 4 };
  await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
  const row = await lastRow(model);
  // Four characters a token, as long as nothing was learned.
  assert.equal(objectAt(row, 'charged')['output_tokens'], (4 * 50 * word.length) / 4);
});

test('F63 an answer that is not the first one of n is cut as well', async () => {
  const endless = Array.from({ length: 400 }, () => choiceChunk(1, { content: word }));
  const { model, script } = rig.play('chat', {
    body: [choiceChunk(0, { content: 'Yes' }), ...endless],
    ending: 'hang',
  });
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: 40, n: 2 };
  const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
  assert.equal(readStream('chat', reply.text).finish, 'length');
  assert.equal(await (await script.request(0)).closed, 'gateway');
  await lastRow(model);
  assert.equal(await rig.spent(key), 80 * nanodollarsOfOutput);
});

test('F55 Q1 a long prompt that the provider does not count is charged as it was reserved', async () => {
  const model = 'up-chat/dear-long';
  rig.upstreams.chat.script('dear-long', {
    body: [chatFrame(chatChunk({ content: 'Yes.' })), chatFrame(chatChunk({}, 'stop')), chatDone],
  });
  // The digits are at the beginning only, so that a sample of the text differs from a count of all of it.
  const content = '7'.repeat(800) + 'word '.repeat(5600);
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: 20, messages: [{ role: 'user', content }] };
  await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
  const row = await lastRow(model);
  assert.deepEqual([row['usage_source'], row['overrun']], ['estimated', false]);
  const reserved = Math.round((Number(row['reserved_usd']) * 1e9) / nanodollarsOfOutput);
  assert.equal(objectAt(row, 'charged')['fresh_input_tokens'], reserved - 20);
});

for (const completion of [0, 2]) {
  test(`F57 a report of fewer tokens than the text can be is not believed: ${completion}`, async () => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: completion,
      total_tokens: 9 + completion,
    };
    const { model } = rig.play('chat', { body: chatFrames({ text: word.repeat(200), usage }) });
    const key = await rig.key({ budget: 1, per: 'day' });
    const more = { max_tokens: 500 };
    await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
    const row = await lastRow(model);
    assert.equal(row['usage_source'], 'estimated');
    assert.equal(row['suspect'], true);
    assert.equal(objectAt(row, 'charged')['output_tokens'], 450);
  });
}

test('F57 a count that is no count is omitted and flagged; an honest report is not', async () => {
  const key = await rig.key({ budget: 1, per: 'day' });
  const rows: [unknown, unknown][] = [];
  for (const completion_tokens of [-5, 1e308, '7', 2.5, 3]) {
    const usage = { prompt_tokens: 9, completion_tokens, total_tokens: 12 };
    const { model } = rig.play('chat', { body: chatFrames({ text: 'Yes, indeed.', usage }) });
    await rig.call(key, 'chat', requestBody('chat', { model, stream: true }));
    const row = await lastRow(model);
    rows.push([row['suspect'], Number(objectAt(row, 'charged')['output_tokens']) < 10]);
  }
  assert.deepEqual(rows, [...Array.from({ length: 4 }, () => [true, true]), [false, true]]);
});

test('F57 a report beyond any context is not charged', async () => {
  const usage = { prompt_tokens: 9, completion_tokens: 999_999_999, total_tokens: 1_000_000_008 };
  const { model } = rig.play('chat', { body: chatFrames({ text: 'Yes.', usage }) });
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: 500 };
  await rig.call(key, 'chat', requestBody('chat', { model, stream: true, more }));
  const row = await lastRow(model);
  assert.deepEqual([row['usage_source'], row['suspect']], ['estimated', true]);
  assert.ok((await rig.spent(key)) <= 500 * nanodollarsOfOutput);
});

test('Q1 functions, as tools were called before, are part of the prompt that is reserved', async () => {
  const model = 'up-chat/dear-functions';
  rig.upstreams.chat.script('dear-functions', replying('chat', { text: 'Yes.' }));
  const functions = [{ name: 'f', description: 'word '.repeat(3000), parameters: {} }];
  const more = { max_tokens: 10, functions };
  const key = await rig.key({ budget: 1, per: 'day' });
  await rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
  const row = await lastRow(model);
  assert.ok(Number(row['reserved_usd']) > 0.03, String(row['reserved_usd']));
});
