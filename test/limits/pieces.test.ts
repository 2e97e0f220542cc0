/** What has a price by the piece, pictures and web searches: reserved, charged, refused by name (F6, Q1). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, upstreamDialects, type ClientDialect } from '../support/dialects.ts';
import { numberAt, objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedRig } from './limited-rig.ts';

const perImage = 3_000_000;
const perSearch = 20_000_000;
const ofOutput = 10_000;

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig(({ chat }) => ({
    providers: {
      // Known vendors, played here: their ways hold.
      openrouter: { base_url: `http://127.0.0.1:${chat.port}/v1`, api_key: 'vendor-key' },
      deepseek: { base_url: `http://127.0.0.1:${chat.port}/v1`, api_key: 'vendor-key' },
    },
    prices: {
      'up-chat/*': { input: 0, output: 10, per_image: 0.003 },
      'up-messages/*': { input: 0, output: 10, per_image: 0.003 },
      'up-responses/*': { input: 0, output: 10, per_image: 0.003 },
      'up-gemini/*': { input: 0, output: 10, per_image: 0.003 },
      'up-converse/*': { input: 0, output: 10, per_image: 0.003 },
      'openrouter/*:free': { input: 0, output: 0 },
      'openrouter/*': { input: 0, output: 10, web_search: 0.02 },
      'deepseek/*': { input: 0, output: 10 },
    },
  }));
});
after(() => rig.stop());

/** One pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const picture: { readonly [D in ClientDialect]: JsonObject } = {
  chat: { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
  messages: { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
  responses: { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' },
};
const usage = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };

/** What a call of that model has reserved and cost, in nanodollars, by the ledger. */
async function billed(
  model: string,
): Promise<{ readonly reserved: number; readonly cost: number }> {
  const [row] = await rig.gateway.callRows(model, 1);
  const call = await rig.admin('GET', `/api/calls/${String(row?.['id'])}`);
  const of = (name: string): number => Math.round(numberAt(call, name) * 1e9);
  return { reserved: of('reserved_usd'), cost: of('cost_usd') };
}

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    for (const stream of [false, true]) {
      test(`F6 Q1 each picture is paid for: ${dialect} on ${upstream}, ${stream ? 'stream' : 'document'}`, async () => {
        const { model } = rig.play(upstream, replying(upstream, { text: 'Two dots.', usage }));
        const key = await rig.key({ budget: 10, per: 'day' });
        const type = dialect === 'responses' ? 'input_text' : 'text';
        const text = { type, text: 'What is in these?' };
        const content = [text, picture[dialect], picture[dialect]];
        const more = { max_tokens: 100, messages: [{ role: 'user', content }] };
        const body = requestBody(dialect, { model, stream, more });
        const reply = await rig.call(key, dialect, body);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(await billed(model), {
          reserved: 2 * perImage + 100 * ofOutput,
          cost: 2 * perImage + 30 * ofOutput,
        });
        assert.equal(await rig.spent(key), 2 * perImage + 30 * ofOutput);
      });
    }
  }
}

test('F6 pictures are paid for on keys without a budget, too', async () => {
  const { model } = rig.play('chat', replying('chat', { text: 'A dot.', usage }));
  const body = { model, messages: [{ role: 'user', content: [picture.chat] }] };
  const reply = await rig.call(await rig.key(), 'chat', body);
  assert.equal(reply.status, 200, reply.text);
  const [row] = await rig.gateway.callRows(model, 1);
  const call = await rig.admin('GET', `/api/calls/${String(row?.['id'])}`);
  assert.equal(Math.round(numberAt(call, 'cost_usd') * 1e9), perImage + 30 * ofOutput);
});

const reported: JsonObject = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
let models = 0;

/** A call to a vendor that is played. */
async function search(
  vendor: string,
  { suffix = '', more, told = {} }: { suffix?: string; more: JsonObject; told?: JsonObject },
) {
  const name = `m${++models}${suffix}`;
  const model = `${vendor}/${name}`;
  const answer = chatAnswer({ text: 'Found.', usage: { ...reported, ...told } }, false);
  rig.upstreams.chat.script(name, answer);
  const key = await rig.key({ budget: 10, per: 'day' });
  const body = requestBody('chat', { model, stream: false, more: { max_tokens: 100, ...more } });
  return { model, reply: await rig.call(key, 'chat', body) };
}

