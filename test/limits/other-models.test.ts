/** Models that a request names besides its own are no way around scope, limits and budgets (S7, K6, F6). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { requestBody } from '../support/requests.ts';
import type { Dialect } from '../support/reading.ts';
import { replying, type Reply } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

const usage = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };
const answer: Reply = { text: 'Good day.', usage };

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const asking: readonly (readonly [Dialect, JsonObject])[] = [
  ['chat', { models: ['dear'] }],
  ['chat', { fallbacks: ['dear'] }],
  ['chat', { fallbacks: [{ dear: {} }] }],
  ['messages', { fallbacks: [{ model: 'dear' }] }],
  ['messages', { fallbacks: 'default' }],
  ['messages', { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'dear' }] }],
  ['chat', { tools: [{ type: 'openrouter:fusion', parameters: { model: 'dear' } }] }],
  ['chat', { plugins: [{ id: 'fusion', analysis_models: ['dear'] }] }],
  ['chat', { preset: 'dear' }],
];

function send(key: LimitedKey, dialect: Dialect, model: string, more: JsonObject) {
  const body = requestBody(dialect, { model, stream: false, more: { max_tokens: 100, ...more } });
  return rig.call(key, dialect, body);
}

for (const [dialect, more] of asking) {
  const what = JSON.stringify(more);
  test(`S7 a key cannot name models that it may not call: ${dialect} ${what}`, async () => {
    const { model, script } = rig.play(dialect, replying(dialect, answer));
    const key = await rig.key({ models: [model] });
    const refused = await send(key, dialect, model, more);
    assert.equal(refused.status, 404, refused.text);
    assert.equal(script.requests.length, 0);
    const all = await rig.key();
    assert.equal((await send(all, dialect, model, more)).status, 200);
  });

  test(`F6 a budget pays for no model that was not reserved: ${dialect} ${what}`, async () => {
    const { model, script } = rig.play(dialect, replying(dialect, answer));
    const key = await rig.key({ budgets: [{ usd: 10, per: 'month' }] });
    const refused = await send(key, dialect, model, more);
    assert.equal(refused.status, 400, refused.text);
    assert.match(String(errorOf(refused)['message']), /names other models/);
    assert.equal(script.requests.length, 0);
    assert.equal((await send(key, dialect, model, {})).status, 200);
  });
}

test('K6 a limit on a model counts calls that name it besides their own', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  const limit = { kind: 'requests', amount: 1, model: 'dear' };
  const key = await rig.key({ limits: [limit] });
  assert.equal((await send(key, 'chat', model, { models: ['dear'] })).status, 200);
  assert.equal((await send(key, 'chat', model, { models: ['dear'] })).status, 429);
  assert.equal((await send(key, 'chat', model, { models: [] })).status, 200);
  assert.equal((await send(key, 'chat', model, {})).status, 200);
});

test('S7 what a key may call hides nothing that stands beside it', async () => {
  const { model, script } = rig.play('chat', replying('chat', answer));
  const key = await rig.key({ models: [model, 'up-chat/fair'] });
  const both = { fallbacks: ['fair'], models: ['dear'] };
  assert.equal((await send(key, 'chat', model, { fallbacks: ['fair'] })).status, 200);
  assert.equal((await send(key, 'chat', model, both)).status, 404);
  assert.equal(script.requests.length, 1);
});

test('K6 a function that has a model among its parameters names none', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  const key = await rig.key({ models: [model] });
  const parameters = { type: 'object', properties: { model: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'buy', parameters } }];
  assert.equal((await send(key, 'chat', model, { tools })).status, 200);
});

test('G11 a body that names models fifty thousand times is refused at once', async () => {
  const { model, script } = rig.play('chat', replying('chat', answer));
  const key = await rig.key({ models: [model] });
  const plugins = Array.from({ length: 50_000 }, () => ({ model: 'dear' }));
  const refused = await send(key, 'chat', model, { models: plugins, plugins });
  assert.equal(refused.status, 404, refused.text);
  assert.equal(script.requests.length, 0);
});

test('G11 a long list of models, and a model with a long name, are refused at once', async () => {
  const { model, script } = rig.play('chat', replying('chat', answer));
  const limit = { kind: 'requests', amount: 5, model: 'dear' };
  const key = await rig.key({ limits: [limit] });
  const models = Array.from({ length: 50_000 }, (_, i) => `dear-${i}`);
  const refused = await send(key, 'chat', model, { models });
  assert.equal(refused.status, 400, refused.text);
  assert.match(String(errorOf(refused)['message']), /at most 20 models/);
  assert.equal(script.requests.length, 0);
  // Each of its 200,000 ends would be a spelling of it.
  const long = await send(key, 'chat', model, { models: ['a/'.repeat(200_000)] });
  assert.equal(long.status, 200, long.text);
});
