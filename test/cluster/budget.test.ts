/** One key of $1.00 on three gateways: never more than that is spent (Q1, K1). */
import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { Instance, type MadeKey } from './instance.ts';
import { dollar, nanodollarsOfToken, spender, spendTheRest, storm, stormPrices } from './storm.ts';

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else budgets(server);

function budgets(postgres: TestPostgres): void {
  let upstream: ScriptedUpstream;
  let url = '';
  let instances: readonly Instance[] = [];
  /** Of a stream that runs on a gateway which is killed. */
  let orphan: MadeKey | undefined;

  const makeKey = async (wish: { readonly [name: string]: number | string }): Promise<MadeKey> => {
    const [first] = instances;
    assert.ok(first !== undefined);
    const made = await first.makeKey({ ...wish, per: 'month' });
    await until(async () => {
      const known = await Promise.all(
        instances.map((each) => each.chat(made.key, { model: 'up/none', max_tokens: 1 })),
      );
      return known.every(({ status }) => status !== 401);
    }, 'the key is known');
    return made;
  };
  const spent = async ({ id }: MadeKey): Promise<number> => {
    const sql = `SELECT coalesce(sum(nanodollars), 0)::float8 AS n FROM spending
      WHERE counter LIKE 'key:${id}:%'`;
    return Number((await postgres.query(sql, url))[0]?.n);
  };
  const costs = async ({ id }: MadeKey): Promise<number> => {
    const sql = `SELECT coalesce(sum(cost), 0)::float8 AS n FROM calls WHERE key_id = '${id}'`;
    return Number((await postgres.query(sql, url))[0]?.n);
  };

  /** Calls that are noted as running. */
  const open = async (): Promise<number> => {
    const [row] = await postgres.query('SELECT count(*)::integer AS n FROM open_calls', url);
    return Number(row?.n);
  };

  before(async () => {
    upstream = await ScriptedUpstream.start();
    upstream.script('slow', {
      body: ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"abc"}}]}\n\n'],
      headers: { 'content-type': 'text/event-stream' },
      ending: 'hang',
    });
    url = await postgres.makeDatabase();
    const options = { storage: url, upstream: upstream.port, prices: stormPrices };
    instances = await Promise.all([
      Instance.start(options),
      Instance.start(options),
      Instance.start(options),
    ]);
  });
  after(async () => {
    for (const instance of instances) {
      await instance.kill();
      instance.remove();
    }
    await upstream.close();
    await postgres.close();
  });

  describe('a budget on three gateways, counted in PostgreSQL', () => {
    it('Q1: 200 clients with one key of $1.00 spend $1.00 and no more', async () => {
      const made = await makeKey({ budget: 1 });
      const account = spender(upstream);
      const count = await storm({ instances, key: made.key, clients: 200, calls: 8 });
      assert.equal(count.unavailable, 0);
      assert.ok(count.refused > 0, 'the budget had an end');
      await spendTheRest(
        { instances, key: made.key },
        async () => (await spent(made)) > dollar - nanodollarsOfToken,
      );
      await until(
        async () => (await costs(made)) === account.tokens * nanodollarsOfToken,
        'the ledger says what the upstream says',
      );
      assert.equal(await spent(made), await costs(made));
      assert.ok((await spent(made)) <= dollar);
    });

    it('K1: of 60 calls at once, a budget for two admits exactly two', async () => {
      const made = await makeKey({ budget: 0.01 });
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
      await until(async () => (await spent(made)) === dollar / 100, 'both are booked');
    });

    it('Q1 F81: a gateway that is killed in the middle leaves no way around the budget', async () => {
      const made = await makeKey({ budget: 1 });
      const account = spender(upstream);
      const [victim, ...others] = instances;
      assert.ok(victim !== undefined);
      const running = storm({ instances: others, key: made.key, clients: 60, calls: 8 });
      const lost = storm({ instances: [victim], key: made.key, clients: 30, calls: 100 }).catch(
        () => undefined,
      );
      await until(() => account.tokens > 10_000, 'money is spent');
      orphan = await makeKey({ budget: 1 });
      const stream = victim.chat(orphan.key, { model: 'up/slow', stream: true, max_tokens: 500 });
      await until(async () => (await open()) === 1, 'the running stream is noted');
      const seen = (): Promise<unknown> => postgres.query('SELECT seen_at FROM open_calls', url);
      const first = JSON.stringify(await seen());
      await until(async () => JSON.stringify(await seen()) !== first, 'it is noted again');
      await victim.kill();
      assert.equal((await stream).complete, false);
      await Promise.all([running, lost]);
      await until(async () => {
        const live = await Promise.all(others.map((each) => each.admin('GET', '/api/status')));
        return live.every(({ json }) => json['live_calls'] === 0);
      }, 'nothing runs');
      assert.ok((await spent(made)) <= dollar);
      // What nobody could write was still held: the upstream was asked for no more either.
      assert.ok(account.tokens * nanodollarsOfToken <= dollar);
      instances = others;
    });

    it('F81 Q2: the stream that ran there is settled by another, once, as it was last known', async () => {
      const [first] = instances;
      const { id } = orphan ?? { id: '' };
      const row = `SELECT outcome, error, usage_source, cost::integer, reserved::integer FROM calls
        WHERE key_id = '${id}' AND model = 'up/slow'`;
      await until(async () => (await open()) === 0, 'the lease is over', 60_000);
      const rows = await postgres.query(row, url);
      assert.equal(rows.length, 1);
      const { cost, reserved, ...rest } = rows[0] ?? {};
      assert.deepEqual(rest, {
        outcome: 'failed',
        error: 'interrupted',
        usage_source: 'estimated',
      });
      assert.equal(reserved, 500 * nanodollarsOfToken);
      assert.ok(Number(cost) > 0 && Number(cost) <= Number(reserved), `it cost ${cost}`);
      const shown = await first?.admin('GET', `/api/keys/${id}`);
      assert.equal(shown?.status, 200);
      const holds = `SELECT count(*)::integer AS n FROM counter_holds WHERE name LIKE 'b:key:${id}:%'`;
      assert.deepEqual(await postgres.query(holds, url), [{ n: 0 }]);
      assert.equal(await spent({ id, key: '' }), cost);
    });
  });
}
