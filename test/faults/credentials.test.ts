/** R3, R5, R6 through the whole gateway: several keys of a provider, and rules that the operator sets. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import type { Reply } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { listAt, textAt, type AnyDialect } from '../support/reading.ts';
import { providerAt } from '../support/gateway.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, errorIn } from '../upstream/reply.ts';
import type { Answer, Received } from '../upstream/scripted.ts';

const keys = { first: 'upstream-key-one', second: 'upstream-key-two' };
let rig: Rig;
before(async () => {
  rig = await startRig(
    (upstreams) => ({
      providers: Object.fromEntries(
        ['429', '401', 'kept'].flatMap((name) =>
          upstreamDialects.map((upstream) => {
            const { api_key: _one, ...provider } = providerAt(upstream, upstreams[upstream].port);
            const several =
              upstream === 'messages' ? { api_key: Object.values(keys) } : { credentials: keys };
            return [`${upstream}-${name}`, { ...provider, ...several }];
          }),
        ),
      ),
      models: {
        ...Object.fromEntries(
          upstreamDialects.flatMap((upstream) =>
            ['429', '401'].map((name) => [
              `${upstream}-r-${name}`,
              `${upstream}-${name}/keys-${name}`,
            ]),
          ),
        ),
        once: { targets: ['up-chat/once-1', 'up-messages/once-2'], retry: { after_sent: false } },
        twice: { targets: ['up-chat/twice-1', 'up-messages/twice-2'] },
        long: {
          targets: ['up-chat/long-1', 'up-messages/long-2'],
          retry: { context_overflow: true },
        },
      },
    }),
    { random: () => 0 },
  );
});
after(() => rig.stop());

const call = (model: string, dialect: AnyDialect, session = 's'): Promise<Reply> =>
  ask(rig, dialect, requestBody(dialect, { model, stream: false }), {
    headers: { 'x-session-id': session },
  });

const keyOf = (request: Received | undefined): string =>
  request?.header('authorization') ??
  request?.header('x-api-key') ??
  request?.header('x-goog-api-key') ??
  '';

/** Refuses the key that asks first, answers any other. */
function refuseOne(dialect: UpstreamDialect, status: number, headers = {}) {
  let refused: string | undefined;
  return (request: Received) => {
    const key = keyOf(request);
    refused ??= key;
    return key === refused
      ? errorIn(dialect, status, 'no', headers)
      : answerIn(dialect, { text: 'Here.' }, false);
  };
}

