/** Budgets over real sockets: hard for every call, in each dialect, streamed and not (K1, F6, Q1). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { objectAt, type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { answerIn, replying, type Reply } from '../upstream/reply.ts';
import { wantsStream, type Scripted } from '../upstream/scripted.ts';
import { errorOf, nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    prices: {
      'up-messages/marked*': { input: 10, cache_write_1h: 2000, output: 10 },
      'up-chat/*': { input: 0, output: 10 },
      'up-messages/*': { input: 0, output: 10 },
      'up-responses/*': { input: 0, output: 10 },
      'up-gemini/*': { input: 0, output: 10 },
      'up-converse/*': { input: 0, output: 10 },
      'up-chat/gpt-5': { input: 10, output: 10 },
      'up-chat/*dear': { input: 1000, output: 10 },
    },
    models: {
      'no-price': { targets: ['unpriced/model'] },
      'half-priced': { targets: ['up-chat/cheap', 'unpriced/model'] },
    },
    providers: {
      unpriced: { dialect: 'openai-chat', base_url: 'http://127.0.0.1:9', api_key: 'nobody' },
    },
  });
});
after(() => rig.stop());

const maxTokens = 1000;
const usage = { fresh: 9, cacheRead: 0, cacheWrite: 0, output: 100, reasoning: 0 };
const answer: Reply = { text: 'Good day.', usage };

function bodyOf(dialect: AnyDialect, model: string, more: JsonObject = {}): JsonObject {
  return requestBody(dialect, { model, stream: false, more: { max_tokens: maxTokens, ...more } });
}

/** Answers that wait until they are let go. */
function heldBack(dialect: UpstreamDialect, gate: Promise<unknown>): Scripted {
  return (request) => {
    const { body, ...rest } = answerIn(dialect, answer, wantsStream(request));
    const text = Buffer.isBuffer(body) || typeof body === 'string' ? body : '';
    const framing = wantsStream(request) ? ('chunked' as const) : ('close' as const);
    return {
      ...rest,
      framing,
      headers: framing === 'close' ? { 'content-type': 'application/json' } : {},
      body: [gate, text],
    };
  };
}

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    for (const stream of [false, true]) {
      const how = `${dialect} on ${upstream}, ${stream ? 'stream' : 'document'}`;
      test(`K1 Q1 a budget for 2 calls admits 2 of 50 in parallel: ${how}`, async () => {
        const gate = Promise.withResolvers<void>();
        const { model, script } = rig.play(upstream, heldBack(upstream, gate.promise));
        const key = await rig.key({ budget: '0.02', per: 'day' });
        const body = bodyOf(dialect, model, { stream });
        const replies = Array.from({ length: 50 }, async () => {
          const reply = await rig.call(key, dialect, body);
          if (reply.status !== 200) refused += 1;
          if (refused === 48) gate.resolve();
          return reply;
        });
        let refused = 0;
        const done = await Promise.all(replies);
        assert.equal(done.filter(({ status }) => status === 200).length, 2);
        assert.equal(script.requests.length, 2);
        const refusal = done.find(({ status }) => status !== 200);
        assert.equal(refusal?.status, dialect === 'messages' ? 402 : 429);
        assert.equal(refusal.headers['x-should-retry'], 'false');
        // What was not used is given back: the budget has room for what it costs.
        const rows = await rig.gateway.callRows(model, 50);
        assert.equal(rows.length, 50);
        assert.equal(await rig.spent(key), 2 * usage.output * nanodollarsOfOutput);
      });
    }
  }
}

