/** What a killed gateway held of a budget, and how many of many calls at once fit (Q1, K1, F81). The storm is in money.test.ts. */
import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import type { MadeKey } from './instance.ts';
import { assertBookedAsHeld, killBeforeItTells, lastCallTokens } from './last-moment.ts';
import { dollar, nanodollarsOfToken, spender, storm } from './storm.ts';
import { Trio } from './trio.ts';

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else budgets(server);

function budgets(postgres: TestPostgres): void {
  let trio: Trio;
  /** Of a stream that runs on a gateway which is killed. */
  let orphan: MadeKey = { id: '', key: '' };
  /** Of a call that the killed gateway could not tell of. */
  let untold: MadeKey = { id: '', key: '' };

  before(async () => {
    trio = await Trio.start(postgres);
    trio.upstream.script('slow', {
      body: ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"abc"}}]}\n\n'],
      headers: { 'content-type': 'text/event-stream' },
      ending: 'hang',
    });
  });
  after(async () => {
    await trio.close();
    await postgres.close();
  });

  describe('a budget on three gateways, counted in PostgreSQL', () => {
    it('K1: of 60 calls at once, a budget for two admits exactly two', async () => {
      const { instances, upstream } = trio;
      const made = await trio.makeKey({ budget: 0.01 });
      let release = (): void => {};
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const usage = { prompt_tokens: 9, completion_tokens: 500, total_tokens: 509 };
      const document = JSON.stringify(chatDocument({ text: 'x', usage }));
      const held = upstream.script('held', {
        body: [released, document],
        headers: { 'content-type': 'application/json' },
      });
      let ended = 0;
      const clients = Array.from({ length: 60 }, async (_, i) => {
        const reply = await instances[i % 3]?.chat(made.key, { model: 'up/held', max_tokens: 500 });
        ended += 1;
        return reply?.status;
      });
      await until(() => ended === 58, 'all but two are refused while two run');
      release();
      const statuses = await Promise.all(clients);
      assert.equal(statuses.filter((status) => status === 200).length, 2);
      assert.equal(statuses.filter((status) => status === 429).length, 58);
      assert.equal(held.requests.length, 2);
      await until(async () => (await trio.spent(made)) === dollar / 100, 'both are booked');
    });

    it('Q1 F81: a gateway that is killed in the middle leaves no way around the budget', async () => {
      const { upstream } = trio;
      const made = await trio.makeKey({ budget: 1 });
      orphan = await trio.makeKey({ budget: 1 });
      untold = await trio.makeKey({ budget: 1 });
      const account = spender(upstream);
      const [victim, ...others] = trio.instances;
      assert.ok(victim !== undefined);
      let begun = false;
      const asked = { model: 'up/slow', stream: true, max_tokens: 500 };
      const stream = victim.chat(orphan.key, asked, { onData: () => (begun = true) });
      await until(() => begun, 'the stream has begun: its end is no broken request');
      await until(async () => (await trio.open('up/slow')) === 1, 'the running stream is noted');
      const seen = (): Promise<unknown> =>
        trio.query(`SELECT seen_at FROM open_calls WHERE call LIKE '%"up/slow"%'`);
      const first = JSON.stringify(await seen());
      await until(async () => JSON.stringify(await seen()) !== first, 'it is noted again');
      const running = storm({ instances: others, key: made.key, clients: 60, calls: 8 });
      const lost = storm({ instances: [victim], key: made.key, clients: 30, calls: 100 }).catch(
        () => undefined,
      );
      await until(() => account.tokens > 10_000, 'money is spent');
      await killBeforeItTells(trio, victim, untold);
      assert.equal((await stream).complete, false);
      trio.instances = others;
      await Promise.all([running, lost]);
      await until(async () => {
        const live = await Promise.all(others.map((each) => each.admin('GET', '/api/status')));
        return live.every(({ json }) => json['live_calls'] === 0);
      }, 'nothing runs');
      assert.ok((await trio.spent(made)) <= dollar);
      // What nobody could write was still held: the upstream was asked for no more either.
      assert.ok(account.tokens * nanodollarsOfToken <= dollar);
    });

    it('F81 Q2: the stream that ran there is settled by another, once, as it was last known', async () => {
      await until(async () => (await trio.open()) === 0, 'the lease is over', 240_000);
      const rows = await trio.query(`SELECT outcome, error, usage_source, cost::integer,
        reserved::integer FROM calls WHERE key_id = '${orphan.id}' AND model = 'up/slow'`);
      assert.equal(rows.length, 1);
      const { cost, reserved, ...rest } = rows[0] ?? {};
      const expected = { outcome: 'failed', error: 'interrupted', usage_source: 'estimated' };
      assert.deepEqual(rest, expected);
      assert.equal(reserved, 500 * nanodollarsOfToken);
      assert.ok(Number(cost) > 0 && Number(cost) <= Number(reserved), `it cost ${cost}`);
      const [holds] = await trio.query(`SELECT sum(amount - free)::integer AS n FROM budget_leases
        WHERE counter LIKE 'key:${orphan.id}:%'`);
      assert.deepEqual(holds, { n: Number(reserved) - Number(cost) }, 'the rest is held');
      assert.equal(await trio.spent(orphan), cost);
    });

    it('Q1 F81: an unreported call of the killed gateway is booked with its lease', async () => {
      const held = lastCallTokens * nanodollarsOfToken;
      await assertBookedAsHeld(trio, untold, held);
    });
  });
}
