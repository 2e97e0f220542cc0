/** R6, G13, H2 through the whole gateway: targets that are omitted, and how clients and operators learn of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject } from '../../src/json/value.ts';
import { adminToken } from '../support/keys.ts';
import type { Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import { clientDialects } from '../support/dialects.ts';
import { endingOf, listAt, textAt, type AnyDialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { answerIn, errorIn } from '../upstream/reply.ts';
import { begun, rest } from './stream-pieces.ts';

const limited = clientDialects.map((dialect) => `limited-${dialect}`);
const routes = ['primary', 'stream', 'lasting', ...limited, 'alone'];
let rig: Rig;
before(async () => {
  const models = Object.fromEntries(
    routes.map((name) => [name, { targets: [`up-chat/${name}-1`, `up-messages/${name}-2`] }]),
  );
  rig = await startRig({ models }, { random: () => 0 });
});
after(() => rig.stop());

function call(model: string, stream = false, dialect: AnyDialect = 'chat'): Promise<Reply> {
  return ask(rig, dialect, requestBody(dialect, { model, stream }));
}

/** What the admin plane says of a target. */
async function health(route: string, target: string): Promise<string> {
  const response = await fetch(`${rig.gateway.adminUrl}/api/models`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const body: unknown = await response.json();
  assert.ok(isObject(body));
  const model = listAt(body, 'models').find(({ id }) => id === route) ?? {};
  const found = listAt(model, 'targets').find((each) => each['target'] === target) ?? {};
  return textAt(found, 'health');
}

test('R6 G13 after five failures a target is not asked any more, and is seen to be out', async () => {
  const broken = rig.upstreams.chat.script('primary-1', errorIn('chat', 500, 'broken'));
  rig.upstreams.messages.script('primary-2', answerIn('messages', { text: 'Here.' }, false));
  const attempts: unknown[] = [];
  for (let index = 0; index < 8; index += 1) {
    const reply = await call('primary');
    assert.equal(reply.status, 200, reply.text);
    attempts.push(reply.headers['x-gateway-attempts']);
  }
  assert.deepEqual(attempts, ['2', '2', '2', '2', '2', '1', '1', '1']);
  assert.equal(broken.requests.length, 5);
  assert.match(await health('primary', 'up-chat/primary-1'), /^down: until .*Z \(upstream_unavail/);
  assert.equal(await health('primary', 'up-messages/primary-2'), 'healthy');
});

test('R6 streams that break behind their beginning count', async () => {
  const cut = { body: [begun('chat')], framing: 'chunked', ending: 'fin' } as const;
  const broken = rig.upstreams.chat.script('stream-1', cut);
  rig.upstreams.messages.script('stream-2', answerIn('messages', { text: 'Here.' }, true));
  for (let index = 0; index < 5; index += 1) {
    assert.equal((await call('stream', true)).headers['x-gateway-target'], 'up-chat/stream-1');
  }
  assert.equal((await call('stream', true)).headers['x-gateway-target'], 'up-messages/stream-2');
  assert.equal(broken.requests.length, 5);
});

test('R6 what began before a target was out and ends well does not bring it back', async () => {
  const gate = Promise.withResolvers<void>();
  const open = { body: [begun('chat'), gate.promise, rest('chat')], framing: 'chunked' } as const;
  const broken = errorIn('chat', 500, 'broken');
  const { requests } = rig.upstreams.chat.script('lasting-1', open, broken);
  rig.upstreams.messages.script('lasting-2', answerIn('messages', { text: 'Here.' }, false));
  const begins = Promise.withResolvers<void>();
  const body = requestBody('chat', { model: 'lasting', stream: true });
  const lasting = ask(rig, 'chat', body, { onData: () => begins.resolve() });
  await begins.promise;
  for (let index = 0; index < 5; index += 1) await call('lasting');
  gate.resolve();
  assert.equal(endingOf('chat', (await lasting).text), 'proper');
  assert.equal((await call('lasting')).headers['x-gateway-attempts'], '1');
  // A call that only warms a cache is answered here: nobody was asked, and nothing was found out.
  const warming = requestBody('messages', {
    model: 'up-chat/lasting-1',
    stream: false,
    more: { max_tokens: 0 },
  });
  assert.equal((await ask(rig, 'messages', warming)).status, 200);
  assert.match(await health('lasting', 'up-chat/lasting-1'), /^down: until /);
  assert.equal(requests.length, 6);
});

test('R6 the only target is asked nevertheless, once a call, and is back with its first answer', async () => {
  const broken = errorIn('chat', 500, 'broken');
  const { model, script } = rig.play(
    'chat',
    ...Array.from({ length: 6 }, () => broken),
    (request) => answerIn('chat', { text: 'Back.' }, request.json['stream'] === true),
  );
  let calls = 0;
  for (; script.requests.length < 6; calls += 1) assert.equal((await call(model)).status, 502);
  const reply = await call(model);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-attempts'], '1');
  assert.ok(calls < 6);
});

for (const dialect of clientDialects) {
  test(`E8 H2 while all targets want no calls no target is called, ${dialect}`, async () => {
    const name = `limited-${dialect}`;
    const first = rig.upstreams.chat.script(
      `${name}-1`,
      errorIn('chat', 429, 'slow', { 'retry-after': '50' }),
    );
    const second = rig.upstreams.messages.script(
      `${name}-2`,
      errorIn('messages', 429, 'slow', { 'retry-after': '30' }),
    );
    const told = await call(name, false, dialect);
    assert.equal(told.status, 429);
    assert.equal(told.headers['retry-after'], '30', 'the shortest wait');
    const reply = await call(name, false, dialect);
    assert.equal(reply.status, 429, reply.text);
    assert.match(String(reply.headers['retry-after']), /^(2\d|30)$/);
    assert.equal(reply.headers['x-gateway-attempts'], '0');
    const message = textAt(assertErrorBody(dialect, reply.json), 'message');
    assert.match(message, new RegExp(`up-chat/${name}-1 until .*Z, up-messages/${name}-2 until`));
    assert.equal(first.requests.length, 1);
    assert.equal(second.requests.length, 1);
    const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
    assert.equal(row['error'], 'rate_limited');
    assert.equal(row['attempts'], 0);
    assert.match(await health(name, `up-chat/${name}-1`), /^degraded: rate limited until /);
  });
}

test('R3 a target whose credential is dead is omitted by the calls that follow', async () => {
  const dead = rig.upstreams.chat.script('alone-1', errorIn('chat', 401, 'no'));
  rig.upstreams.messages.script('alone-2', answerIn('messages', { text: 'Here.' }, false));
  for (const attempts of ['2', '1']) {
    assert.equal((await call('alone')).headers['x-gateway-attempts'], attempts);
  }
  assert.equal(dead.requests.length, 1);
  assert.match(await health('alone', 'up-chat/alone-1'), /^down: until .* \(upstream_auth\)$/);
});
