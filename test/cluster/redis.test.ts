/** One key of $1.00 on three gateways with Redis for rates: never more is spent, whatever Redis does (Q1, F89). */
import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { noRedis, redisPassword, startRedis, type TestRedis } from '../support/redis.ts';
import { assertBookedAsHeld, killBeforeItTells, lastCallTokens } from './last-moment.ts';
import { dollar, nanodollarsOfToken, spender, spendTheRest, storm, type Spender } from './storm.ts';
import { Trio } from './trio.ts';

const postgresServer = await startPostgres();
const redisServer = postgresServer === undefined ? undefined : await startRedis();
if (postgresServer === undefined) test(noPostgres, () => {});
else if (redisServer === undefined) test(noRedis, () => postgresServer.close());
else budgets(postgresServer, redisServer);

function budgets(postgres: TestPostgres, redis: TestRedis): void {
  let trio: Trio;

  before(async () => {
    trio = await Trio.start(postgres, redis.url);
  });
  after(async () => {
    for (const { log } of trio.instances) assert.ok(!log.includes(redisPassword), log);
    await trio.close();
    await redis.close();
    await postgres.close();
  });

  /** A storm in whose middle something happens. */
  const stormWith = async (happens: (account: Spender) => Promise<void>): Promise<void> => {
    const { instances, upstream } = trio;
    const made = await trio.makeKey({ budget: 1 });
    const account = spender(upstream);
    const { promise: beside, resolve: over } = Promise.withResolvers<void>();
    const running = storm({ instances, key: made.key, clients: 200, calls: 8, beside });
    await until(() => account.tokens > 20_000, 'money is spent');
    await happens(account).finally(over);
    const count = await running;
    assert.ok(account.tokens * nanodollarsOfToken <= dollar, `${JSON.stringify(count)}`);
    await spendTheRest(
      { instances, key: made.key },
      async () => (await trio.spent(made)) > dollar - nanodollarsOfToken,
    );
    await until(
      async () => (await trio.costs(made)) === account.tokens * nanodollarsOfToken,
      'the ledger says what the upstream says',
    );
    assert.equal(await trio.spent(made), await trio.costs(made));
    assert.ok((await trio.spent(made)) <= dollar);
  };

  /** Budgets do not need Redis. */
  const spentMore = async (account: Spender): Promise<void> => {
    const before = account.tokens;
    await until(() => account.tokens > before, 'money is spent while Redis is away');
  };

  describe('a budget on three gateways, rates in Redis', () => {
    it('Q1: 200 clients with one key of $1.00 spend $1.00 and no more', () =>
      stormWith(() => Promise.resolve()));

    it('F89: Redis forgets everything in the middle', () =>
      stormWith(async () => {
        assert.equal(await redis.command('FLUSHALL'), '+OK');
      }));

    it('F89: Redis is killed in the middle, and comes back with nothing', () =>
      stormWith(async (account) => {
        await redis.stop();
        await spentMore(account);
        await redis.start();
      }));

    it('F89: Redis says nothing for a while', () =>
      stormWith(async (account) => {
        redis.pause();
        await spentMore(account);
        redis.resume();
      }));

    it('Q1 F81: what a killed gateway could tell nobody of is booked with its lease', async () => {
      const made = await trio.makeKey({ budget: 1 });
      const [victim, ...others] = trio.instances;
      assert.ok(victim !== undefined);
      spender(trio.upstream);
      const probe = await trio.makeKey({ budget: 1 });
      const asked = { model: 'up/spender', max_tokens: 1 };
      await until(
        async () => (await victim.chat(probe.key, asked)).status === 200,
        'the victim counts there',
        240_000,
      );
      await until(async () => (await trio.costs(probe)) > 0, 'what it asked is booked');
      await killBeforeItTells(trio, victim, made);
      trio.instances = others;
      await assertBookedAsHeld(trio, made, lastCallTokens * nanodollarsOfToken);
      const [other] = others;
      const shown = await other?.admin('GET', `/api/keys/${made.id}`);
      assert.match(shown?.text ?? '', /"spent_usd":"?0\.0(0[5-9]|1[0-4])/);
    });
  });
}
