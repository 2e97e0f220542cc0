/** Limits on one model, and the names under which clients could get around them (K6). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { requestBody } from '../support/requests.ts';
import { replying, type Reply } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

const usage = { fresh: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };
const answer: Reply = { text: 'Good day.', usage };

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    models: {
      alias: { targets: ['up-chat/gpt-9'] },
      dated: { targets: ['up-chat/gpt-7-2026-01-01'] },
      newer: { targets: ['up-chat/gpt-7-2026-02-02'] },
      other: { targets: ['up-chat/gpt-8'] },
      // Goes to the limited model only when the first one fails.
      behind: { targets: ['up-messages/claude-9', 'up-chat/gpt-9'] },
      either: { targets: ['up-chat/gpt-8', 'up-chat/gpt-9'], order: 'weighted' },
    },
  });
  const { chat, messages } = rig.upstreams;
  const names = [
    'gpt-7',
    'gpt-7-2026-01-01',
    'gpt-7-2026-02-02',
    'gpt-9',
    'GPT-9',
    'gpt-9-2026-08-07',
    'gpt-9:nitro',
    'models/gpt-9',
    'gpt-8',
  ];
  for (const name of names) chat.script(name, replying('chat', answer));
  messages.script('claude-9', replying('messages', answer));
});
after(() => rig.stop());

function limitedTo(model: string, amount = 1): Promise<LimitedKey> {
  const limit: JsonObject = { kind: 'requests', amount, model };
  return rig.key({ limits: [limit] });
}

async function statusOf(key: LimitedKey, model: string): Promise<number> {
  const more = { max_tokens: 10 };
  const body = requestBody('chat', { model, stream: false, more });
  return (await rig.call(key, 'chat', body)).status;
}

/** Names that lead to the model which `up-chat/gpt-9` is. */
const spellings = [
  'up-chat/gpt-9',
  'alias',
  'behind',
  'either',
  'up-chat/GPT-9',
  'up-chat/gpt-9-2026-08-07',
  'up-chat/gpt-9:nitro',
  'up-chat/models/gpt-9',
];

for (const limit of ['up-chat/gpt-9', 'gpt-9', 'gpt-9*', 'alias']) {
  test(`K6 a limit on ${limit} holds whatever the client calls the model`, async () => {
    for (const spelling of spellings) {
      // Of a route on which it stands second, only what the target is called is counted.
      if (limit === 'alias' && spelling === 'behind') continue;
      const key = await limitedTo(limit);
      assert.equal(await statusOf(key, spelling), 200, `${spelling} first`);
      assert.equal(await statusOf(key, 'up-chat/gpt-9'), 429, `up-chat/gpt-9 after ${spelling}`);
      assert.equal(await statusOf(key, spelling), 429, `${spelling} again`);
      assert.equal(await statusOf(key, 'other'), 200, 'another model is not counted');
    }
  });
}

test('K6 a limit on a route counts those that lead there first, not what lies behind it', async () => {
  const key = await limitedTo('behind');
  assert.equal(await statusOf(key, 'behind'), 200);
  assert.equal(await statusOf(key, 'up-messages/claude-9'), 429);
  assert.equal(await statusOf(key, 'alias'), 200);
});

test('K6 a limit on a route to one date counts the undated name, and no other date', async () => {
  const key = await limitedTo('dated');
  assert.equal(await statusOf(key, 'up-chat/gpt-7'), 200);
  assert.equal(await statusOf(key, 'dated'), 429);
  assert.equal(await statusOf(key, 'newer'), 200);
  assert.equal(await statusOf(key, 'up-chat/gpt-7-2026-02-02'), 200);
});

test('K6 counts of tokens are requests for the model under each of its names', async () => {
  const key = await limitedTo('gpt-9', 2);
  for (const [model, status] of [
    ['alias', 200],
    ['up-chat/gpt-9', 200],
    ['either', 429],
  ] as const) {
    const body = { model, messages: [{ role: 'user', content: 'hello' }] };
    const url = `${rig.gateway.url}/v1/messages/count_tokens`;
    const reply = await send(url, body, { headers: key.headers });
    assert.equal(reply.status, status, reply.text);
  }
});

test('H5 the refusal names the limit as it was written', async () => {
  const key = await limitedTo('GPT-9');
  await statusOf(key, 'alias');
  const body = requestBody('chat', { model: 'alias', stream: false });
  const refused = errorOf(await rig.call(key, 'chat', body));
  assert.match(String(refused['message']), /for models GPT-9: 1 request per minute/);
});

test('K6 tokens of a model are counted together for all of its names', async () => {
  const limit: JsonObject = { kind: 'tokens', amount: 600, model: 'up-chat/gpt-9' };
  const key = await rig.key({ limits: [limit] });
  const more = { max_tokens: 500 };
  const call = (model: string) =>
    rig.call(key, 'chat', requestBody('chat', { model, stream: false, more }));
  assert.equal((await call('alias')).headers['x-ratelimit-limit-tokens'], '600');
  // 50 were used of it: there is no room for two such calls beside it.
  const both = await Promise.all([call('up-chat/gpt-9'), call('either')]);
  assert.ok(both.some(({ status }) => status === 429));
});
