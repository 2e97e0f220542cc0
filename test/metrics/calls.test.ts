/** issue 8 point 2: `/metrics` counts exactly the calls, in both dialects and with every outcome. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { type ClientDialect, clientDialects, upstreamDialects } from '../support/dialects.ts';
import { requestBody } from '../support/requests.ts';
import { scrape, scrapeUntil, type Labels, type Scrape } from '../support/scrape.ts';
import { answerIn, errorIn, replying, toldUsage } from '../upstream/reply.ts';
import { ask } from '../support/rig.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from '../limits/limited-rig.ts';

const usage = { fresh: 30, cacheRead: 60, cacheWrite: 10, output: 50, reasoning: 20 };
const price = { input: 1, cache_read: 0.1, cache_write: 2, output: 10 };

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig((upstreams) => ({
    prices: {
      'up-chat/*': price,
      'up-messages/*': price,
      'up-responses/*': price,
      'up-gemini/*': price,
      'up-converse/*': price,
    },
    models: {
      rescued: { targets: ['up-chat/broken', 'up-messages/good'] },
      'never-there': { targets: ['up-chat/never-there'] },
    },
    providers: {
      unpriced: {
        dialect: 'openai-chat',
        base_url: `http://127.0.0.1:${upstreams.chat.port}/v1`,
        api_key: 'k',
      },
    },
  }));
});
after(() => rig.stop());

const admin = (): string => rig.gateway.adminUrl;

/** What a metric rose by since the earlier scrape. */
function rise(
  [earlier, later]: readonly [Scrape, Scrape],
  name: string,
  labels: Labels = {},
): number {
  return later.sum(name, labels) - earlier.sum(name, labels);
}

/** Runs the calls and scrapes once all of them are counted. */
async function measured(calls: number, run: () => Promise<unknown>): Promise<[Scrape, Scrape]> {
  const earlier = await scrape(admin());
  const wanted = earlier.sum('model_gateway_calls_total') + calls;
  await run();
  const later = await scrapeUntil(
    admin(),
    (scraped) => scraped.sum('model_gateway_calls_total') >= wanted,
  );
  assert.equal(later.sum('model_gateway_calls_total'), wanted);
  return [earlier, later];
}

const idOf: { readonly [D in ClientDialect]: string } = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
};

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    for (const stream of [false, true]) {
      const how = `${dialect} on ${upstream}, ${stream ? 'stream' : 'document'}`;
      test(`issue 8 every number of calls that end well: ${how}`, async () => {
        const { model } = rig.play(upstream, replying(upstream, { text: 'Good day.', usage }));
        const both = await measured(3, async () => {
          for (let i = 0; i < 3; i += 1) {
            const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
            assert.equal(reply.status, 200, reply.text);
          }
        });
        const [, later] = both;
        const genAi = {
          gen_ai_operation_name: 'chat',
          gen_ai_provider_name: `up-${upstream}`,
          gen_ai_request_model: model,
          gen_ai_response_model: model.slice(model.indexOf('/') + 1),
        };
        const tokens = 'gen_ai_client_token_usage';
        const input = { ...genAi, gen_ai_token_type: 'input' };
        const output = { ...genAi, gen_ai_token_type: 'output' };
        assert.equal(later.one(`${tokens}_count`, input), 3);
        assert.equal(later.one(`${tokens}_sum`, input), 300);
        assert.equal(later.one(`${tokens}_count`, output), 3);
        assert.equal(later.one(`${tokens}_sum`, output), 150);
        // 100 lies between 64 and 256.
        assert.equal(later.one(`${tokens}_bucket`, { ...input, le: '64' }), 0);
        assert.equal(later.one(`${tokens}_bucket`, { ...input, le: '256' }), 3);

        const duration = 'gen_ai_server_request_duration_seconds';
        assert.equal(later.one(`${duration}_count`, genAi), 3);
        assert.equal(later.one(`${duration}_bucket`, { ...genAi, le: '+Inf' }), 3);
        const total = later.one(`${duration}_sum`, genAi);
        assert.ok(total > 0 && total < 60);
        const first = 'gen_ai_server_time_to_first_token_seconds';
        assert.equal(later.sum(`${first}_count`, genAi), stream ? 3 : 0);
        assert.ok(later.sum(`${first}_sum`, genAi) <= total);
        const pace = 'gen_ai_server_time_per_output_token_seconds';
        assert.equal(later.sum(`${pace}_count`, genAi), stream ? 3 : 0);

        const own = { provider: `up-${upstream}`, model };
        const { fresh, cacheWrite, output: all, reasoning } = toldUsage(upstream, usage);
        const counted = {
          input: fresh,
          cache_read: 60,
          cache_write: cacheWrite,
          output: all - reasoning,
          reasoning,
        };
        for (const [type, each] of Object.entries(counted)) {
          assert.equal(later.one('model_gateway_tokens_total', { ...own, type }), 3 * each, type);
        }
        const costs = {
          input: fresh,
          cache_read: 6,
          cache_write: 2 * cacheWrite,
          output: 10 * (all - reasoning),
          reasoning: 10 * reasoning,
        };
        for (const [name, millionths] of Object.entries(costs)) {
          const dollars = later.one('model_gateway_cost_dollars_total', { ...own, class: name });
          assert.ok(Math.abs(dollars - (3 * millionths) / 1e6) < 1e-12, `${name} ${dollars}`);
        }
        assert.equal(later.one('model_gateway_unpriced_calls_total', own), 0);
        const ended = {
          endpoint: idOf[dialect],
          outcome: 'ok',
          status: '200',
          error_type: '',
          mode: dialect === upstream ? 'relay' : 'translate',
          stream: String(stream),
        };
        assert.equal(rise(both, 'model_gateway_calls_total', ended), 3);
        assert.equal(rise(both, 'model_gateway_attempts_total', { outcome: 'ok' }), 3);
        assert.equal(rise(both, 'model_gateway_attempt_duration_seconds_count'), 3);
        const key = { key: 'env', team: '' };
        assert.equal(rise(both, 'model_gateway_key_calls_total', { ...key, outcome: 'ok' }), 3);
        assert.equal(rise(both, 'model_gateway_key_tokens_total', { ...key, type: 'input' }), 300);
        assert.equal(rise(both, 'model_gateway_key_tokens_total', { ...key, type: 'output' }), 150);
        const spent = rise(both, 'model_gateway_key_cost_dollars_total', key);
        const cost = Object.values(costs).reduce((sum, each) => sum + each, 0);
        assert.ok(Math.abs(spent - (3 * cost) / 1e6) < 1e-12);
      });
    }
  }
}