describe('refusals', () => {
  test('E9 H5 chat: insufficient_quota; the text names budget, holder, what is left and when', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ budget: '0.0024', per: 'month', time_zone: 'UTC' });
    const reply = await rig.call(key, 'chat', bodyOf('chat', model));
    assert.equal(reply.status, 429);
    const { type, code, message } = errorOf(reply);
    assert.deepEqual([type, code], ['insufficient_quota', 'insufficient_quota']);
    assert.match(String(message), new RegExp(`budget of this key \\(${key.id}\\)`));
    assert.match(String(message), /\$0\.0024 a month, \$0\.0024 left/);
    assert.match(String(message), /up to \$0\.01 .*1000 output tokens/);
    assert.match(String(message), /resets at \d{4}-\d\d-01T00:00Z/);
    assert.equal(reply.headers['retry-after'], undefined);
  });

  test('E9 messages: 402 billing_error', async () => {
    const { model } = rig.play('messages', replying('messages', answer));
    const key = await rig.key({ budget: 0, per: 'ever' });
    const reply = await rig.call(key, 'messages', bodyOf('messages', model));
    assert.equal(reply.status, 402);
    assert.equal(errorOf(reply)['type'], 'billing_error');
    assert.match(String(errorOf(reply)['message']), /\$0 in total, nothing left.*does not reset/);
  });

  test('H5 a refusal reports what only running calls hold', async () => {
    const gate = Promise.withResolvers<void>();
    const { model, script } = rig.play('chat', heldBack('chat', gate.promise));
    const key = await rig.key({ budget: '0.012', per: 'day' });
    const running = rig.call(key, 'chat', bodyOf('chat', model));
    await script.request(0);
    const refused = await rig.call(key, 'chat', bodyOf('chat', model));
    assert.match(
      String(errorOf(refused)['message']),
      /\$0\.012 a day, \$0\.002 left, \$0\.01 reserved by running calls; the call/,
    );
    gate.resolve();
    assert.equal((await running).status, 200);
  });

  test('F8 a refused call leaves a row that cost nothing', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ budget: 0, per: 'day' });
    await rig.call(key, 'chat', bodyOf('chat', model));
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(row?.['error'], 'budget_exhausted');
    assert.equal(row?.['attempts'], 0);
    assert.equal(row?.['cost_usd'], 0);
  });
});

describe('prices', () => {
  for (const model of ['no-price', 'half-priced']) {
    test(`F6 a model without a price is refused where a budget counts: ${model}`, async () => {
      const key = await rig.key({ budget: 5, per: 'day' });
      const reply = await rig.call(key, 'chat', bodyOf('chat', model));
      assert.equal(reply.status, 400);
      assert.equal(errorOf(reply)['code'], 'price_unknown');
      assert.equal(errorOf(reply)['param'], 'model');
      assert.match(String(errorOf(reply)['message']), /unpriced\/model/);
    });
  }

  test('F6 without a budget it is served, and its cost is null and not 0', async () => {
    const gateway = await startLimitedRig({ prices: {} });
    try {
      const { model } = gateway.play('chat', replying('chat', answer));
      const key = await gateway.key({ rpm: 10 });
      assert.equal((await gateway.call(key, 'chat', bodyOf('chat', model))).status, 200);
      const [row] = await gateway.gateway.callRows(model, 1);
      assert.equal(row?.['cost_usd'], null);
    } finally {
      await gateway.stop();
    }
  });

  test('F6 a default price pays where there is no other', async () => {
    const gateway = await startLimitedRig({ prices: { default: { input: 0, output: 20 } } });
    try {
      const { model } = gateway.play('chat', replying('chat', answer));
      const key = await gateway.key({ budget: '0.02', per: 'day' });
      assert.equal((await gateway.call(key, 'chat', bodyOf('chat', model))).status, 200);
      await gateway.gateway.callRows(model, 1);
      assert.equal(await gateway.spent(key), 20_000 * usage.output);
    } finally {
      await gateway.stop();
    }
  });
});

test('Q1 a mark for the cache that is written in escapes is reserved as any other', async () => {
  const marks = {
    plain: '"cache_control":{"type":"ephemeral","ttl":"1h"}',
    escaped: '"cache\\u005fcontrol":{"type":"ephemeral","ttl":"\\u0031h"}',
  };
  const reserved: unknown[] = [];
  for (const [name, mark] of Object.entries(marks)) {
    const model = `up-messages/marked-${name}`;
    rig.upstreams.messages.script(`marked-${name}`, replying('messages', answer));
    const key = await rig.key({ budget: 1, per: 'day' });
    const text = `{"model":"${model}","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"Hi",${mark}}]}]}`;
    const reply = await send(`${rig.gateway.url}/v1/messages`, text, { headers: key.headers });
    assert.equal(reply.status, 200);
    reserved.push((await rig.gateway.callRows(model, 1))[0]?.['reserved_usd']);
  }
  assert.equal(reserved[1], reserved[0]);
});

