/** What one key keeps by `/v1/responses` is nothing to another key, on any route (R-28, ST3), and is its own on any upstream. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from '../limits/limited-rig.ts';
import { clientDialects, upstreamDialects } from '../support/dialects.ts';
import { send, type Reply } from '../support/http.ts';
import { listAt, textAt } from '../support/reading.ts';
import { replying } from '../upstream/reply.ts';

let rig: LimitedRig;
let alice: LimitedKey;
let bob: LimitedKey;
before(async () => {
  rig = await startLimitedRig();
  for (const dialect of upstreamDialects) {
    rig.upstreams[dialect].script('m', replying(dialect, { text: `Said by ${dialect}.` }));
  }
  alice = await rig.key({ name: 'alice' });
  bob = await rig.key({ name: 'bob' });
});
after(() => rig.stop());

interface Route {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: JsonObject;
}

/** The id that `input_items` gives to the first item of a request. */
function questionOf(response: string): string {
  return `${response.replace('resp_', 'msg_')}_i0`;
}

/** Everything that names a response or one of its items. */
function routesTo(response: string, item: string, model = 'up-chat/m'): readonly Route[] {
  const path = `/v1/responses/${response}`;
  const reference = [{ type: 'item_reference', id: item }];
  const further = { model, previous_response_id: response, input: 'And?' };
  return [
    { name: 'told', path },
    { name: 'told as events', path: `${path}?stream=true` },
    { name: 'its items', path: `${path}/input_items` },
    { name: 'canceled', method: 'POST', path: `${path}/cancel`, body: {} },
    { name: 'gone on with', path: '/v1/responses', body: further },
    { name: 'gone on with as a stream', path: '/v1/responses', body: { ...further, stream: true } },
    { name: 'referred to', path: '/v1/responses', body: { model, input: reference } },
    {
      name: 'its question referred to',
      path: '/v1/responses',
      body: { model, input: [{ type: 'item_reference', id: questionOf(response) }] },
    },
    { name: 'counted', path: '/v1/responses/input_tokens', body: further },
    {
      name: 'an item counted',
      path: '/v1/responses/input_tokens',
      body: { model, input: reference },
    },
    {
      name: 'compacted',
      path: '/v1/responses/compact',
      body: { model, previous_response_id: response },
    },
    { name: 'removed', method: 'DELETE', path },
  ];
}

/** Its owner gets an error for these, too, but not that the id is unknown. */
const refusedAnyway: ReadonlySet<string> = new Set(['canceled', 'compacted']);

function as(key: LimitedKey, { path, body, method }: Route): Promise<Reply> {
  return send(rig.gateway.url + path, body, {
    headers: key.headers,
    ...(method === undefined ? {} : { method }),
  });
}

async function kept(key: LimitedKey, model: string, more: JsonObject = {}): Promise<Reply> {
  const body = { model, input: 'A question of one key.', ...more };
  const reply = await as(key, { name: '', path: '/v1/responses', body });
  assert.equal(reply.status, 200, reply.text);
  return reply;
}

/** The differences of two refusals, except the requested ids. */
function blank({ status, text, headers }: Reply, ...ids: readonly string[]): object {
  const told = ids.reduce((all, id) => all.replaceAll(id, 'ID'), text);
  return { status, told: told.replace(/req_\w+/g, 'REQ'), names: Object.keys(headers).sort() };
}