/** What the admin plane says of a model; no key stands in it. */
async function shown(model: string): Promise<string> {
  const response = await fetch(`${rig.gateway.adminUrl}/api/models`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const text = await response.text();
  for (const key of Object.values(keys)) assert.ok(!text.includes(key), 'a key is shown');
  const body: unknown = JSON.parse(text);
  assert.ok(isObject(body));
  return JSON.stringify(listAt(body, 'models').find(({ id }) => id === model));
}

async function triesOf(reply: Reply): Promise<readonly JsonObject[]> {
  const id = String(reply.headers['x-request-id']);
  await rig.gateway.callRow(id);
  const response = await fetch(`${rig.gateway.adminUrl}/api/calls/${id}`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const body: unknown = await response.json();
  assert.ok(isObject(body));
  return listAt(body, 'attempt_list');
}

for (const upstream of upstreamDialects) {
  const dialect = clientDialects.find((each) => each === upstream) ?? 'chat';
  for (const [status, headers] of [
    [429, { 'retry-after': '30' }],
    [401, {}],
  ] as const) {
    test(`R3 R6 a ${status} leads to the next key, and the calls that follow go there, ${upstream}`, async () => {
      const model = `keys-${status}`;
      const script = rig.upstreams[upstream].script(model, refuseOne(upstream, status, headers));
      const attempts: unknown[] = [];
      for (const session of ['a', 'a', 'b', 'c', 'd']) {
        const reply = await call(`${upstream}-${status}/${model}`, dialect, session);
        assert.equal(reply.status, 200, reply.text);
        attempts.push(reply.headers['x-gateway-attempts']);
        if (attempts.length > 1) continue;
        const tries = (await triesOf(reply)).map((each) => textAt(each, 'credential'));
        assert.equal(new Set(tries).size, 2);
        const known = upstream === 'messages' ? ['key-1', 'key-2'] : Object.keys(keys);
        assert.deepEqual([...tries].sort(), known);
      }
      assert.deepEqual(attempts, ['2', '1', '1', '1', '1']);
      assert.equal(script.requests.length, 6);
      const state = status === 429 ? /degraded: rate limited until/ : /down: until/;
      assert.ok(state.test(await shown(`${upstream}-r-${status}`)));
    });
  }
}

test('affinity: a conversation keeps its key, others have the other one', async () => {
  const script = rig.upstreams.chat.script('sticky', answerIn('chat', { text: 'Here.' }, false));
  const used = new Map<string, Set<string>>();
  for (let i = 0; i < 24; i += 1) {
    const session = `s${i % 8}`;
    await call('chat-kept/sticky', 'chat', session);
    const key = keyOf(script.requests.at(-1));
    used.set(session, (used.get(session) ?? new Set<string>()).add(key));
  }
  const all = [...used.values()];
  assert.ok(all.every(({ size }) => size === 1));
  assert.equal(new Set(all.flatMap((each) => [...each])).size, 2);
});

test('R5 after_sent: false repeats no request that was sent and not answered', async () => {
  const first = rig.upstreams.chat.script('once-1', { mute: true, body: '', ending: 'reset' });
  const second = rig.upstreams.messages.script(
    'once-2',
    answerIn('messages', { text: 'H' }, false),
  );
  const reply = await call('once', 'chat');
  assert.equal(reply.status, 502);
  assert.equal(reply.headers['x-gateway-attempts'], '1');
  assert.equal(first.requests.length, 1);
  assert.equal(second.requests.length, 0);
  assert.equal((await triesOf(reply))[0]?.['maybe_billed'], true);
});

test('R5 after_sent: false of the file holds for names that the config does not declare', async (t) => {
  const own = await startRig(() => ({ retry: { after_sent: false } }), { random: () => 0 });
  t.after(() => own.stop());
  const script = own.upstreams.chat.script('bare', { mute: true, body: '', ending: 'reset' });
  const body = requestBody('chat', { model: 'up-chat/bare', stream: false });
  const reply = await ask(own, 'chat', body);
  assert.equal(reply.status, 502);
  assert.equal(script.requests.length, 1);
});

for (const [name, times] of [
  ['once', 1],
  ['twice', 2],
] as const) {
  test(`F7 R5 a kept connection that breaks is asked ${name} under after_sent: ${times === 2}`, async () => {
    const reset: Answer = { mute: true, body: '', ending: 'reset' };
    const here = answerIn('chat', { text: 'Here.' }, false);
    const script = rig.upstreams.chat.script(`${name}-1`, here, reset, here);
    rig.upstreams.messages.script(`${name}-2`, errorIn('messages', 400, 'never'));
    // Leaves a connection, which the upstream then closes when it is used again.
    assert.equal((await call(name, 'chat')).status, 200);
    const reply = await call(name, 'chat');
    assert.equal(reply.status, times === 2 ? 200 : 502, reply.text);
    assert.equal(script.requests.length, 1 + times);
    assert.equal(reply.headers['x-gateway-attempts'], '1');
  });
}

test('R5 after_sent: false still continues after an answer that shows that nothing was generated', async () => {
  rig.upstreams.chat.script('once-1', errorIn('chat', 503, 'full'));
  rig.upstreams.messages.script('once-2', answerIn('messages', { text: 'Here.' }, false));
  const reply = await call('once', 'chat');
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-attempts'], '2');
});

test('R3 a prompt that is too long for one target goes to the next where the operator says so', async () => {
  const overflow = errorIn('chat', 400, "This model's maximum context length is 8 tokens.");
  rig.upstreams.chat.script('long-1', overflow);
  rig.upstreams.messages.script('long-2', answerIn('messages', { text: 'Here.' }, false));
  const reply = await call('long', 'chat');
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['x-gateway-target'], 'up-messages/long-2');
});
