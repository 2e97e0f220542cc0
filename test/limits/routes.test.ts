/**
 * K4: no way to a model goes around keys, limits, budgets and the ledger. The routes come from the data
 * plane itself, so that a new one is tested, or fails here, as soon as it exists.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clientDialects } from '../../src/dialects/registry.ts';
import { generatingPaths, sidePaths } from '../../src/http/paths.ts';
import { send, type Reply as HttpReply } from '../support/http.ts';
import type { Dialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const routes = generatingPaths(clientDialects);

/** The upstream that a route's requests are sent to. */
function upstreamOf(path: string): Dialect {
  return routes.get(path)?.id === 'anthropic-messages' ? 'messages' : 'chat';
}

interface Asked {
  readonly model: string;
  readonly stream: boolean;
}

function bodyOf(path: string, { model, stream }: Asked): object {
  if (routes.get(path)?.id === 'openai-responses') {
    return { model, stream, input: 'Hi', max_output_tokens: 100 };
  }
  return requestBody(upstreamOf(path), { model, stream, more: { max_tokens: 100 } });
}

function post(path: string, key: LimitedKey | undefined, body: object): Promise<HttpReply> {
  const sending = key === undefined ? { anonymous: true as const } : { headers: key.headers };
  return send(rig.gateway.url + path, body, sending);
}

test('K4 these are the routes that there are', () => {
  assert.deepEqual([...routes.keys()].sort(), Object.values(endpointOf).sort());
  assert.deepEqual(sidePaths(clientDialects), [
    '/v1/messages/count_tokens',
    '/v1/responses/input_tokens',
    '/v1/models',
  ]);
});

/** As clients reach them: also with a query, and with `/v1` doubled. */
const spellings = (path: string): readonly string[] => [path, `${path}?beta=true`, `/v1${path}`];

for (const registered of routes.keys()) {
  for (const path of spellings(registered)) {
    for (const stream of [false, true]) {
      const how = `${path}, ${stream ? 'stream' : 'document'}`;
      test(`K4 ${how}: key, limit, budget and ledger`, async () => {
        const dialect = upstreamOf(registered);
        const { model, script } = rig.play(dialect, replying(dialect, { text: 'Good day.' }));
        const body = bodyOf(registered, { model, stream });
        assert.equal((await post(path, undefined, body)).status, 401);
        const spent = await post(path, await rig.key({ budget: 0, per: 'ever' }), body);
        assert.match(
          `${spent.status} ${String(errorOf(spent)['type'])}`,
          dialect === 'chat' ? /^429 insufficient_quota$/ : /^402 billing_error$/,
        );
        const limited = await rig.key({ rpm: 1 });
        assert.equal((await post(path, limited, body)).status, 200);
        const second = await post(path, limited, body);
        assert.equal(`${second.status} ${String(errorOf(second)['type'])}`, '429 rate_limit_error');
        const tokens = await post(path, await rig.key({ tpm: 1 }), body);
        assert.equal(tokens.status, 429);
        const team = `team of ${path} ${stream ? 1 : 0}`;
        await rig.admin('PUT', `/api/teams/${encodeURIComponent(team)}`, { budget: 0, per: 'day' });
        assert.notEqual((await post(path, await rig.key({ team }), body)).status, 200);
        // One call was admitted, and all of those with a key are in the ledger.
        assert.equal(script.requests.length, 1);
        const rows = await rig.gateway.callRows(model, 5);
        const outcomes = rows.map((row) => row['error'] ?? 'ok').sort();
        const refusals = ['budget_exhausted', 'budget_exhausted', 'ok'];
        assert.deepEqual(outcomes, [...refusals, 'rate_limited', 'rate_limited']);
      });
    }
  }
}

test('K4 side endpoints need a key and reach no model', async () => {
  for (const path of sidePaths(clientDialects)) {
    const reply = await send(rig.gateway.url + path, undefined, { anonymous: true });
    assert.equal(reply.status, 401, path);
  }
  const { model, script } = rig.play('messages', replying('messages', { text: 'x' }));
  const key = await rig.key({ budget: 0, per: 'ever' });
  const body = requestBody('messages', { model, stream: false });
  await post('/v1/messages/count_tokens', key, body);
  const generated = script.requests.filter((request) => request.path === '/v1/messages');
  assert.deepEqual(generated, []);
});

test('K4 no header goes around a budget', async () => {
  const { model, script } = rig.play('chat', replying('chat', { text: 'x' }));
  const key = await rig.key({ budget: 0, per: 'ever' });
  const odd = {
    'x-gateway-tags': 'free',
    'x-gateway-metadata': '{"budget":"none"}',
    'x-forwarded-for': '127.0.0.1',
    'idempotency-key': 'again',
  };
  const body = requestBody('chat', { model, stream: false });
  assert.equal((await rig.call(key, 'chat', body, odd)).status, 429);
  assert.equal(script.requests.length, 0);
});