test('issue 8 R6 a fallback: two attempts, one call, the error of the first', async () => {
  rig.upstreams.chat.script('broken', errorIn('chat', 500, 'broken'));
  rig.upstreams.messages.script('good', replying('messages', { text: 'Here.', usage }));
  const both = await measured(1, async () => {
    const body = requestBody('chat', { model: 'rescued', stream: false });
    assert.equal((await ask(rig, 'chat', body)).status, 200);
  });
  assert.equal(rise(both, 'model_gateway_attempts_total'), 2);
  const failed = { provider: 'up-chat', model: 'broken', outcome: 'failed' };
  assert.equal(rise(both, 'model_gateway_attempts_total', failed), 1);
  assert.equal(rise(both, 'model_gateway_fallbacks_total'), 1);
  assert.equal(rise(both, 'model_gateway_retries_total'), 0);
  assert.equal(rise(both, 'model_gateway_rescued_calls_total'), 1);
  assert.equal(rise(both, 'model_gateway_key_calls_total', { outcome: 'ok' }), 1);
});

test('issue 8 failures: the error and the status, per model that the config names', async () => {
  rig.upstreams.chat.script('never-there', errorIn('chat', 404, 'no such model'));
  const count = clientDialects.length;
  const both = await measured(count, async () => {
    for (const dialect of clientDialects) {
      const body = requestBody(dialect, { model: 'never-there', stream: true });
      assert.ok((await ask(rig, dialect, body)).status >= 400);
    }
  });
  const [, later] = both;
  const model = { gen_ai_request_model: 'never-there' };
  const duration = 'gen_ai_server_request_duration_seconds_count';
  assert.equal(later.sum(duration, { ...model, error_type: 'model_not_found' }), count, later.text);
  assert.equal(later.sum(duration, model), count);
  assert.equal(later.sum('gen_ai_client_token_usage_count', model), 0);
  assert.equal(rise(both, 'model_gateway_estimated_usage_calls_total'), 0, 'nothing was counted');
  const refused = { outcome: 'failed', error_type: 'model_not_found' };
  assert.equal(rise(both, 'model_gateway_calls_total', refused), count);
  assert.equal(rise(both, 'model_gateway_key_calls_total', { outcome: 'failed' }), count);
});

test('issue 8 F55 a call whose upstream reports no usage is counted as estimated', async () => {
  const { body, ...head } = answerIn('chat', { text: 'Good day.' }, false);
  const { usage: _usage, ...bare } = tryParseObject(String(body)) ?? {};
  const { model } = rig.play('chat', () => ({ ...head, body: JSON.stringify(bare) }));
  const both = await measured(1, async () => {
    const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
    assert.equal(reply.status, 200, reply.text);
  });
  assert.equal(rise(both, 'model_gateway_estimated_usage_calls_total'), 1);
});

test('issue 8 E6 calls for what is not there, and refused requests that are no calls', async () => {
  const before = await scrape(admin());
  const both = await measured(1, async () => {
    const body = requestBody('chat', { model: 'nobody/has-it', stream: false });
    assert.equal((await ask(rig, 'chat', body)).status, 404);
  });
  const gone = { error_type: 'model_not_found', status: '404' };
  assert.equal(rise(both, 'model_gateway_calls_total', gone), 1);
  assert.equal(rise(both, 'model_gateway_attempts_total'), 0);
  const wrong = { headers: { authorization: 'Bearer wrong' } };
  assert.equal((await send(`${rig.gateway.url}/v1/models`, undefined, wrong)).status, 401);
  assert.equal((await send(`${rig.gateway.url}/v1/nothing`, undefined)).status, 404);
  const now = await scrape(admin());
  const refusals = 'model_gateway_refused_requests_total';
  assert.equal(rise([before, now], refusals, { error_type: 'unauthenticated' }), 1);
  assert.equal(rise([before, now], refusals, { error_type: 'route_not_found' }), 1);
});

