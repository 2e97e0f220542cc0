/** issue 8.5: failures and recoveries, sent to a webhook over a real socket, in the documented form. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { JsonObject } from '../../src/json/value.ts';
import { Secret } from '../../src/core/secret.ts';
import type { LoadSample } from '../../src/http/overload/load.ts';
import { Events } from '../../src/compose/events.ts';
import { HttpClient } from '../../src/wire/http-client.ts';
import { Listener } from '../support/hook-listener.ts';
import { objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { errorIn } from '../upstream/reply.ts';

const secret = 'hook-secret-0123456789';
const schema: JsonObject = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/webhooks.schema.json'), 'utf8'),
);
const ajv = new Ajv2020({
  strict: false,
  formats: { 'date-time': (text) => !Number.isNaN(Date.parse(text)) },
});
const isEvent = ajv.compile(schema);

const everything = new Listener(200);
const budgets = new Listener(200);
let press: (sample: LoadSample) => void = () => undefined;
let rig: Rig;
let webhooks: JsonObject[];
before(async () => {
  webhooks = [
    { url: await everything.listen(), secret },
    { url: await budgets.listen(), secret, events: ['budget'] },
  ];
  rig = await startRig(
    { webhooks, limits: { memory: '1GiB' } },
    {
      random: () => 0,
      load: (tell) => {
        press = tell;
        return () => undefined;
      },
    },
  );
});
after(async () => {
  await rig.stop();
  everything.close();
  budgets.close();
});

/** The first event of a type, which must have the documented form. */
async function heard(type: string): Promise<JsonObject> {
  for (;;) {
    const found = everything.heard.find(({ event }) => event['type'] === type);
    if (found !== undefined) {
      assert.ok(isEvent(found.event), `${found.text}: ${ajv.errorsText(isEvent.errors)}`);
      return objectAt(found.event, 'data');
    }
    await everything.until(everything.heard.length + 1);
  }
}

test('issue 8.5 a target that fails five times is out; a credential that is refused as well', async () => {
  const broken = rig.play('chat', errorIn('chat', 500, 'broken'));
  for (let i = 0; i < 3; i++) {
    await ask(rig, 'chat', requestBody('chat', { model: broken.model, stream: false }));
  }
  const target = await heard('target.out');
  assert.deepEqual(
    [target['target'], target['error'], target['failures'], target['changes']],
    [broken.model, 'upstream_unavailable', 5, 1],
  );
  const refused = rig.play('messages', errorIn('messages', 401, 'no such key'));
  await ask(rig, 'messages', requestBody('messages', { model: refused.model, stream: false }));
  const credential = await heard('credential.out');
  assert.deepEqual(
    [credential['provider'], credential['credential'], credential['status']],
    ['up-messages', null, 401],
  );
});

test('issue 8.5 pressure is reported when it comes, when it rises, and when it is gone', async () => {
  const sample = (share: number): LoadSample => ({
    rssBytes: share * 1024 ** 3,
    heapShare: 0,
    delayMs: 0,
    busy: 0,
  });
  press(sample(0.92));
  const entered = await heard('overload.entered');
  assert.ok(Number(entered['step']) >= 1);
  for (let i = 0; i < 40; i++) press(sample(0.01));
  const left = await heard('overload.left');
  assert.equal(left['step'], 0);
});

test('issue 8.5 a new configuration forgets what was out, and says so', async () => {
  const { chat, messages } = rig.upstreams;
  await rig.gateway.reload({
    webhooks,
    providers: {
      'up-chat': { dialect: 'openai-chat', base_url: `http://127.0.0.1:${chat.port}/v1` },
      'up-messages': {
        dialect: 'anthropic-messages',
        base_url: `http://127.0.0.1:${messages.port}`,
      },
    },
  });
  assert.match(String((await heard('target.back'))['target']), /^up-chat\//);
  assert.deepEqual(await heard('credential.back'), {
    provider: 'up-messages',
    credential: null,
    changes: 1,
  });
});

test('issue 8.5 a webhook for budgets only gets nothing of it', () => {
  assert.equal(budgets.heard.length, 0);
  assert.ok(everything.heard.every(({ event }) => isEvent(event)));
});

test('issue 8.5 a store that goes and comes is reported', async () => {
  const client = new HttpClient();
  let trouble: string | undefined = 'the store does not answer';
  const hooks = [{ url: String(webhooks[0]?.['url']), secret: new Secret(secret) }];
  const events = new Events({
    client,
    log: silentLog,
    hooks: () => hooks,
    storeFailure: () => trouble,
  });
  events.start();
  assert.deepEqual(await heard('store.down'), { reason: trouble, changes: 1 });
  trouble = undefined;
  await heard('store.up');
  events.close();
  await client.close();
});
