/** The contents of a ledger row besides tokens: labels, tries, cost and price. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    prices: {
      'up-chat/*': { input: 1, output: 2, cache_read: 0.1 },
      'up-messages/*': { input: 1, output: 2, cache_write: 1.25, cache_write_1h: 2 },
    },
    models: { spare: { targets: ['up-chat/bad', 'up-chat/gone', 'up-messages/good'] } },
  });
});
after(() => rig.stop());

const usage = { fresh: 100, cacheRead: 50, cacheWrite: 0, output: 10, reasoning: 4 };
const answer = { text: 'Good day.', usage };

async function rowOf(
  dialect: Dialect,
  more: JsonObject,
  headers: JsonObject = {},
): Promise<JsonObject> {
  const { model } = rig.play(dialect, replying(dialect, answer));
  const key = await rig.key({ tags: ['own'] });
  const reply = await rig.call(
    key,
    dialect,
    requestBody(dialect, { model, stream: false, more }),
    headers,
  );
  assert.equal(reply.status, 200, reply.text);
  const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
  return rig.admin('GET', `/api/calls/${String(row['id'])}`);
}

test('labels of chat: tags, user and metadata, from body and headers', async () => {
  const row = await rowOf(
    'chat',
    { user: 'ada', metadata: { job: 'nightly', run: '7' } },
    { 'x-gateway-tags': 'project-x,  own, übung', 'x-gateway-metadata': '{"run":"8","host":"a"}' },
  );
  assert.deepEqual(row['tags'], ['own', 'project-x', 'übung']);
  assert.equal(row['user'], 'ada');
  assert.deepEqual(row['metadata'], { run: '8', host: 'a', job: 'nightly' });
});

test('labels of messages: metadata.user_id is the user and no metadata', async () => {
  const row = await rowOf('messages', { metadata: { user_id: 'bob' } });
  assert.deepEqual([row['user'], row['metadata'], row['tags']], ['bob', null, ['own']]);
});

test('safety_identifier goes before user; metadata beyond 2 KB is cut at a pair, and that is reported', async () => {
  const metadata = Object.fromEntries(
    Array.from({ length: 10 }, (_, i) => [`key-${i}`, 'x'.repeat(400)]),
  );
  const row = await rowOf('chat', { user: 'old', safety_identifier: 'new', metadata });
  assert.equal(row['user'], 'new');
  const kept = objectAt(row, 'metadata');
  assert.deepEqual(Object.keys(kept), ['key-0', 'key-1', 'key-2', 'key-3', '_left_out']);
  assert.equal(kept['_left_out'], 6);
});

test('labels that are none are refused, and go nowhere', async () => {
  const { model, script } = rig.play('chat', replying('chat', answer));
  const key = await rig.key();
  const body = requestBody('chat', { model, stream: false });
  for (const headers of [
    { 'x-gateway-tags': 'a b' },
    { 'x-gateway-tags': 'a,b,c,d,e,f,g,h,i' },
    { 'x-gateway-metadata': '[1]' },
    { 'x-gateway-metadata': '{"n":1}' },
  ]) {
    const reply = await rig.call(key, 'chat', body, headers);
    assert.equal(reply.status, 400);
    assert.match(String(errorOf(reply)['message']), /x-gateway-(tags|metadata)/);
  }
  assert.equal(script.requests.length, 0);
});

test('S17 labels do not reach the upstream as headers', async () => {
  const { model, script } = rig.play('chat', replying('chat', answer));
  const headers = { 'x-gateway-tags': 'secret-project', 'x-gateway-metadata': '{"a":"b"}' };
  await rig.call(await rig.key(), 'chat', requestBody('chat', { model, stream: false }), headers);
  const names = (await script.request(0)).headerLines.map(([name]) => name.toLowerCase());
  assert.deepEqual(
    names.filter((name) => name.startsWith('x-gateway')),
    [],
  );
});

test('F2 F6 cost by the four rates, with the price that it was charged at', async () => {
  const row = await rowOf('chat', {});
  // 100 × 1 + 50 × 0.1 + 10 × 2 micro-dollars.
  assert.equal(row['cost_usd'], 0.000125);
  assert.equal(objectAt(row, 'cost')['cache_read'], 0.000005);
  assert.match(String(objectAt(row, 'price')['source']), /gateway\.yaml/);
});

test('F8 each try leaves a row, in order: who, when, how it ended, what was reported', async () => {
  rig.upstreams.chat.script('bad', errorIn('chat', 503, 'overloaded'));
  rig.upstreams.chat.script('gone', { mute: true, body: '', ending: 'reset' });
  rig.upstreams.messages.script('good', replying('messages', answer));
  const key = await rig.key({ budget: 1, per: 'day' });
  const reply = await rig.call(key, 'chat', requestBody('chat', { model: 'spare', stream: false }));
  assert.equal(reply.status, 200, reply.text);
  const [summary] = await rig.gateway.callRows('spare', 1);
  const row = await rig.admin('GET', `/api/calls/${String(summary?.['id'])}`);
  assert.equal(row['attempts'], 3);
  const tries = listAt(row, 'attempt_list');
  const shown = tries.map((each) => [
    `${String(each['provider'])}/${String(each['upstream_model'])}`,
    each['outcome'],
    each['status'],
    each['error'],
    each['maybe_billed'],
  ]);
  assert.deepEqual(shown, [
    ['up-chat/bad', 'failed', 503, 'overloaded', false],
    ['up-chat/gone', 'failed', null, 'upstream_unavailable', true],
    ['up-messages/good', 'ok', 200, null, false],
  ]);
  const starts = tries.map((each) => String(each['started_at']));
  assert.deepEqual(starts, [...starts].sort());
  assert.equal(objectAt(tries[2] ?? {}, 'reported')['output_tokens'], 10);
  assert.equal(tries[0]?.['reported'], null);
});
