/** What service tiers cost a budget: reserved by the most expensive that may apply, charged by what the vendor says. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { providerAt } from '../support/gateway.ts';
import { objectAt, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { chatDocument } from '../upstream/chat.ts';
import { replying } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  const tiered = {
    input: 0,
    output: 10,
    service_tiers: {
      priority: { input: 0, output: 20 },
      flex: { input: 0, output: 5 },
      fast: { input: 0, output: 60 },
    },
  };
  rig = await startLimitedRig(({ messages }) => ({
    prices: {
      'up-chat/*': tiered,
      'up-messages/*': tiered,
      'fast-claude/*': tiered,
      'up-converse/*': { input: 0, output: 10 },
      'plain-claude/*': { input: 0, output: 10 },
    },
    models: { mixed: { targets: ['up-chat/mixed', 'plain-claude/mixed'] } },
    providers: {
      'fast-claude': {
        ...providerAt('messages', messages.port),
        like: 'anthropic',
        betas: ['fast-mode-2026-02-01'],
      },
      'plain-claude': {
        ...providerAt('messages', messages.port),
        like: 'anthropic',
        betas: ['fast-mode-2026-02-01'],
      },
    },
  }));
});
after(() => rig.stop());

const json = { headers: { 'content-type': 'application/json' } };
const cap = 100;
const nanodollars = 10_000;

interface Asked {
  readonly ask: JsonObject;
  /** What the upstream says that it was; absent = nothing. */
  readonly served?: string;
}

/** A call that uses 50 tokens: what was reserved of its budget and spent, in standard output tokens. */
async function charged({ ask, served }: Asked): Promise<readonly (number | string)[]> {
  const usage = { prompt_tokens: 9, completion_tokens: 50, total_tokens: 59 };
  const document = {
    ...chatDocument({ text: 'Good day to you all. '.repeat(9), usage }),
    ...(served === undefined ? {} : { service_tier: served }),
  };
  const { model } = rig.play('chat', { body: [JSON.stringify(document)], ...json });
  const key = await rig.key({ budget: 1, per: 'day' });
  const body = requestBody('chat', { model, stream: false, more: { max_tokens: cap, ...ask } });
  const reply = await rig.call(key, 'chat', body);
  assert.equal(reply.status, 200, reply.text);
  const [row] = await rig.gateway.callRows(model, 1);
  const call = await rig.admin('GET', `/api/calls/${String(row?.['id'])}`);
  const { source } = objectAt(call, 'price');
  return [
    Math.round((Number(row?.['reserved_usd']) * 1e9) / nanodollars),
    (await rig.spent(key)) / nanodollars,
    String(source).replace(/^\S+/, ''),
  ];
}

const rows: readonly (readonly [Asked, readonly (number | string)[]])[] = [
  [{ ask: { service_tier: 'default' }, served: 'default' }, [cap, 50, '']],
  [{ ask: { service_tier: 'priority' }, served: 'priority' }, [2 * cap, 100, ' (priority)']],
  [{ ask: { service_tier: 'priority' }, served: 'default' }, [2 * cap, 50, '']],
  [{ ask: { service_tier: 'priority' } }, [2 * cap, 100, ' (priority)']],
  // An account may make a priority call of it.
  [{ ask: { service_tier: 'auto' }, served: 'priority' }, [2 * cap, 100, ' (priority)']],
  [{ ask: {}, served: 'default' }, [2 * cap, 50, '']],
  [{ ask: {} }, [2 * cap, 50, '']],
  // Not served as asked, it costs the standard price.
  [{ ask: { service_tier: 'flex' }, served: 'flex' }, [cap, 25, ' (flex)']],
  [{ ask: { service_tier: 'flex' }, served: 'default' }, [cap, 50, '']],
  [{ ask: {}, served: 'constructor' }, [2 * cap, 50, '']],
];
for (const [asked, expected] of rows) {
  test(`F6 Q1 a service tier costs its own price: ${JSON.stringify(asked)}`, async () => {
    assert.deepEqual(await charged(asked), expected);
  });
}

test('F6 fast mode is a tier with a price: reserved where it is asked for, and not else', async () => {
  const ask = async (dialect: Dialect, more: JsonObject) => {
    const { model } = rig.play(dialect, replying(dialect, { text: 'Yes.' }));
    const key = await rig.key({ budget: '0.004', per: 'day', shrink: false });
    const asked = requestBody(dialect, {
      model,
      stream: false,
      more: { max_tokens: cap, ...more },
    });
    return rig.call(key, dialect, asked);
  };
  assert.equal((await ask('messages', {})).status, 200);
  const dear = await ask('messages', { speed: 'fast' });
  assert.equal(dear.status, 402);
  assert.match(String(errorOf(dear)['message']), /may cost up to \$0\.006/);
  const named = await ask('chat', { service_tier: 'fast' });
  assert.equal(named.status, 429);
  assert.match(String(errorOf(named)['message']), /may cost up to \$0\.006/);
});

