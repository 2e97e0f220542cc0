/** issue 24: the list of events, and webhooks in each format, of a real gateway over real sockets. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Secret } from '../../src/core/secret.ts';
import { webhookRequest } from '../../src/features/webhook-formats.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { Listener } from '../support/hook-listener.ts';
import { send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { until } from '../support/postgres-store.ts';
import { objectAt } from '../support/reading.ts';

const secret = 'hook-secret-0123456789';
const listeners = {
  json: new Listener(200),
  slack: new Listener(200),
  teams: new Listener(202),
  discord: new Listener(204),
  pagerduty: new Listener(202),
  gone: new Listener(404),
};
let gateway: TestGateway;
let webhooks: JsonObject[];
before(async () => {
  webhooks = [];
  for (const [format, listener] of Object.entries(listeners)) {
    const isSigned = ['json', 'pagerduty', 'gone'].includes(format);
    webhooks.push({
      url: await listener.listen(),
      ...(format === 'gone' ? {} : { format }),
      ...(isSigned ? { secret } : {}),
    });
  }
  gateway = await startTestGateway({ webhooks });
});
after(async () => {
  await gateway.stop();
  for (const listener of Object.values(listeners)) listener.close();
});

async function admin(method: string, path: string, token = adminToken): Promise<JsonObject> {
  const headers = { authorization: `Bearer ${token}` };
  const { status, json } = await send(gateway.adminUrl + path, undefined, { method, headers });
  return { status, ...(json as JsonObject) };
}

const listOf = (answer: JsonObject, name: string) => answer[name] as readonly JsonObject[];

test('issue 24 a reload is reported in the form of each service, and listed', async () => {
  await gateway.reload({ webhooks, limits: { memory: '1GiB' } });
  for (const listener of Object.values(listeners)) await listener.until(1);
  const [json, slack, teams, discord, pagerduty] = Object.values(listeners).map(
    ({ heard }) => heard[0]?.event ?? {},
  );
  assert.deepEqual([json?.['type'], json?.['data']], ['config.applied', { needs_restart: [] }]);
  const text = 'The configuration was read again and applied.';
  assert.ok(String(slack?.['text']).startsWith(`:white_check_mark: ${text}`));
  assert.ok(JSON.stringify(teams).includes(text));
  assert.deepEqual(discord?.['allowed_mentions'], { parse: [] });
  assert.deepEqual([pagerduty?.['routing_key'], pagerduty?.['event_action']], [secret, 'resolve']);
  for (const { heard } of [listeners.slack, listeners.teams, listeners.discord]) {
    assert.equal(heard[0]?.headers['x-gateway-signature'], undefined);
    assert.ok(!heard[0]?.text.includes(secret));
  }
  await until(
    async () => listOf(await admin('GET', '/api/events?group=webhook'), 'events').length === 1,
    'what the hook that is gone did not get is listed',
  );
  const all = await admin('GET', '/api/events');
  assert.deepEqual(
    listOf(all, 'events').map(({ type, severity }) => [type, severity]),
    [
      ['webhook.failed', 'warning'],
      ['config.applied', 'info'],
      ['gateway.started', 'info'],
    ],
  );
  assert.deepEqual([all['next'], all['forgotten']], [null, 0]);
  const first = await admin('GET', '/api/events?limit=1');
  const second = await admin('GET', `/api/events?limit=1&before=${String(first['next'])}`);
  assert.equal(listOf(second, 'events')[0]?.['type'], 'config.applied');
  assert.equal(listOf(await admin('GET', '/api/events?severity=error'), 'events').length, 0);
  assert.equal((await admin('GET', '/api/events?severity=bad'))['status'], 400);
});

test('issue 24 webhooks are listed without their addresses, with their last failures', async () => {
  const answer = await admin('GET', '/api/webhooks');
  const hooks = listOf(answer, 'webhooks');
  assert.deepEqual(
    hooks.map(({ format, delivered, dropped }) => [format, delivered, dropped]),
    [
      ['json', 1, 0],
      ['slack', 1, 0],
      ['teams', 1, 0],
      ['discord', 1, 0],
      ['pagerduty', 1, 0],
      ['json', 0, 1],
    ],
  );
  const [failure] = listOf(hooks[5] ?? {}, 'failures');
  assert.deepEqual([failure?.['event'], failure?.['reason']], ['config.applied', 'status 404']);
  assert.ok(!JSON.stringify(answer).includes('token=x'));
  assert.ok(!JSON.stringify(answer).includes(secret));
});

test('issue 24 a test event goes to one hook, once, and is in the audit log', async () => {
  const ids = listOf(await admin('GET', '/api/webhooks'), 'webhooks').map(({ id }) => String(id));
  const [, slack = ''] = ids;
  const done = await admin('POST', `/api/webhooks/${slack}/test`);
  assert.deepEqual([done['status'], done['delivered'], done['reason']], [200, true, null]);
  assert.match(String(listeners.slack.heard[1]?.event['text']), /This is a test event/);
  assert.equal(listeners.json.heard.length, 1);
  const failed = await admin('POST', `/api/webhooks/${ids[5] ?? ''}/test`);
  assert.deepEqual([failed['delivered'], failed['reason']], [false, 'status 404']);
  assert.equal(listeners.gone.heard.length, 2);
  const { entries } = await admin('GET', '/api/audit?action=webhook.test');
  assert.equal((entries as readonly JsonObject[]).length, 2);
  assert.equal((await admin('POST', '/api/webhooks/nobody/test'))['status'], 404);
  for (const [method, path] of [
    ['GET', '/api/events'],
    ['GET', '/api/webhooks'],
    ['POST', `/api/webhooks/${slack}/test`],
  ] as const) {
    assert.equal((await admin(method, path, 'no-such-token'))['status'], 401, path);
  }
});

test('issue 24 a reload names what waits for a restart, also when the watch has read the file before', async () => {
  const traces = { endpoint: 'http://127.0.0.1:9/v1/traces' };
  await gateway.reload({ webhooks, traces });
  for (let times = 0; times < 2; times += 1) {
    const answer = await admin('POST', '/api/reload');
    assert.deepEqual([answer['applied'], answer['needs_restart']], [true, ['traces']]);
  }
  const [told] = listOf(await admin('GET', '/api/events?group=config'), 'events');
  assert.equal(
    told?.['text'],
    'The configuration was read again and applied. Read at start only: traces.',
  );
});

test('issue 24 a target that is out opens an incident by its name, and its return closes the same', () => {
  const event = (type: string, data: JsonObject) => ({
    id: 'evt_1',
    type,
    created_at: '2026-11-27T12:00:00.000Z',
    source: 'gw-1',
    data: { target: 'openai/<gpt>', ...data },
  });
  const out = event('target.out', {
    error: 'overloaded',
    failures: 5,
    retry_after_s: 30,
    changes: 1,
  });
  const back = event('target.back', { changes: 2 });
  const hook = { format: 'pagerduty', secret: new Secret(secret) } as const;
  const [opened, closed] = [out, back].map(
    (each) => JSON.parse(webhookRequest(each, hook, 0).body) as JsonObject,
  );
  assert.deepEqual(
    [opened?.['event_action'], closed?.['event_action'], opened?.['dedup_key']],
    ['trigger', 'resolve', 'model-gateway gw-1 Target openai/<gpt>'],
  );
  assert.equal(closed?.['dedup_key'], opened?.['dedup_key']);
  const payload = objectAt(opened ?? {}, 'payload');
  assert.deepEqual(
    [payload['severity'], payload['summary']],
    [
      'error',
      'openai/<gpt> is down: 5 failures in a row (overloaded). Its circuit breaker is open for 30 s.',
    ],
  );
  const { headers, body } = webhookRequest(out, { format: 'slack' }, 0);
  assert.deepEqual(headers, ['content-type', 'application/json']);
  assert.match(body, /:red_circle: openai\/&lt;gpt&gt; is down/);
});