const asks: readonly {
  readonly ask: string;
  readonly suffix?: string;
  readonly more: JsonObject;
  /** Searches that are reserved, and that are charged where the vendor reports none. */
  readonly most: number;
  readonly charged: number;
}[] = [
  { ask: 'plugins', more: { plugins: [{ id: 'web' }] }, most: 5, charged: 1 },
  {
    ask: 'plugins with 50 results',
    more: { plugins: [{ id: 'web', max_results: 50 }] },
    most: 10,
    charged: 10,
  },
  { ask: ':online', suffix: ':online', more: {}, most: 5, charged: 1 },
  { ask: 'web_search_options', more: { web_search_options: {} }, most: 5, charged: 1 },
  {
    ask: 'openrouter:web_search',
    more: { tools: [{ type: 'openrouter:web_search' }] },
    most: 5,
    charged: 1,
  },
  { ask: 'another plugin', more: { plugins: [{ id: 'response-healing' }] }, most: 0, charged: 0 },
  {
    ask: 'a plugin that is switched off',
    more: { plugins: [{ id: 'web', enabled: false }] },
    most: 0,
    charged: 0,
  },
];

for (const { ask, suffix, more, most, charged } of asks) {
  test(`F6 Q1 searches are reserved and charged: ${ask}`, async () => {
    const asked = { ...(suffix === undefined ? {} : { suffix }), more };
    const silent = await search('openrouter', asked);
    assert.equal(silent.reply.status, 200, silent.reply.text);
    assert.deepEqual(await billed(silent.model), {
      reserved: most * perSearch + 100 * ofOutput,
      cost: charged * perSearch + 30 * ofOutput,
    });
    for (const name of ['server_tool_use', 'server_tool_use_details']) {
      const told = { [name]: { web_search_requests: 3 } };
      const telling = await search('openrouter', { ...asked, told });
      const { cost } = await billed(telling.model);
      assert.equal(cost, 3 * perSearch + 30 * ofOutput, 'what the vendor reports holds');
    }
  });
}

test('F6 searches whose price is not known are refused by name with a budget', async () => {
  const named: readonly (readonly [member: string, more: JsonObject])[] = [
    ['plugins', { plugins: [{ id: 'web' }] }],
    ['web_search_options', { web_search_options: {} }],
    ['tools', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ];
  for (const [member, more] of named) {
    const { reply, model } = await search('deepseek', { more });
    assert.equal(reply.status, 400, reply.text);
    assert.equal(errorOf(reply)['code'], 'price_unknown');
    assert.match(String(errorOf(reply)['message']), new RegExp(`"${member}" has the provider`));
    assert.equal(objectAt(reply.json, 'error')['param'], member);
    assert.equal((await search('deepseek', { more: {} })).reply.status, 200, model);
  }
});

test('F6 Q1 what a vendor searches for a free model is not free', async () => {
  const suffix = ':free';
  const asked = await search('openrouter', { suffix, more: { plugins: [{ id: 'web' }] } });
  assert.equal(asked.reply.status, 400, asked.reply.text);
  assert.equal(errorOf(asked.reply)['code'], 'price_unknown');
  const plain = await search('openrouter', { suffix, more: {} });
  assert.equal(plain.reply.status, 200, plain.reply.text);
});

for (const [ask, more] of Object.entries<JsonObject>({
  'one tool': { tools: [{ type: 'openrouter:web_search', max_uses: 1e308 }] },
  'many tools': {
    tools: Array.from({ length: 20 }, () => ({ type: 'openrouter:web_search', max_uses: 9e307 })),
  },
  results: { plugins: [{ id: 'web', max_results: 1e308 }] },
})) {
  test(`F6 Q1 searches beyond all numbers are refused for want of money: ${ask}`, async () => {
    const { reply } = await search('openrouter', { more });
    assert.equal(reply.status, 429, reply.text);
    assert.equal(errorOf(reply)['code'], 'insufficient_quota');
  });
}