test('F6 ultrafast of the responses API is reserved and charged as the fast mode that Claude is asked for', async () => {
  const model = 'claude-opus-4-8';
  const asked = requestBody('responses', {
    model: `fast-claude/${model}`,
    stream: false,
    more: { max_tokens: cap, service_tier: 'ultrafast' },
  });
  const script = rig.upstreams.messages.script(model, replying('messages', { text: 'Good day.' }));
  const poor = await rig.call(
    await rig.key({ budget: '0.004', per: 'day', shrink: false }),
    'responses',
    asked,
  );
  assert.match(String(errorOf(poor)['message']), /may cost up to \$0\.006/);
  const key = await rig.key({ budget: 1, per: 'day' });
  const reply = await rig.call(key, 'responses', asked);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(script.requests[0]?.json['speed'], 'fast');
  const output = Number(objectAt(JSON.parse(reply.text), 'usage')['output_tokens']);
  assert.equal(await rig.spent(key), 6 * output * nanodollars);
});

test('F6 ultrafast of the responses API is refused where the price of the fast mode is unknown', async () => {
  const model = 'claude-opus-4-9';
  rig.upstreams.messages.script(model, replying('messages', { text: 'Good day.' }));
  const asked = requestBody('responses', {
    model: `plain-claude/${model}`,
    stream: false,
    more: { max_tokens: cap, service_tier: 'ultrafast' },
  });
  const refused = await rig.call(await rig.key({ budget: 1, per: 'day' }), 'responses', asked);
  assert.equal(refused.status, 400, refused.text);
  assert.match(String(errorOf(refused)['message']), /service_tier/);
});

test('N1 prices of tiers are shown', async () => {
  const { prices } = await rig.admin('GET', '/api/prices?model=up-chat/any');
  const [shown] = Array.isArray(prices) ? prices : [];
  assert.match(JSON.stringify(shown), /"service_tiers":\{"priority":\{"input":0,.*"output":20/);
});

test('F6 a requested tier costs its price on a key without limits, too', async () => {
  const usage = { prompt_tokens: 9, completion_tokens: 50, total_tokens: 59 };
  const document = chatDocument({ text: 'Good day to you all. '.repeat(9), usage });
  for (const [asked, times] of [
    ['priority', 2],
    ['flex', 0.5],
    ['default', 1],
  ] as const) {
    const { model } = rig.play('chat', { body: [JSON.stringify(document)], ...json });
    const more = { max_tokens: cap, service_tier: asked };
    const key = await rig.key();
    await rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(Math.round(Number(row?.['cost_usd']) * 1e9), times * 50 * nanodollars, asked);
  }
});

test('F6 a tier that translation drops is not charged for', async () => {
  const { model } = rig.play('messages', replying('messages', { text: 'Good day to you all.' }));
  const more = { max_tokens: cap, service_tier: 'flex' };
  const key = await rig.key();
  const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
  assert.equal(reply.status, 200, reply.text);
  const [row] = await rig.gateway.callRows(model, 1);
  const spent = Math.round(Number(row?.['cost_usd']) * 1e9);
  const output = objectAt(JSON.parse(reply.text), 'usage')['completion_tokens'];
  assert.equal(spent, Number(output) * nanodollars);
});

test('F6 Q1 of a tier that translation drops, all that the vendor may serve instead is reserved', async () => {
  const { model } = rig.play('messages', replying('messages', { text: 'Good day to you all.' }));
  const key = await rig.key({ budget: 1, per: 'day' });
  for (const asked of ['flex', 'default']) {
    const more = { max_tokens: cap, service_tier: asked };
    const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
    assert.equal(reply.status, 200, reply.text);
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(Math.round(Number(row?.['reserved_usd']) * 1e9), 2 * cap * nanodollars, asked);
  }
});

test('F6 a tier needs no price at a target that is not asked for it', async () => {
  rig.upstreams.chat.script('mixed', replying('chat', { text: 'Good day.' }));
  const key = await rig.key({ budget: 1, per: 'day' });
  const more = { max_tokens: cap, service_tier: 'priority' };
  const body = requestBody('chat', { model: 'mixed', stream: false, more });
  const reply = await rig.call(key, 'chat', body);
  assert.equal(reply.status, 200, reply.text);
});

test('F6 a tier that is dropped where another one is known costs nothing more', async () => {
  const model = 'claude-opus-4-8';
  for (const [asked, sent, times] of [
    ['flex', undefined, 1],
    ['fast', 'fast', 6],
  ] as const) {
    const script = rig.upstreams.messages.script(
      model,
      replying('messages', { text: 'Good day.' }),
    );
    const more = { max_tokens: cap, service_tier: asked };
    const body = requestBody('chat', { model: `fast-claude/${model}`, stream: false, more });
    const reply = await rig.call(await rig.key(), 'chat', body);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(script.requests[0]?.json['speed'], sent);
    const [row] = await rig.gateway.callRows(`fast-claude/${model}`, 1);
    const output = objectAt(JSON.parse(reply.text), 'usage')['completion_tokens'];
    const spent = Math.round(Number(row?.['cost_usd']) * 1e9);
    assert.equal(spent, Number(output) * nanodollars * times, asked);
  }
});

test('F6 a tier of Converse whose price is unknown is refused where a budget pays', async () => {
  const ask = async (tier: string) => {
    const { model } = rig.play('converse', replying('converse', { text: 'Yes.' }));
    const key = await rig.key({ budget: 1, per: 'day' });
    const more = { max_tokens: cap, service_tier: tier };
    return rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
  };
  const dear = await ask('priority');
  assert.equal(dear.status, 400, dear.text);
  assert.match(String(errorOf(dear)['message']), /service_tier/);
  assert.equal((await ask('flex')).status, 200);
});