describe('more expensive service', () => {
  const asks: readonly (readonly [AnyDialect, AnyDialect, JsonObject, string])[] = [
    ['chat', 'chat', { service_tier: 'priority' }, 'service_tier'],
    ['messages', 'messages', { speed: 'fast' }, 'speed'],
  ];
  for (const [dialect, upstream, more, member] of asks) {
    test(`F6 ${member} is refused by name where a budget counts, and served elsewhere: ${dialect}`, async () => {
      const { model, script } = rig.play(upstream, replying(upstream, answer));
      const key = await rig.key({ budget: 1, per: 'day' });
      const refused = await rig.call(key, dialect, bodyOf(dialect, model, more));
      assert.equal(refused.status, 400);
      assert.match(String(errorOf(refused)['message']), new RegExp(`"${member}"`));
      const served = await rig.call(
        await rig.key({ rpm: 5 }),
        dialect,
        bodyOf(dialect, model, more),
      );
      assert.equal(served.status, 200);
      assert.equal(script.requests.length, 1);
    });
  }

  test('a tier that is no more expensive is served', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ budget: 1, per: 'day' });
    for (const tier of ['auto', 'default', 'flex']) {
      const reply = await rig.call(key, 'chat', bodyOf('chat', model, { service_tier: tier }));
      assert.equal(reply.status, 200);
    }
  });

  test('a tier that gets lost in translation costs nothing more', async () => {
    const { model } = rig.play('messages', replying('messages', answer));
    const key = await rig.key({ budget: 1, per: 'day' });
    const body = bodyOf('chat', model, { service_tier: 'priority' });
    assert.equal((await rig.call(key, 'chat', body)).status, 200);
  });
});

/** The cap on the output that a request asks for. */
const capOf: { readonly [D in UpstreamDialect]: (request: JsonObject) => unknown } = {
  chat: (request) => request['max_tokens'],
  messages: (request) => request['max_tokens'],
  responses: (request) => request['max_output_tokens'],
  gemini: (request) => objectAt(request, 'generationConfig')['maxOutputTokens'],
  converse: (request) => objectAt(request, 'inferenceConfig')['maxTokens'],
};

