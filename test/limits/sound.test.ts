/** Sound has rates of its own: reserved where a prompt may hold it, charged as it was reported (F6, Q1). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { numberAt, objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  const price = { input: 2, output: 10, audio_input: 32, audio_output: 64, cache_read: 1 };
  rig = await startLimitedRig({ prices: { 'up-chat/*': price, 'up-messages/*': price } });
});
after(() => rig.stop());

const usage: JsonObject = {
  prompt_tokens: 100,
  completion_tokens: 30,
  total_tokens: 130,
  prompt_tokens_details: { audio_tokens: 60, cached_tokens: 20 },
  completion_tokens_details: { audio_tokens: 25, reasoning_tokens: 0 },
};
const cost = 20 * 2000 + 60 * 32_000 + 20 * 1000 + 5 * 10_000 + 25 * 64_000;

/** Eight kilobytes of sound. */
const sound = {
  type: 'input_audio',
  input_audio: { data: Buffer.alloc(6000, 7).toString('base64'), format: 'wav' },
};

for (const stream of [false, true]) {
  test(`F6 sound is charged at its own rate: ${stream ? 'stream' : 'document'}`, async () => {
    const reply = { text: 'Good day.', usage };
    const { model } = rig.play('chat', chatAnswer(reply, stream));
    const key = await rig.key({ budget: 10, per: 'day' });
    const more = { max_tokens: 200 };
    const body: JsonObject = {
      ...requestBody('chat', { model, stream, more }),
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is said?' }, sound] }],
    };
    const answered = await rig.call(key, 'chat', body);
    assert.equal(answered.status, 200, answered.text);
    assert.ok(answered.text.includes('"audio_tokens":25'), 'the client sees what was reported');
    const [row] = await rig.gateway.callRows(model, 1);
    const call = await rig.admin('GET', `/api/calls/${String(row?.['id'])}`);
    assert.equal(Math.round(numberAt(call, 'cost_usd') * 1e9), cost);
    assert.equal(await rig.spent(key), cost);
    assert.ok(objectAt(call, 'price')['audio_output'] === 64);
    for (const counts of [objectAt(call, 'reported'), objectAt(call, 'charged')]) {
      assert.deepEqual(
        [counts['audio_input_tokens'], counts['audio_output_tokens'], counts['web_searches']],
        [60, 25, null],
      );
    }
    const usageOf = await rig.admin('GET', `/api/usage?by=model&model=${model}`);
    const [sums] = Array.isArray(usageOf['rows']) ? usageOf['rows'] : [];
    assert.ok(isObject(sums));
    assert.deepEqual([sums['audio_input_tokens'], sums['audio_output_tokens']], [60, 25]);
  });
}

test('Q1 a prompt with sound is reserved at the rate of sound, one of text is not', async () => {
  const reserved = async (content: JsonObject['x']): Promise<number> => {
    const { model } = rig.play('chat', chatAnswer({ text: 'Good day.', usage }, false));
    const key = await rig.key({ budget: 10, per: 'day' });
    const body = { model, max_tokens: 10, messages: [{ role: 'user', content: content ?? '' }] };
    assert.equal((await rig.call(key, 'chat', body)).status, 200);
    const [row] = await rig.gateway.callRows(model, 1);
    // The answer may be sound in either case.
    return Math.round(Number(row?.['reserved_usd']) * 1e9) - 10 * 64_000;
  };
  const text = { type: 'text', text: 'What is said?' };
  const [plain, heard] = [await reserved([text]), await reserved([text, sound])];
  assert.equal(plain % 2000, 0);
  assert.ok(plain < 100 * 2000, String(plain));
  assert.equal(heard % 32_000, 0);
  assert.ok(heard > 60 * 32_000, String(heard));
});
