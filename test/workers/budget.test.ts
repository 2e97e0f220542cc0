/** One key on three workers, of which some are killed: never more than its budget is spent (Q1, F81). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject } from '../../src/json/value.ts';
import { dollar, nanodollarsOfToken, spender, spendTheRest, storm } from '../cluster/storm.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import { killWorker, noneLeft, spentOf, startCrew, type Crewed } from './crew.ts';

let crew: Crewed;
before(async () => {
  crew = await startCrew(3);
});
after(() => crew.end());

test('Q1: 100 clients with one key of $1.00 on three workers spend $1.00 and no more', async () => {
  const { gateway, upstream } = crew;
  const made = await gateway.makeKey({ budget: 1, per: 'ever' });
  const account = spender(upstream);
  const count = await storm({ instances: [gateway], key: made.key, clients: 100, calls: 8 });
  assert.equal(count.unavailable, 0);
  assert.ok(count.refused > 0, 'the budget had an end');
  await spendTheRest(
    { instances: [gateway], key: made.key },
    async () => (await spentOf(gateway, made.id)) > dollar - nanodollarsOfToken,
  );
  assert.equal(await spentOf(gateway, made.id), account.tokens * nanodollarsOfToken);
  assert.ok((await spentOf(gateway, made.id)) <= dollar);
  const usage = await gateway.admin('GET', '/api/usage?by=key');
  assert.match(usage.text, new RegExp(`"cost_usd":${account.tokens / 100_000}[,}]`));
});

test('K1: of 60 calls at once on three workers, a budget for two admits exactly two', async () => {
  const { gateway, upstream } = crew;
  const made = await gateway.makeKey({ budget: 0.01, per: 'ever' });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const usage = { prompt_tokens: 9, completion_tokens: 500, total_tokens: 509 };
  const held = upstream.script('held', {
    body: [released, JSON.stringify(chatDocument({ text: 'x', usage }))],
    headers: { 'content-type': 'application/json' },
  });
  let ended = 0;
  const clients = Array.from({ length: 60 }, async () => {
    const { status } = await gateway.chat(made.key, { model: 'up/held', max_tokens: 500 });
    ended += 1;
    return status;
  });
  await until(() => ended === 58, 'all but two are refused while two run');
  release();
  const statuses = await Promise.all(clients);
  assert.equal(statuses.filter((status) => status === 200).length, 2);
  assert.equal(statuses.filter((status) => status === 429).length, 58);
  assert.equal(held.requests.length, 2);
});

test('Q1 F81: workers that are killed under load leave no way around the budget, and lose none of it', async () => {
  const { gateway, upstream } = crew;
  const made = await gateway.makeKey({ budget: 1, per: 'ever' });
  const account = spender(upstream);
  /** Tokens of the answers that came whole, by the user that the call names. */
  const answered = new Map<string, number>();
  const clients = Array.from({ length: 40 }, async (_, client) => {
    for (let turn = 0; ; turn += 1) {
      const user = `client ${client} turn ${turn}`;
      const body = { model: 'up/spender', max_tokens: 500, user };
      // Of a worker that dies the connection is reset.
      const reply = await gateway.chat(made.key, body).catch(() => undefined);
      if (reply?.status === 429) return;
      assert.ok(reply === undefined || reply.status === 200, reply?.text);
      const { usage } = reply?.json ?? {};
      if (isObject(usage)) answered.set(user, Number(usage['completion_tokens']));
    }
  });
  await until(() => account.tokens > 5000, 'money is spent');
  await killWorker(gateway, 1);
  await until(() => account.tokens > 20_000, 'more of it is spent');
  await killWorker(gateway, 2);
  await Promise.all(clients);
  await noneLeft(gateway);
  // What the killed ones held was booked as spent: less than that can be asked for again.
  await spendTheRest(
    { instances: [gateway], key: made.key },
    async () => (await spentOf(gateway, made.id)) > dollar - nanodollarsOfToken,
  );
  const spent = await spentOf(gateway, made.id);
  assert.ok(spent <= dollar, String(spent));
  // What a killed worker had not told the end of counts as it was last known, and not with what the upstream meant to send.
  const reply = await gateway.admin('GET', '/api/calls?limit=1000&outcome=failed');
  const calls = Array.isArray(reply.json['calls']) ? reply.json['calls'].filter(isObject) : [];
  // A row without a user stands for a call of which nothing was noted: it is booked with all that it held.
  const cut = calls.filter((call) => call['error'] === 'interrupted' && call['user'] !== null);
  let known = cut.reduce((sum, call) => sum + Math.round(Number(call['cost_usd']) * 1e9), 0);
  for (const { user } of cut) answered.delete(String(user));
  for (const tokens of answered.values()) known += tokens * nanodollarsOfToken;
  assert.ok(known <= spent, 'nothing was forgotten');
  const costs = await gateway.admin('GET', '/api/usage?by=key');
  assert.match(costs.text, new RegExp(`"cost_usd":${spent / 1e9}[,}]`));
});