describe('R-28 ST3 a response of another key is as unknown as one that never was', () => {
  for (const upstream of upstreamDialects) {
    test(`made by ${upstream}`, async () => {
      const { json } = await kept(alice, `up-${upstream}/m`);
      const id = textAt(json, 'id');
      const item = textAt(listAt(json, 'output')[0] ?? {}, 'id');
      const calls = rig.upstreams.chat.all.length;
      const never = ['resp_neverNeverNeverNever', 'msg_neverNeverNeverNever'] as const;
      const unknown = routesTo(...never);
      for (const [at, route] of routesTo(id, item).entries()) {
        const foreign = await as(bob, route);
        assert.ok(
          foreign.status === 404 || foreign.status === 400,
          `${route.name} ${foreign.text}`,
        );
        const nothing = await as(bob, unknown[at] ?? route);
        const told = blank(foreign, questionOf(id), id, item);
        assert.deepEqual(told, blank(nothing, questionOf(never[0]), ...never), route.name);
        assert.doesNotMatch(foreign.text, /Said by|A question/);
      }
      assert.equal(rig.upstreams.chat.all.length, calls, 'no upstream is asked');
      for (const route of routesTo(id, item)) {
        const own = await as(alice, route);
        const status = refusedAnyway.has(route.name) ? 400 : 200;
        assert.equal(own.status, status, `${route.name} ${own.text}`);
        assert.doesNotMatch(own.text, /not.found/, route.name);
      }
    });
  }

  test('an item of another key is unknown behind a response of one’s own, and among one’s own items', async () => {
    const theirs = (await kept(alice, 'up-chat/m')).json;
    const own = (await kept(bob, 'up-chat/m')).json;
    const itemOf = (json: JsonObject): string => textAt(listAt(json, 'output')[0] ?? {}, 'id');
    const referred = (...ids: readonly string[]): JsonObject => ({
      model: 'up-chat/m',
      previous_response_id: textAt(own, 'id'),
      input: ids.map((id) => ({ type: 'item_reference', id })),
    });
    const route = { name: '', path: '/v1/responses' };
    const calls = rig.upstreams.chat.all.length;
    const foreign = itemOf(theirs);
    const refused = await as(bob, { ...route, body: referred(itemOf(own), foreign) });
    assert.equal(refused.status, 404, refused.text);
    assert.ok(refused.text.includes(`Item with id '${foreign}' not found`), refused.text);
    assert.equal(rig.upstreams.chat.all.length, calls);
    assert.equal((await as(bob, { ...route, body: referred(itemOf(own)) })).status, 200);
  });

  test('a key without the endpoint is refused before anything is looked up', async () => {
    const { json } = await kept(alice, 'up-chat/m');
    const item = textAt(listAt(json, 'output')[0] ?? {}, 'id');
    const other = await rig.key({
      endpoints: clientDialects.filter((each) => each !== 'responses'),
    });
    for (const route of routesTo(textAt(json, 'id'), item)) {
      assert.equal((await as(other, route)).status, 403, route.name);
    }
  });

  test('a rotated key has what its forerunner kept, and a revoked one nothing', async () => {
    const key = await rig.key({ name: 'rotated' });
    const { json } = await kept(key, 'up-chat/m');
    const id = textAt(json, 'id');
    const made = await rig.admin('POST', `/api/keys/${key.id}/rotate`);
    const next = { ...key, headers: { authorization: `Bearer ${textAt(made, 'key')}` } };
    const route = { name: '', path: `/v1/responses/${id}` };
    assert.equal(textAt((await as(next, route)).json, 'id'), id);
    await rig.admin('POST', `/api/keys/${key.id}/revoke`);
    assert.equal((await as(next, route)).status, 401);
  });
});

test('R-27 a chain goes over all upstreams, each with the whole history', async () => {
  let previous: string | undefined;
  const order = [...upstreamDialects, ...upstreamDialects];
  for (const [at, upstream] of order.entries()) {
    const more = previous === undefined ? {} : { previous_response_id: previous };
    const { json } = await kept(alice, `up-${upstream}/m`, { input: `Question ${at}?`, ...more });
    previous = textAt(json, 'id');
    const sent = rig.upstreams[upstream].all.at(-1)?.body.toString() ?? '';
    const history = order.slice(0, at).flatMap((each, i) => [`Question ${i}?`, `Said by ${each}.`]);
    const places = [...history, `Question ${at}?`].map((text) => sent.indexOf(text));
    assert.ok(!places.includes(-1), `${upstream}: ${sent}`);
    assert.doesNotMatch(sent, new RegExp(`${previous}|item_reference|previous_response_id`));
  }
});

describe('Idempotency-Key', () => {
  const path = '/v1/responses';
  const asked = (key: LimitedKey, body: JsonObject, idempotencyKey: string): Promise<Reply> =>
    send(rig.gateway.url + path, body, {
      headers: { ...key.headers, 'idempotency-key': idempotencyKey },
    });

  for (const stream of [false, true]) {
    test(`${stream ? 'a stream' : 'a document'} comes again as it was, to its key only`, async () => {
      const first = textAt((await kept(alice, 'up-chat/m')).json, 'id');
      const body = { model: 'up-chat/m', previous_response_id: first, input: 'And?', stream };
      const calls = rig.upstreams.chat.all.length;
      const name = `again-${stream}`;
      const one = await asked(alice, body, name);
      assert.equal(one.status, 200, one.text);
      const two = await asked(alice, body, name);
      assert.equal(two.text, one.text);
      assert.equal(rig.upstreams.chat.all.length, calls + 1);
      const other = await asked(bob, { ...body, previous_response_id: null }, name);
      assert.equal(other.status, 200, 'the name is that of one key');
      assert.notEqual(other.text, one.text);
      const another = await asked(alice, { ...body, input: 'Else?' }, name);
      assert.equal(another.status, 422, another.text);
    });
  }
});

test('limits hold for what continues from a response: it counts like input that was sent', async () => {
  const poor = await rig.key({ tpm: 4000 });
  const long = { input: 'word '.repeat(900), max_output_tokens: 16 };
  const previous = textAt((await kept(poor, 'up-chat/m', long)).json, 'id');
  const body = { model: 'up-chat/m', input: 'word '.repeat(300), max_output_tokens: 16 };
  const calls = rig.upstreams.chat.all.length;
  const route = { name: '', path: '/v1/responses' };
  const refused = await as(poor, { ...route, body: { ...body, previous_response_id: previous } });
  assert.equal(refused.status, 429, refused.text);
  assert.match(refused.text, /the prompt alone/);
  assert.equal(rig.upstreams.chat.all.length, calls);
  assert.equal((await as(poor, { ...route, body })).status, 200);
});