describe('caps', () => {
  for (const dialect of clientDialects) {
    for (const upstream of upstreamDialects) {
      test(`a call that does not fit gets a smaller answer, and a note: ${dialect} on ${upstream}`, async () => {
        const { model, script } = rig.play(upstream, replying(upstream, answer));
        const key = await rig.key({ budget: '0.004', per: 'day' });
        const reply = await rig.call(key, dialect, bodyOf(dialect, model));
        assert.equal(reply.status, 200, reply.text);
        assert.equal(capOf[upstream]((await script.request(0)).json), 400);
        assert.match(
          String(reply.headers['x-gateway-notes']),
          /max_(output_)?tokens: changed, lowered to 400/,
        );
      });
    }
  }

  test('not below 256 tokens', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ budget: '0.00255', per: 'day' });
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', model))).status, 429);
    const small = bodyOf('chat', model, { max_tokens: 255 });
    assert.equal((await rig.call(key, 'chat', small)).status, 200);
  });

  test('not below what the client wants thought', async () => {
    const { model } = rig.play('messages', replying('messages', answer));
    const key = await rig.key({ budget: '0.02', per: 'day' });
    const thinking = { type: 'enabled', budget_tokens: 1800 };
    const body = (most: number): JsonObject =>
      bodyOf('messages', model, { thinking, max_tokens: most });
    assert.equal((await rig.call(key, 'messages', body(3000))).status, 402);
    assert.equal((await rig.call(key, 'messages', body(2000))).status, 200);
  });

  test('not where the key does not want it, nor for strict keys', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    for (const more of [{ shrink: false }, { strict: true }]) {
      const key = await rig.key({ budget: '0.004', per: 'day', ...more });
      assert.equal((await rig.call(key, 'chat', bodyOf('chat', model))).status, 429);
    }
  });

  test('a call without a cap gets one where a budget counts, and none elsewhere', async () => {
    const { model, script } = rig.play('chat', replying('chat', answer));
    const body = requestBody('chat', { model, stream: false });
    const paid = await rig.call(await rig.key({ budget: 1, per: 'day' }), 'chat', body);
    assert.match(String(paid.headers['x-gateway-notes']), /max_tokens: changed, set to 4096/);
    assert.equal((await script.request(0)).json['max_tokens'], 4096);
    const free = await rig.call(await rig.key({ rpm: 10, tpm: 100_000 }), 'chat', body);
    assert.equal(free.headers['x-gateway-notes'], undefined);
    assert.equal((await script.request(1)).json['max_tokens'], undefined);
  });

  test('a relayed body keeps its bytes where nothing has to change', async () => {
    const { model, script } = rig.play('chat', replying('chat', answer));
    const [, bare = ''] = model.split('/');
    const text = `{ "max_tokens":1000,  "model" : "${model}", "messages":[{"role":"user","content":"Hi"}],"x":1.50 }`;
    for (const limits of [{}, { budget: 5, per: 'day' }]) {
      const { headers } = await rig.key(limits);
      await send(`${rig.gateway.url}/v1/chat/completions`, text, { headers });
      const sent = (await script.request(limits === undefined ? 0 : script.requests.length - 1))
        .body;
      assert.equal(sent.toString(), text.replace(`"${model}"`, `"${bare}"`));
    }
  });

  test('n answers reserve n times the output', async () => {
    const { model } = rig.play('chat', replying('chat', answer));
    const key = await rig.key({ budget: '0.03', per: 'day', shrink: false });
    const four = await rig.call(key, 'chat', bodyOf('chat', model, { n: 4 }));
    assert.equal(four.status, 429);
    assert.match(String(errorOf(four)['message']), /1000 times 4/);
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', model, { n: 3 }))).status, 200);
  });

  test('where the guess of the prompt does not fit, its tokens are counted before a refusal', async () => {
    // Random letters: the guess is far above what the tokenizer counts.
    const { script } = { script: rig.upstreams.chat.script('gpt-5', replying('chat', answer)) };
    const text = 'internationalization '.repeat(400);
    const key = await rig.key({ budget: '0.0215', per: 'day', shrink: false });
    const body = bodyOf('chat', 'up-chat/gpt-5', { messages: [{ role: 'user', content: text }] });
    const reply = await rig.call(key, 'chat', body);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(script.requests.length, 1);
  });
});

test('L0 what no upstream answered is given back', async () => {
  const { model } = rig.play('chat', { status: 500, body: '{}' });
  const key = await rig.key({ budget: '0.01', per: 'day' });
  for (let i = 0; i < 3; i++) {
    assert.equal((await rig.call(key, 'chat', bodyOf('chat', model))).status, 502);
  }
  const rows = await rig.gateway.callRows(model, 3);
  assert.deepEqual(
    rows.map((row) => row['cost_usd']),
    [0, 0, 0],
  );
  assert.equal(await rig.spent(key), 0);
});

test('budgets of a team and of tags count besides the key', async () => {
  const { model } = rig.play('chat', replying('chat', answer));
  await rig.admin('PUT', '/api/teams/poor', { budget: '0.01', per: 'day' });
  await rig.admin('PUT', '/api/tags/project-x', { budget: '0.01', per: 'day', keys: ['*'] });
  const ofTeam = await rig.key({ team: 'poor', budget: 5, per: 'day', shrink: false });
  const twoCalls = bodyOf('chat', model, { max_tokens: 2000 });
  const reply = await rig.call(ofTeam, 'chat', twoCalls);
  assert.match(String(errorOf(reply)['message']), /budget of team poor/);
  const free = await rig.key({ shrink: false });
  const tagged = { 'x-gateway-tags': 'project-x, other' };
  const refused = await rig.call(free, 'chat', twoCalls, tagged);
  assert.match(String(errorOf(refused)['message']), /budget of tag project-x/);
  assert.equal((await rig.call(free, 'chat', twoCalls)).status, 200);
  assert.equal((await rig.call(free, 'chat', bodyOf('chat', model), tagged)).status, 200);
});
