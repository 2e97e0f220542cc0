/** Budget events over real sockets: signed, retried, once a window and threshold, without delaying calls. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Secret } from '../../src/core/secret.ts';
import { newId, systemClock } from '../../src/observe/runtime.ts';
import { Webhooks } from '../../src/features/webhooks.ts';
import { HttpClient } from '../../src/wire/http-client.ts';
import { Listener, type Heard } from '../support/hook-listener.ts';
import { allDialects, objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { replying } from '../upstream/reply.ts';
import { startLimitedRig, type LimitedRig } from './limited-rig.ts';

const secret = 'hook-secret-0123456789';

const listener = new Listener(200);
let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({ webhooks: [{ url: await listener.listen(), secret }] });
});
after(async () => {
  await rig.stop();
  listener.close();
});

const caps = {
  chat: 'max_tokens',
  messages: 'max_tokens',
  responses: 'max_output_tokens',
} as const;

for (const [i, dialect] of allDialects.entries()) {
  test(`a budget reports at 50, 80 and 100 percent, signed: ${dialect} calls`, async () => {
    const usage = { fresh: 0, cacheRead: 0, cacheWrite: 0, output: 100, reasoning: 0 };
    const { model } = rig.play('chat', replying('chat', { text: 'x', usage }));
    // 100 tokens are a tenth of it.
    const key = await rig.key({ budget: '0.01', per: 'month', shrink: false });
    const body = requestBody(dialect, { model, stream: false, more: { [caps[dialect]]: 100 } });
    for (let times = 0; times < 12; times++) await rig.call(key, dialect, body);
    await listener.until(3 * (i + 1));
    const heard = listener.heard.slice(3 * i);
    const told = heard.map(({ event }) => objectAt(event, 'data'));
    assert.deepEqual(
      told.map(({ threshold }) => threshold),
      [50, 80, 100],
    );
    const [first] = told;
    assert.deepEqual(first?.['holder'], { kind: 'key', name: key.id });
    assert.deepEqual([first?.['budget_usd'], first?.['spent_usd']], ['0.01', '0.005']);
    for (const { headers, text } of heard) {
      const [, time = '', signature = ''] =
        /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-gateway-signature'])) ?? [];
      const expected = createHmac('sha256', secret).update(`${time}.${text}`).digest('hex');
      assert.equal(signature, expected);
      assert.equal(headers['x-gateway-event'], 'budget.threshold');
      assert.ok(Math.abs(Number(time) - Date.now() / 1000) < 60);
    }
  });
}

async function deliver(statuses: readonly number[], expected: number): Promise<readonly Heard[]> {
  const flaky = new Listener(...statuses);
  const url = await flaky.listen();
  const client = new HttpClient();
  const webhooks = new Webhooks({
    client,
    clock: systemClock,
    log: silentLog,
    newId,
    random: () => 0,
    hooks: () => [{ url, secret: new Secret(secret) }],
    firstRetryMs: 1,
  });
  webhooks.tell('test', { x: 1 });
  await flaky.until(expected);
  // A further try would come at once.
  await new Promise((resolve) => setTimeout(resolve, 100));
  webhooks.close();
  await client.close();
  flaky.close();
  return flaky.heard;
}

test('a delivery that fails is repeated, as the same delivery', async () => {
  const heard = await deliver([500, 503, 200], 3);
  assert.equal(heard.length, 3);
  assert.equal(new Set(heard.map(({ headers }) => headers['x-gateway-delivery'])).size, 1);
  assert.equal(new Set(heard.map(({ text }) => text)).size, 1);
});

test('a delivery that is refused is not repeated, one that never succeeds is tried six times', async () => {
  assert.equal((await deliver([404], 1)).length, 1);
  assert.equal((await deliver([500], 6)).length, 6);
});

test('F95 a flood is dropped and told in the log, and nothing waits', async () => {
  const dropped: string[] = [];
  const client = new HttpClient();
  const webhooks = new Webhooks({
    client,
    clock: systemClock,
    log: { ...silentLog, error: (event) => void dropped.push(event) },
    newId,
    random: () => 0,
    hooks: () => [{ url: 'http://127.0.0.1:9/', secret: new Secret(secret) }],
  });
  for (let i = 0; i < 150; i++) webhooks.tell('test', { i });
  assert.equal(dropped.length, 50);
  webhooks.close();
  await client.close();
});

test('F95 a delivery without a connection names the receiver, not a provider', async () => {
  const reasons: unknown[] = [];
  const dropped = Promise.withResolvers<void>();
  const client = new HttpClient();
  const webhooks = new Webhooks({
    client,
    clock: systemClock,
    log: {
      ...silentLog,
      error(event, fields) {
        reasons.push([event, fields?.['reason']]);
        dropped.resolve();
      },
    },
    newId,
    random: () => 0,
    hooks: () => [{ url: 'http://127.0.0.1:9/secret', secret: new Secret(secret) }],
    firstRetryMs: 1,
  });
  webhooks.tell('test', {});
  await dropped.promise;
  assert.deepEqual(reasons, [
    [
      'webhook_dropped',
      'The connection to http://127.0.0.1:9 failed (ECONNREFUSED). No server listens there.',
    ],
  ]);
  webhooks.close();
  await client.close();
});