test('issue 8 K1 limits that refuse, budgets that fill up, by whose they are', async () => {
  const { model } = rig.play('chat', replying('chat', { text: 'Good day.', usage }));
  const body = requestBody('chat', { model, stream: false, more: { max_tokens: 60 } });
  const slow = await rig.key({ rpm: 1 });
  // One call costs 0.000556 $, and may cost a little more before it is done.
  const poor = await rig.key({ budgets: [{ usd: '0.001', per: 'day' }] });
  const statuses = async (key: LimitedKey, calls: number): Promise<readonly number[]> => {
    const found: number[] = [];
    for (let i = 0; i < calls; i += 1) found.push((await rig.call(key, 'chat', body)).status);
    return found;
  };
  const both = await measured(4, async () => {
    assert.deepEqual(await statuses(slow, 2), [200, 429]);
    assert.deepEqual(await statuses(poor, 2), [200, 429]);
  });
  const limit = 'model_gateway_limit_refusals_total';
  assert.equal(rise(both, limit, { kind: 'requests', holder: 'key' }), 1);
  assert.equal(rise(both, limit, { kind: 'budget', holder: 'key' }), 1);
  assert.equal(rise(both, limit), 2);
  const events = 'model_gateway_budget_events_total';
  assert.equal(rise(both, events, { threshold: '50', holder: 'key' }), 1);
  assert.equal(rise(both, events, { threshold: '100', holder: 'key' }), 1);
  const [, later] = both;
  const used = { holder: 'key', name: poor.id, per: 'day' };
  const ratio = later.one('model_gateway_budget_used_ratio', used);
  assert.ok(Math.abs(ratio - 0.556) < 1e-9, String(ratio));
  assert.equal(rise(both, 'model_gateway_calls_total', { error_type: 'rate_limited' }), 1);
  assert.equal(rise(both, 'model_gateway_calls_total', { error_type: 'budget_exhausted' }), 1);
});

test('issue 8 F6 unpriced calls are counted, and cost nothing that is reported', async () => {
  rig.upstreams.chat.script('nobody-knows', replying('chat', { text: 'Hi.', usage }));
  const model = 'unpriced/nobody-knows';
  const both = await measured(1, async () => {
    const body = requestBody('chat', { model, stream: false });
    assert.equal((await ask(rig, 'chat', body)).status, 200);
  });
  const [, later] = both;
  const own = { provider: 'unpriced', model };
  assert.equal(later.one('model_gateway_unpriced_calls_total', own), 1);
  assert.equal(later.sum('model_gateway_cost_dollars_total', own), 0);
  assert.equal(later.sum('model_gateway_tokens_total', own), 150);
});

test('issue 8 calls and streams in flight, connections, and what the ledger took', async () => {
  const gate = Promise.withResolvers<void>();
  const held = replying('chat', { text: 'Hi.', usage });
  rig.upstreams.chat.script('held', (request) => {
    const answer = typeof held === 'function' ? held(request) : held;
    const text = typeof answer.body === 'string' ? answer.body : '';
    const { 'content-length': _length, ...headers } = answer.headers ?? {};
    return { ...answer, headers, framing: 'chunked', body: [gate.promise, text] };
  });
  const calls = [true, true, false].map((stream) =>
    send(
      `${rig.gateway.url}/v1/chat/completions`,
      requestBody('chat', { model: 'up-chat/held', stream }),
    ),
  );
  const during = await scrapeUntil(
    admin(),
    // Those of calls before are closed behind their answers.
    (scraped) =>
      scraped.one('model_gateway_calls_in_flight') === 3 &&
      scraped.one('model_gateway_client_connections') === 3,
  );
  assert.equal(during.one('model_gateway_streams_in_flight'), 2);
  assert.equal(during.one('model_gateway_call_slots_held'), 3);
  gate.resolve();
  await Promise.all(calls);
  const origin = `http://127.0.0.1:${rig.upstreams.chat.port}`;
  const after = await scrapeUntil(
    admin(),
    (scraped) =>
      scraped.one('model_gateway_calls_in_flight') === 0 &&
      scraped.one('model_gateway_upstream_connections', { origin, state: 'busy' }) === 0 &&
      scraped.one('model_gateway_ledger_queued_rows') === 0,
  );
  assert.equal(
    after.one('model_gateway_ledger_rows_total'),
    after.sum('model_gateway_calls_total'),
    'each call has one row',
  );
  const list = await send(`${admin()}/api/usage?by=key`, undefined, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const [rows] = Object.values(list.json).filter(Array.isArray);
  assert.ok(rows !== undefined, list.text);
  const inLedger = rows.filter(isObject).reduce((sum, row) => sum + Number(row['calls']), 0);
  assert.equal(after.sum('model_gateway_key_calls_total'), inLedger, 'as the ledger says');
});
