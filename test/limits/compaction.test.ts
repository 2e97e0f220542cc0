/** A compaction takes no cap: budgets reserve the longest answer that the model can make, or refuse it (Q1, X-4). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { listAt, objectAt } from '../support/reading.ts';
import { responsesUsage } from '../upstream/responses.ts';
import type { Answer, Script } from '../upstream/scripted.ts';
import {
  errorOf,
  nanodollarsOfOutput,
  startLimitedRig,
  type LimitedKey,
  type LimitedRig,
} from './limited-rig.ts';

/** By the provider's list. */
const longest = 1000;
const costOfLongest = (longest * nanodollarsOfOutput) / 1e9;

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ responses }) => ({
    providers: {
      openai: { base_url: `http://127.0.0.1:${responses.port}/v1`, api_key: 'k' },
    },
    models: { both: { targets: ['openai/said', 'openai/silent'] } },
    prices: { 'openai/free': { input: 0, output: 0 }, 'openai/*': { input: 0, output: 10 } },
  }));
  const data = [{ id: 'said', max_completion_tokens: longest }, { id: 'silent' }];
  rig.upstreams.responses.script('/v1/models', { body: JSON.stringify({ data }) });
  // The provider is asked for its list.
  await rig.call(await rig.key(), 'responses', { model: 'nothing', input: 'Hi' });
});
after(() => rig.stop());

function compacted(output: number): string {
  const usage = { ...responsesUsage, output_tokens: output, total_tokens: 9 + output };
  const item = { id: 'cmp_1', type: 'compaction', encrypted_content: 'blob' };
  return JSON.stringify({
    id: 'resp_1',
    object: 'response.compaction',
    created_at: 1,
    output: [item],
    usage,
  });
}

function play(model: string, answer: Answer): { readonly model: string; readonly script: Script } {
  return { model: `openai/${model}`, script: rig.upstreams.responses.script(model, answer) };
}

function compact(key: LimitedKey, model: string, more: JsonObject = {}): Promise<Reply> {
  const url = `${rig.gateway.url}/v1/responses/compact`;
  return send(url, { model, input: 'Hi', ...more }, { headers: key.headers });
}

test('Q1 the last dollar: of 20 at once, as many as the longest answers fit, and not one more', async () => {
  const gate = Promise.withResolvers<void>();
  const { model, script } = play('said', {
    headers: { 'content-type': 'application/json' },
    framing: 'close',
    body: [gate.promise, compacted(longest)],
  });
  const key = await rig.key({ budget: String(2 * costOfLongest), per: 'ever' });
  let refused = 0;
  const replies = await Promise.all(
    Array.from({ length: 20 }, async () => {
      // A cap of the client's own is none: the API does not know it.
      const reply = await compact(key, model, { max_output_tokens: 16 });
      if (reply.status !== 200) refused += 1;
      if (refused === 18) gate.resolve();
      return reply;
    }),
  );
  assert.equal(replies.filter(({ status }) => status === 200).length, 2);
  const refusal = replies.find(({ status }) => status !== 200) ?? assert.fail();
  assert.equal(errorOf(refusal)['code'], 'insufficient_quota', refusal.text);
  assert.equal(script.requests.length, 2);
  await rig.gateway.callRows(model, 20);
  assert.equal(await rig.spent(key), 2 * longest * nanodollarsOfOutput);
  assert.equal((await compact(key, model)).status, 429, 'nothing is left');
});

test('Q1 what is not used is given back, and less than the longest answer is never enough', async () => {
  const { model, script } = play('said', { body: compacted(10) });
  const key = await rig.key({ budget: String(costOfLongest), per: 'ever', shrink: true });
  const first = await compact(key, model);
  assert.equal(first.status, 200, first.text);
  await rig.gateway.callRow(String(first.headers['x-request-id']));
  assert.equal(await rig.spent(key), 10 * nanodollarsOfOutput);
  // It cannot be made smaller, whatever the key allows.
  const second = await compact(key, model);
  assert.equal(errorOf(second)['code'], 'insufficient_quota', second.text);
  assert.equal(script.requests.length, 1);
});

test('Q1 without a known output limit the window is the longest answer', async () => {
  const { model, script } = play('gpt-5.1', { body: compacted(10) });
  const window = 400_000;
  const cost = (window * nanodollarsOfOutput) / 1e9;
  const poor = await rig.key({ budget: String(cost - 0.001), per: 'ever' });
  const refused = await compact(poor, model);
  assert.equal(errorOf(refused)['code'], 'insufficient_quota', refused.text);
  const rich = await rig.key({ budget: String(cost), per: 'ever' });
  const reply = await compact(rich, model);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(script.requests.length, 1);
});

test('X-4 where neither is known, a key with a budget is refused by name, and others are not', async () => {
  const { model, script } = play('silent', { body: compacted(10) });
  const key = await rig.key({ budget: '1000000', per: 'ever' });
  for (const asked of [model, 'both']) {
    const reply = await compact(key, asked);
    assert.equal(reply.status, 400, reply.text);
    const { code, param, message } = errorOf(reply);
    assert.deepEqual([code, param], ['price_unknown', 'model']);
    assert.match(String(message), /How long .* is not known/);
  }
  assert.equal(script.requests.length, 0);
  const free = play('free', { body: compacted(10) });
  assert.equal((await compact(key, free.model)).status, 200, 'what is free needs no bound');
  assert.equal((await compact(await rig.key(), model)).status, 200, 'no budget');
});

test('explain shows the request to compact, and what is reserved for it', async () => {
  const { model, script } = play('said', { body: compacted(10) });
  const key = await rig.key({ budget: String(costOfLongest), per: 'ever' });
  const path = `/api/explain?endpoint=responses/compact&key=${key.id}`;
  const shown = await rig.admin('POST', path, { model, input: 'Hi' });
  const { request } = listAt(shown, 'targets')[0] ?? assert.fail();
  assert.match(JSON.stringify(request), /\/v1\/responses\/compact"/);
  assert.equal(objectAt(shown, 'cost')['reserved_output_tokens'], longest);
  assert.equal(script.requests.length, 0);
});
