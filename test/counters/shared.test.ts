/** Several gateways on real servers: budgets leased from PostgreSQL, rates in Redis, whatever becomes of either. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { BudgetLeases } from '../../src/store/leases/budget-leases.ts';
import { deadNumber } from '../../src/store/leases/lease-expiry.ts';
import type { SeenInstance } from '../../src/store/leases/lease-home.ts';
import type { ReserveRequest } from '../../src/store/counters/counters.ts';
import { until } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import type { TestRedis } from '../support/redis.ts';
import { withPostgresAndRedis } from '../support/with-servers.ts';
import { costing } from '../store/rows.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { requestOf, fresh } from './rig.ts';
import { answered, limit, openGateway, outcome, paying, type Gateway } from './shared-rig.ts';

function suite(postgres: TestPostgres, redis: TestRedis): void {
  const all: Gateway[] = [];
  const open = async (
    count: number,
    more: { readonly onStoreLoss?: 'open' } = {},
  ): Promise<readonly Gateway[]> => {
    const at = { redis, url: await postgres.makeDatabase(), tenant: fresh('t') };
    for (let i = 0; i < count; i++) all.push(await openGateway(at, more));
    return all;
  };
  afterEach(async () => {
    for (const each of all.splice(0)) await each.close();
  });

  const leased = async (url: string): Promise<number> => {
    const [row] = await postgres.query(
      'SELECT coalesce(sum(amount), 0)::float8 AS n FROM budget_leases',
      url,
    );
    return Number(row?.['n']);
  };
  /** The row of a call as the gateway that served it writes it. */
  const book = (
    { store, budgets }: { store: Gateway['store']; budgets: BudgetLeases },
    request: ReserveRequest,
    cost: number,
  ): Promise<void> => {
    const windows = request.budgets.map(({ counter, window }) => ({
      counter,
      window,
      lease: budgets.instance,
    }));
    return store.store.calls.record([
      callRow(request.callId, { budgets: windows, ...costing(cost) }),
    ]);
  };

  test('Q1: what is free in the lease of one gateway is given back when another one needs it', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = fresh('b');
    const first = paying(counter, limit * 0.4);
    assert.equal(await outcome(one, first), 'granted');
    assert.ok((await leased(one.url)) > limit * 0.4, 'a slice besides');
    assert.equal(await outcome(two, paying(counter, limit * 0.6 + 1)), 'budget');
    const rest = paying(counter, limit * 0.6);
    assert.equal(await outcome(two, rest), 'granted');
    assert.equal(await outcome(one, paying(counter, 1)), 'budget');
    one.counters.settle(first.callId, { tokens: 0, nanodollars: limit * 0.1 });
    assert.equal(await outcome(two, paying(counter, limit * 0.3)), 'granted');
    assert.equal(await leased(one.url), limit);
  });

  test('Q1: a lease that another instance needs is given back although the notice was lost', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = fresh('b');
    const first = paying(counter, limit * 0.9);
    assert.equal(await outcome(one, first), 'granted');
    one.counters.settle(first.callId, { tokens: 0, nanodollars: 0 });
    one.store.store.onAsked(() => undefined);
    assert.equal(await outcome(two, paying(counter, limit)), 'granted');
  });

  test('Q1 Q2: the transaction that writes the row of a call takes its cost off the lease', async () => {
    const [one] = await open(1);
    assert.ok(one);
    const counter = fresh('b');
    const request = paying(counter, limit);
    assert.equal(await outcome(one, request), 'granted');
    one.counters.settle(request.callId, { tokens: 0, nanodollars: limit / 4 });
    assert.deepEqual(await one.counters.balance(counter, 'ever'), { settled: limit / 4, open: 0 });
    await book(one, request, limit / 4);
    assert.equal(await leased(one.url), (limit * 3) / 4);
    assert.deepEqual(await one.counters.balance(counter, 'ever'), { settled: limit / 4, open: 0 });
    assert.equal(await outcome(one, paying(counter, (limit * 3) / 4)), 'granted');
  });

  const totalCost = async ({ store }: Gateway): Promise<number> => {
    const sums = await store.store.calls.usage({ by: 'key', since: 0 });
    return sums.reduce((sum, { nanodollars }) => sum + (nanodollars ?? 0), 0);
  };
  const spent = async ({ store }: Gateway): Promise<number> =>
    (await store.store.calls.spent(0))[0]?.nanodollars ?? 0;
  const seenOf = async (gateway: Gateway): Promise<SeenInstance> => {
    const { instance } = gateway.budgets;
    const seen = (await gateway.store.store.instances()).find((each) => each.instance === instance);
    assert.ok(seen);
    return seen;
  };

  test('Q1: the lease of a dead gateway is booked as spent, until rows tell what was spent', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = `key:${fresh('k')}:ever`;
    const noted = paying(counter, limit * 0.2);
    assert.equal(await outcome(one, noted), 'granted');
    assert.equal(await outcome(one, paying(counter, limit * 0.3)), 'granted');
    await until(async () => (await leased(one.url)) >= limit * 0.5, 'the database knows of both');
    one.budgets.abandon();
    const lease = await leased(one.url);
    assert.ok(lease < limit * 0.75, `${lease}: little of it is free`);
    // Others settle a call by its last note, which says less than it may cost.
    const budgets = [{ counter, window: 'ever', lease: one.budgets.instance }];
    const reservedNanodollars = limit * 0.2;
    const row = callRow(noted.callId, {
      budgets,
      ...costing(limit * 0.05),
      error: 'interrupted',
      usageSource: 'estimated',
      reservedNanodollars,
    });
    await two.store.store.calls.open([{ row, seenAt: 0 }]);
    await two.store.store.calls.settleOrphans(Date.now());
    assert.equal(await leased(one.url), lease - limit * 0.05, 'the rest is held');
    const seen = await seenOf(one);
    const { store } = two.store;
    const early = { ...seen, number: seen.number - 1 };
    assert.equal(await store.expire(early), undefined, 'it has said something since');
    assert.equal(await store.expire(seen), lease - limit * 0.05);
    assert.equal(await store.expire(seen), undefined);
    assert.deepEqual([await spent(two), await leased(one.url)], [lease, 0]);
    assert.equal(await totalCost(two), lease, 'the ledger says the same');
    assert.equal(await outcome(two, paying(counter, limit - lease + 1)), 'budget');
    assert.equal(await outcome(two, paying(counter, limit - lease)), 'granted');
    const left = await leased(one.url);
    // The row that the dead gateway left on its disk.
    await store.calls.record([
      callRow(noted.callId, { budgets, ...costing(limit * 0.15), reservedNanodollars }),
    ]);
    assert.deepEqual([await spent(two), await totalCost(two)], [limit * 0.15, limit * 0.15]);
    assert.equal((await leased(one.url)) - left, lease - limit * 0.15, 'the rest is leased again');
  });

  for (const isEnded of [false, true]) {
    test(`Q1: what a dead gateway had not spent is given back by its journal${isEnded ? ', also where its leases were ended' : ''}`, async () => {
      const [one, two] = await open(2);
      assert.ok(one && two);
      const counter = `key:${fresh('k')}:ever`;
      const held = paying(counter, limit * 0.2);
      assert.equal(await outcome(one, held), 'granted');
      await until(async () => (await leased(one.url)) > limit * 0.2, 'it has a slice besides');
      const ended = paying(counter, 1000);
      assert.equal(await outcome(one, ended), 'granted');
      one.counters.settle(ended.callId, { tokens: 0, nanodollars: 10 });
      one.budgets.abandon();
      const seen = await seenOf(one);
      const { store } = two.store;
      // What it said last may still be on its way.
      const end = async (): Promise<boolean> =>
        (await store.expire(await seenOf(one))) !== undefined;
      if (isEnded) await until(end, 'its leases are ended');
      assert.ok((await store.giveBack(one.left())) > 0);
      assert.equal(await store.giveBack(one.left()), 0, 'once');
      assert.deepEqual([await leased(one.url), await spent(two)], [limit * 0.2 + 10, 0]);
      // What it sent last arrives now.
      const counted = { counter, window: 'ever', endsAt: undefined, limit, booked: 0, taken: 0 };
      const lease = { ...counted, amount: limit, free: limit, wanted: 0, refill: true, ask: false };
      const statement = { instance: one.budgets.instance, number: seen.number + 1, deaf: [] };
      for (const isKnown of [true, false]) {
        const late = await store.budgets.state({ ...statement, isKnown, leases: [lease] });
        assert.equal(late.code, 'late');
      }
      assert.equal(await outcome(two, paying(counter, limit * 0.8 - 9)), 'budget');
      assert.equal(await outcome(two, paying(counter, limit * 0.8 - 10)), 'granted');
      assert.equal(await store.expire({ ...seen, number: deadNumber }), limit * 0.2 + 10);
      assert.equal(await spent(two), limit * 0.2 + 10, 'what its calls held and spent');
    });
  }

  test('Q1: a gateway that returns after its leases were ended has them again', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = `key:${fresh('k')}:ever`;
    const request = paying(counter, limit * 0.2);
    assert.equal(await outcome(one, request), 'granted');
    let booked: number | undefined;
    await until(async () => {
      // Unless it has just said something.
      booked = await two.store.store.expire(await seenOf(one));
      return booked !== undefined;
    }, 'its leases are ended');
    assert.ok(Number(booked) >= limit * 0.2);
    await until(async () => (await spent(two)) === 0, 'it has turned that back');
    assert.ok((await leased(one.url)) >= limit * 0.2);
    assert.equal(await totalCost(two), 0);
    await book(one, request, limit * 0.1);
    one.counters.settle(request.callId, { tokens: 0, nanodollars: limit * 0.1 });
    one.counters.written([callRow(request.callId)]);
    assert.equal(await outcome(two, paying(counter, limit * 0.9 + 1)), 'budget');
    assert.equal(await outcome(two, paying(counter, limit * 0.9)), 'granted');
  });

  test('Q1: a gateway whose leases another process gave back reserves nothing, and asks no more than before', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = `key:${fresh('k')}:ever`;
    assert.equal(await outcome(one, paying(counter, limit * 0.2)), 'granted');
    await until(async () => (await leased(one.url)) > limit * 0.2, 'it has a slice besides');
    // On a disk that does not lock, a second process takes the first one for dead.
    await two.store.store.giveBack(one.left());
    await until(
      async () => (await outcome(one, paying(counter, 1))) === 'failed',
      'it knows that its leases are gone',
    );
    const before = one.statements();
    await pause(300);
    assert.ok(one.statements() - before < 5, 'it does not state without a pause');
    assert.equal(one.log.filter((line) => line.startsWith('leases_replaced ')).length, 1);
    assert.equal(await outcome(one, paying(counter, 1)), 'failed');
  });

  test('Q1: calls that could cost more than all budgets together fail no other call', async () => {
    const [one] = await open(1);
    assert.ok(one);
    const counter = fresh('b');
    // The database has no number for their sum.
    const requests = Array.from({ length: 1100 }, () => paying(counter, Number.MAX_SAFE_INTEGER));
    const ended = await Promise.all(
      [...requests, paying(counter, limit)].map((request) => outcome(one, request)),
    );
    assert.deepEqual([new Set(ended.slice(0, -1)), ended.at(-1)], [new Set(['budget']), 'granted']);
  });

  for (const onStoreLoss of ['closed', 'open'] as const) {
    test(`K2: PostgreSQL is away: calls continue until the lease is used up, then ${onStoreLoss}`, async () => {
      const [gateway] = await open(1, onStoreLoss === 'open' ? { onStoreLoss } : {});
      assert.ok(gateway);
      const counter = fresh('b');
      const big = (amount: number): ReserveRequest =>
        requestOf({
          budgets: [{ counter, window: 'ever', endsAt: undefined, nanodollars: 2560e9, amount }],
        });
      assert.equal(await outcome(gateway, big(0)), 'granted');
      assert.equal(await outcome(gateway, big(1)), 'granted');
      await postgres.stop('immediate');
      try {
        await until(() => !gateway.store.store.server.up, 'PostgreSQL is known to be away');
        // A slice of ten dollars.
        const outcomes = [];
        for (let i = 0; i < 23; i++) outcomes.push(await outcome(gateway, big(500_000_000)));
        const byLease = outcomes.indexOf('unavailable');
        if (onStoreLoss === 'closed') assert.ok(byLease >= 18, String(outcomes));
        else assert.deepEqual(new Set(outcomes), new Set(['granted', 'budget']));
        assert.equal(
          await outcome(gateway, requestOf({ requests: [{ counter, perMinute: 9 }] })),
          'granted',
        );
      } finally {
        await postgres.start();
      }
      await until(() => gateway.store.store.server.up, 'PostgreSQL is back');
      assert.equal(await answered(gateway, () => big(1)), 'granted');
    });
  }

  test('F89: Redis forgets everything: budgets do not notice, rates begin anew', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = fresh('b');
    const requests = [{ counter: fresh('r'), perMinute: 1 }];
    assert.equal(await outcome(one, paying(counter, limit * 0.6, { requests })), 'granted');
    assert.equal(await outcome(two, paying(counter, 1, { requests })), 'requests');
    await redis.command('FLUSHALL');
    assert.equal(await outcome(two, paying(counter, limit * 0.5, { requests })), 'budget');
    assert.equal(await outcome(two, paying(counter, limit * 0.4, { requests })), 'granted');
  });

  test('F89 K6: a reservation that Redis does not answer holds no money', async () => {
    const [gateway] = await open(1);
    assert.ok(gateway);
    const counter = fresh('b');
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    assert.equal(await outcome(gateway, paying(counter, limit, { concurrent })), 'granted');
    assert.equal(await outcome(gateway, paying(fresh('b'), limit, { concurrent })), 'concurrent');
    const other = fresh('b');
    assert.equal(await outcome(gateway, paying(other, limit, { concurrent })), 'concurrent');
    assert.equal(await outcome(gateway, paying(other, limit)), 'granted');
  });

  for (const loss of ['is stopped', 'takes nothing'] as const) {
    test(`F91: Redis ${loss}: each gateway enforces its share of a rate, budgets continue`, async () => {
      const gateways = await open(2);
      const [one, two] = gateways;
      assert.ok(one && two);
      // One look of each that Redis answers in time is enough; a busy machine may need more than one for it.
      for (let turn = 0; turn < 10; turn++) for (const { rates } of gateways) await rates.look();
      if (loss === 'is stopped') redis.pause();
      else assert.equal(await redis.command('CONFIG', 'SET', 'maxmemory', '1'), '+OK');
      try {
        const requests = [{ counter: fresh('r'), perMinute: 10 }];
        const counter = fresh('b');
        const granted = [0, 0];
        for (const [i, gateway] of gateways.entries()) {
          for (let n = 0; n < 8; n++) {
            const ended = await outcome(gateway, paying(counter, limit / 100, { requests }));
            if (ended === 'granted') granted[i] = (granted[i] ?? 0) + 1;
          }
        }
        assert.deepEqual(granted, [5, 5]);
      } finally {
        redis.resume();
        await redis.command('CONFIG', 'SET', 'maxmemory', '0');
      }
      await until(() => gateways.every(({ rates }) => rates.counts), 'Redis counts again');
    });
  }

  test('Q1: leases under load on three gateways, with rows written late: never more than the budget', async () => {
    const gateways = await open(3);
    const counter = fresh('b');
    let spent = 0;
    const caller = async (gateway: Gateway, i: number): Promise<void> => {
      for (let n = 0; n < 40; n++) {
        const request = paying(counter, limit / 50);
        if ((await outcome(gateway, request)) !== 'granted') {
          await pause(2);
          continue;
        }
        const cost = Math.floor((limit / 50) * (((i + n) % 7) / 10));
        spent += cost;
        await pause((i * n) % 5);
        gateway.counters.settle(request.callId, { tokens: 0, nanodollars: cost });
        if (cost > 0) await book(gateway, request, cost);
      }
    };
    const watching = (async () => {
      for (let n = 0; n < 50; n++) {
        const [row] = await postgres.query(
          `SELECT (SELECT coalesce(sum(amount), 0) FROM budget_leases)::float8
            + (SELECT coalesce(sum(nanodollars), 0) FROM spending)::float8 AS n`,
          gateways[0]?.url,
        );
        assert.ok(Number(row?.['n']) <= limit, `${row?.['n']} leased and spent`);
        await pause(10);
      }
    })();
    await Promise.all(
      gateways.flatMap((gateway) => Array.from({ length: 5 }, (_, i) => caller(gateway, i))),
    );
    await watching;
    const [one] = gateways;
    assert.ok(one);
    assert.ok(spent <= limit);
    assert.equal((await one.store.store.calls.spent(0))[0]?.nanodollars, spent);
    if (spent === limit) return;
    assert.equal(await outcome(one, paying(counter, limit - spent + 1)), 'budget');
    // Others may take longer than a call waits to say what is free there.
    await until(
      async () => (await outcome(one, paying(counter, limit - spent))) === 'granted',
      'the rest can be spent',
    );
  });
}

await withPostgresAndRedis(suite);
