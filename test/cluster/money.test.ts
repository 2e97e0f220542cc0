/**
 * Budgets of $1.00 on three gateways that are killed, cut off and started again, beside servers that fail: never
 * more than that is spent, and in the end all of it (Q1, F81, F89; docs/decisions/0043-budget-leases.md).
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { redisPassword, type TestRedis } from '../support/redis.ts';
import { withPostgres, withPostgresAndRedis } from '../support/with-servers.ts';
import { Money, maxTokens, type Seat } from './money.ts';
import { dollar, nanodollarsOfToken } from './storm.ts';

interface Mishap {
  readonly what: string;
  happens(): Promise<void>;
}

/** All mishaps together may take so many tokens of each budget's 100,000; what killed calls held is lost besides. */
const tokensOfMishaps = 55_000;

function money(postgres: TestPostgres, redis?: TestRedis): void {
  let world: Money;
  before(async () => {
    world = await Money.start(postgres, redis?.url);
  });
  after(() => world.close());

  it('Q1 F81 F89: 200 clients spend $1.00 of a key, a team and a tag, whatever fails', async (t) => {
    const mishaps = redis === undefined ? mishapsOf(world, postgres) : mishapsOfRedis(world, redis);
    const step = tokensOfMishaps / mishaps.length;
    world.begin();
    for (const { what, happens } of mishaps) {
      t.diagnostic(what);

      world.ceiling += step;
      await world.spentTo(world.ceiling - step / 2);
      await happens();
      await world.spentTo(world.ceiling);
    }
    await until(
      async () => (await world.query(deadLeases)).length === 0,
      'leases of the dead have ended',
      300_000,
    );
    await world.spendTheRest();
    await until(
      async () => (await world.query('SELECT 1 FROM open_calls')).length === 0,
      'no call runs',
    );
    assert.deepEqual(world.complaints, []);
    assert.ok(world.samples > 50, `${world.samples} samples`);
    await assertLedger(world);
    t.diagnostic(`${world.counted.size} calls, ${world.samples} samples`);
  });
}

/** Those that a start has found, or that nobody has found yet. */
const deadLeases = `SELECT 1 FROM budget_leases JOIN budget_instances USING (instance)
  WHERE number = ${Number.MAX_SAFE_INTEGER}`;

function mishapsOf(world: Money, postgres: TestPostgres): readonly Mishap[] {
  const [one, two, three] = world.seats;
  assert.ok(one && two && three);
  const spentMore = async (): Promise<void> => {
    const before = world.counted.size;
    await until(() => world.counted.size > before + 20, 'others spend meanwhile');
  };
  const restarted = (what: string, seats: readonly Seat[]): Mishap => ({
    what,
    happens: async () => {
      await Promise.all(seats.map((seat) => world.kill(seat)));
      await Promise.all(seats.map((seat) => world.restart(seat)));
    },
  });
  return [
    restarted('an instance is killed', [one]),
    {
      what: 'PostgreSQL is restarted',
      happens: async () => {
        await postgres.stop('immediate');
        await pause(1000);
        await postgres.start();
      },
    },
    {
      what: 'an instance is cut off from PostgreSQL',
      happens: async () => {
        two.proxy.fallSilent();
        await spentMore();
        two.proxy.speak();
      },
    },
    {
      what: 'an instance is killed while PostgreSQL is away',
      happens: async () => {
        await postgres.stop('immediate');
        await world.kill(three);
        await postgres.start();
        await world.restart(three);
      },
    },
    restarted('all instances are killed', world.seats),
  ];
}

function mishapsOfRedis(world: Money, redis: TestRedis): readonly Mishap[] {
  const [one] = world.seats;
  assert.ok(one);
  const spentMore = async (): Promise<void> => {
    const before = world.counted.size;
    await until(() => world.counted.size > before + 20, 'budgets do not need Redis');
  };
  return [
    {
      what: 'Redis forgets everything',
      happens: async () => assert.equal(await redis.command('FLUSHALL'), '+OK'),
    },
    {
      what: 'Redis is restarted',
      happens: async () => {
        await redis.stop();
        await spentMore();
        await redis.start();
      },
    },
    {
      what: 'Redis says nothing, and an instance is killed',
      happens: async () => {
        redis.pause();
        await world.kill(one);
        await spentMore();
        redis.resume();
        await world.restart(one);
      },
    },
  ];
}

/** The ledger is whole, and says of each call what the upstream counted, unless a kill cut it. */
async function assertLedger(world: Money): Promise<void> {
  for (const { instance } of world.seats) {
    assert.ok(instance.running, instance.log);
    assert.ok(!instance.log.includes(redisPassword), instance.log);
  }
  const rows = await world.query(`SELECT user_name, cost::float8 AS cost, error, outcome,
    reserved::float8 AS reserved FROM calls`);
  const final = new Map<string, number>();
  for (const row of rows) {
    if (row['error'] === 'interrupted' || row['user_name'] === null) continue;
    final.set(String(row['user_name']), Number(row['cost'] ?? 0));
  }
  /** Tokens by group: of calls that a kill cut, and of all. */
  const cut = new Map<string, number>();
  for (const [id, tokens] of world.counted) {
    const cost = final.get(id);
    if (cost !== undefined) assert.equal(cost, tokens * nanodollarsOfToken, id);
    const [name = ''] = id.split(' ');
    if (cost === undefined) cut.set(name, (cut.get(name) ?? 0) + maxTokens - tokens);
  }
  for (const [id, tokens] of world.unanswered) {
    const [name = ''] = id.split(' ');
    if (!world.counted.has(id)) cut.set(name, (cut.get(name) ?? 0) + tokens);
  }
  for (const { name, budgets } of world.groups) {
    const counted = world.tokens.get(name) ?? 0;
    assert.ok(counted * nanodollarsOfToken <= dollar, `${name}: ${counted} tokens`);
    const held = (counted + (cut.get(name) ?? 0)) * nanodollarsOfToken;
    assert.ok(held >= 0.99 * dollar, `${name}: ${held} spent, or held by calls that a kill cut`);
    for (const { counter, rows: where } of budgets) {
      const [row] = await world.query(`SELECT
        (SELECT sum(nanodollars) FROM spending WHERE counter = '${counter}')::float8 AS spent,
        (SELECT sum(cost) FROM calls WHERE ${where})::float8 AS cost,
        (SELECT coalesce(sum(amount), 0) FROM budget_leases WHERE counter = '${counter}')::float8 AS leased`);
      const spent = Number(row?.['spent']);
      assert.equal(Number(row?.['cost']), spent, `${counter}: rows and spending`);
      assert.ok(spent > dollar - nanodollarsOfToken && spent <= dollar, `${counter}: ${spent}`);
      assert.ok(Number(row?.['leased']) <= dollar - spent);
    }
  }
}

await withPostgres((postgres) => {
  describe('budgets on three gateways', () => money(postgres));
});
await withPostgresAndRedis((postgres, redis) => {
  describe('budgets on three gateways, rates in Redis', () => money(postgres, redis));
});
