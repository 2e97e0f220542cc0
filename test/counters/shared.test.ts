/** Several gateways' counters on real servers that are stopped, emptied and started again (F89, F91). */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Draw } from '../../src/store/counters.ts';
import { slowMs } from '../../src/store/redis-counters.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { HaltingProxy } from '../support/halting-proxy.ts';
import { until } from '../support/postgres-store.ts';
import type { TestRedis } from '../support/redis.ts';
import { withPostgresAndRedis } from '../support/with-servers.ts';
import { costing } from '../store/rows.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { drawOf, fresh } from './rig.ts';
import {
  answered,
  balanceOf,
  limit,
  openGateway,
  outcome,
  paying,
  type Gateway,
} from './shared-rig.ts';

function suite(postgres: TestPostgres, redis: TestRedis): void {
  const all: Gateway[] = [];
  const open = async (count: number, more = {}): Promise<readonly Gateway[]> => {
    const at = { redis, url: await postgres.makeDatabase(), tenant: fresh('t') };
    const gateways: Gateway[] = [];
    for (let i = 0; i < count; i++) gateways.push(await openGateway(at, more));
    all.push(...gateways);
    return gateways;
  };
  afterEach(async () => {
    for (const each of all.splice(0)) await each.close();
  });

  test('K3: several gateways count together', async () => {
    const gateways = await open(3);
    const counter = fresh('b');
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        const gateway = gateways[i % 3];
        assert.ok(gateway);
        return answered(gateway, () => paying(counter, limit / 10));
      }),
    );
    assert.equal(outcomes.filter((each) => each === 'granted').length, 10);
  });

  test('F89: an emptied Redis is filled from what runs and what was booked, before it admits', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = fresh('b');
    const running = paying(counter, limit / 2);
    assert.equal(await answered(one, () => running), 'granted');
    await redis.command('FLUSHALL');
    assert.equal(await answered(one, () => paying(counter, limit * 0.6)), 'budget');
    assert.equal(await answered(two, () => paying(counter, limit * 0.6)), 'budget');
    one.counters.settle(running.callId, { tokens: 0, nanodollars: 100 });
    await until(async () => (await balanceOf(one, counter)).settled === 100, 'settled');
    assert.equal(await answered(two, () => paying(counter, limit * 0.6)), 'granted');
  });

  test('F89, Q1: of what another gateway holds the new epoch knows, though nobody has noted it', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const counter = fresh('b');
    for (const callId of [fresh('call_'), fresh('call_')]) {
      assert.equal(await answered(one, () => paying(counter, limit / 4, { callId })), 'granted');
    }
    await redis.command('FLUSHALL');
    // Only the other one asks.
    assert.equal(await answered(two, () => paying(counter, limit * 0.6)), 'budget');
    assert.equal(await answered(two, () => paying(counter, limit * 0.5)), 'granted');
  });

  test('F88: a book that answers late for a second refuses nobody whom Redis counts', async () => {
    const [gateway] = await open(1);
    assert.ok(gateway);
    const counter = fresh('b');
    const steps = ['LOCK TABLE counter_mode IN ACCESS EXCLUSIVE MODE', 'SELECT pg_sleep(1)'];
    const late = postgres.query(['BEGIN', ...steps, 'COMMIT'].join('; '), gateway.url);
    const refused: string[] = [];
    for (const end = performance.now() + 1200; performance.now() < end;) {
      await gateway.counters.draw(paying(counter, 1)).catch((error: unknown) => {
        refused.push(String(error));
      });
      await pause(20);
    }
    await late;
    // A machine at its end may answer late for Redis: that is another reason.
    const unknown = refused.filter((reason) => reason.includes('not known'));
    assert.deepEqual(unknown, []);
  });

  test('F89: an answer that waits for this process is no late one', async () => {
    const [gateway] = await open(1);
    assert.ok(gateway);
    // A Redis that does not know the script yet answers that, and is asked once more.
    assert.equal(await answered(gateway, () => paying(fresh('b'), 1)), 'granted');
    const draw = gateway.counters.draw(paying(fresh('b'), 1));
    // It goes out at the end of a turn, and is answered while this process does something else.
    for (let turn = 0; turn < 2; turn++) await nextTurn();
    const end = performance.now() + 3 * slowMs;
    while (performance.now() < end);
    assert.equal((await draw).granted, true);
  });

  test('Q1 F88: who reads late where budgets were counted, and seemed dead meanwhile, grants nothing', async () => {
    const at = { url: await postgres.makeDatabase(), tenant: fresh('t') };
    const book = await HaltingProxy.start(postgres.port, 'halted by the test alone');
    const counting = await HaltingProxy.start(redis.port, 'halted by the test alone');
    try {
      const near = { ...at, redis, url: at.url.replace(`:${postgres.port}/`, `:${book.port}/`) };
      const one = await openGateway(near);
      all.push(one);
      const redisUrl = redis.url.replace(`:${redis.port}/`, `:${counting.port}/`);
      const two = await openGateway({ ...at, redis: { url: redisUrl } });
      all.push(two);
      const counter = fresh('b');
      assert.equal(await outcome(one, paying(counter, 1)), 'granted');
      book.halt();
      // By then the next look has its answer from PostgreSQL, and waits for it.
      await pause(600);
      counting.halt();
      assert.equal(await answered(two, () => paying(counter, limit / 2)), 'granted');
      assert.equal(two.counters.place, 'postgres');
      book.goOn();
      const granted: number[] = [];
      for (let tries = 0; tries < 100; tries++) {
        if ((await outcome(one, paying(counter, limit * 0.6))) === 'granted') granted.push(tries);
        await pause(5);
      }
      assert.deepEqual(granted, []);
    } finally {
      counting.goOn();
      for (const each of all.splice(0)) await each.close();
      await book.close();
      await counting.close();
    }
  });

  for (const loss of ['forgets', 'is away'] as const) {
    test(`F89, Q1: Redis ${loss}: what was spent and is not booked yet counts, and counts once`, async () => {
      const [one, two] = await open(2);
      assert.ok(one && two);
      const counter = fresh('b');
      const ended = paying(counter, limit * 0.7);
      assert.equal(await answered(one, () => ended), 'granted');
      one.counters.settle(ended.callId, { tokens: 0, nanodollars: limit * 0.6 });
      await until(async () => (await balanceOf(one, counter)).open === 0, 'settled');
      if (loss === 'forgets') await redis.command('FLUSHALL');
      else redis.pause();
      try {
        assert.equal(await answered(two, () => paying(counter, limit * 0.5)), 'budget');
        const row = callRow(ended.callId, {
          budgets: [{ counter, window: 'ever' }],
          ...costing(limit * 0.6),
        });
        await one.store.store.recordCalls([row]);
        one.counters.written([row]);
        const holds = `SELECT 1 FROM counter_holds WHERE name LIKE 'b:%'`;
        await until(async () => (await postgres.query(holds, one.url)).length === 0, 'booked');
        assert.equal(await answered(two, () => paying(counter, limit * 0.5)), 'budget');
        assert.equal(await answered(two, () => paying(counter, limit * 0.4)), 'granted');
      } finally {
        redis.resume();
      }
      await until(() => two.counters.place === 'redis', 'Redis counts again');
      assert.deepEqual(await balanceOf(two, counter), {
        settled: limit * 0.6,
        open: limit * 0.4,
      });
    });
  }

  for (const loss of ['forgets', 'is away'] as const) {
    test(`Q1 Q2: Redis ${loss}: thousands of running calls are told in parts, while half of them end`, async () => {
      const [one, two] = await open(2);
      assert.ok(one && two);
      const counter = fresh('b');
      // More than two parts; together they hold half of the budget.
      const count = 2500;
      const amount = limit / 2 / count;
      const running: string[] = [];
      const numbers = Array.from({ length: count }).values();
      const caller = async (): Promise<void> => {
        for (const _ of numbers) {
          // One that was answered late is given back, so that its name is used up.
          let callId = '';
          const draw = (): Draw => paying(counter, amount, { callId: (callId = fresh('call_')) });
          assert.equal(await answered(one, draw), 'granted');
          running.push(callId);
        }
      };
      await Promise.all(Array.from({ length: 20 }, caller));
      if (loss === 'forgets') await redis.command('FLUSHALL');
      else redis.pause();
      try {
        const tooMuch = answered(two, () => paying(counter, limit * 0.51));
        // They end all the time that the others are told.
        const ended = count / 2;
        for (let at = 0; at < ended; at += 50) {
          for (const callId of running.slice(at, at + 50)) {
            one.counters.settle(callId, { tokens: 0, nanodollars: amount });
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.equal(await tooMuch, 'budget', 'what ended was spent, the rest is held');
        for (const callId of running.slice(ended)) {
          one.counters.settle(callId, { tokens: 0, nanodollars: 0 });
        }
        const spent = ended * amount;
        await until(async () => {
          const { settled, open: held } = await balanceOf(two, counter);
          return settled === spent && held === 0;
        }, 'nothing of it is held any more');
        assert.equal(await answered(two, () => paying(counter, limit - spent + 1)), 'budget');
        assert.equal(await answered(two, () => paying(counter, limit - spent)), 'granted');
      } finally {
        redis.resume();
      }
    });
  }

  test('F89: a draw that Redis finds on a broken connection when it goes on holds nothing', async () => {
    const [gateway] = await open(1);
    assert.ok(gateway);
    const { counters, client } = gateway;
    const counter = fresh('b');
    assert.equal(await answered(gateway, () => paying(counter, limit * 0.1)), 'granted');
    redis.pause();
    try {
      const late = outcome(gateway, paying(counter, limit * 0.2));
      // It is on its way before the connection breaks.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      client.disconnect(true);
      assert.equal(await late, 'unavailable');
    } finally {
      redis.resume();
    }
    // While it is connected again nobody says.
    const held = async (): Promise<number | undefined> =>
      (await counters.balance(counter, 'ever').catch(() => undefined))?.open;
    await until(async () => (await held()) === limit * 0.1, 'it is given back');
    // A later one would have come behind the draw.
    assert.equal(await answered(gateway, () => paying(counter, limit * 0.9)), 'granted');
  });

  test('F89: a gateway that died is not waited for longer than its signs of life last', async () => {
    const [one, two] = await open(2);
    assert.ok(one && two);
    const dead = `INSERT INTO counter_gateways
      SELECT tenant, 'dead', 0, counter_now() - 4000 FROM counter_gateways LIMIT 1`;
    await postgres.query(dead, one.url);
    await redis.command('FLUSHALL');
    const counter = fresh('b');
    assert.equal(await answered(one, () => paying(counter, limit)), 'granted');
    const living = "SELECT 1 FROM counter_gateways WHERE gateway <> 'dead'";
    await two.counters.close();
    assert.equal((await postgres.query(living, one.url)).length, 1, 'who closed is not waited for');
  });

  test('F89, Q1: a stopped Redis: budgets move to PostgreSQL with all that runs, and back', async () => {
    const gateways = await open(2);
    const [one, two] = gateways;
    assert.ok(one && two);
    const counter = fresh('b');
    const running = paying(counter, limit * 0.4);
    assert.equal(await answered(one, () => running), 'granted');
    redis.pause();
    try {
      const early = paying(counter, limit * 0.1);
      const first = await outcome(two, early);
      // Where this process stood still meanwhile, all may have been told by now.
      if (two.counters.place === 'redis') assert.equal(first, 'unavailable');
      else two.counters.settle(early.callId, { tokens: 0, nanodollars: 0 });
      assert.equal(await answered(two, () => paying(counter, limit * 0.7)), 'budget');
      const second = paying(counter, limit * 0.5);
      assert.equal(await answered(two, () => second), 'granted');
      assert.equal(await answered(one, () => paying(counter, limit * 0.2)), 'budget');
      one.counters.settle(running.callId, { tokens: 0, nanodollars: limit * 0.3 });
      await until(
        async () => (await balanceOf(one, counter)).settled === limit * 0.3,
        'settled in PostgreSQL',
      );
      assert.deepEqual(await balanceOf(two, counter), {
        settled: limit * 0.3,
        open: limit * 0.5,
      });
    } finally {
      redis.resume();
    }
    await until(
      () => gateways.every(({ counters }) => counters.place === 'redis'),
      'Redis counts again',
    );
    assert.deepEqual(await balanceOf(two, counter), {
      settled: limit * 0.3,
      open: limit * 0.5,
    });
    assert.equal(await answered(one, () => paying(counter, limit * 0.3)), 'budget');
    assert.equal(await answered(one, () => paying(counter, limit * 0.2)), 'granted');
    assert.ok(one.log.some((line) => line.startsWith('counters_moved {"to":"postgres"')));
  });

  test('Q1 F89: what runs is held in PostgreSQL before it grants, also where that failed at first', async () => {
    const [gateway] = await open(1);
    assert.ok(gateway);
    const { url } = gateway;
    const counter = fresh('b');
    assert.equal(await answered(gateway, () => paying(counter, 0.8 * limit)), 'granted');
    await postgres.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
          IF current_query() LIKE '%counter_draw%' THEN RETURN NULL; END IF;
          RAISE SQLSTATE '57014' USING MESSAGE = 'not now';
        END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON counter_holds FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
      url,
    );
    redis.pause();
    try {
      await until(() => gateway.counters.place === 'postgres', 'it has moved');
      assert.equal(await outcome(gateway, paying(counter, 0.8 * limit)), 'unavailable');
      await postgres.query('DROP TRIGGER refuse ON counter_holds', url);
      assert.equal(await answered(gateway, () => paying(counter, 0.8 * limit)), 'budget');
    } finally {
      redis.resume();
    }
  });

  test('F89: a Redis that answers and takes nothing is away too: PostgreSQL counts budgets', async () => {
    const gateways = await open(2);
    const [one, two] = gateways;
    assert.ok(one && two);
    const counter = fresh('b');
    assert.equal(await answered(one, () => paying(counter, limit * 0.4)), 'granted');
    assert.equal(await redis.command('CONFIG', 'SET', 'maxmemory', '1'), '+OK');
    try {
      assert.equal(await answered(two, () => paying(counter, limit * 0.7)), 'budget');
      assert.equal(await answered(one, () => paying(counter, limit * 0.5)), 'granted');
      assert.equal(two.counters.place, 'postgres');
    } finally {
      await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    }
    await until(
      () => gateways.every(({ counters }) => counters.place === 'redis'),
      'Redis counts again',
    );
    assert.equal(await answered(two, () => paying(counter, limit * 0.2)), 'budget');
    assert.equal(await answered(two, () => paying(counter, limit * 0.1)), 'granted');
  });

  test('F91: while Redis is away each gateway enforces its share of a rate', async () => {
    const gateways = await open(2);
    const [one, two] = gateways;
    assert.ok(one && two);
    // One look of each that Redis answers in time is enough; a busy machine may need more than one for it.
    for (let turn = 0; turn < 10; turn++) {
      for (const { counters } of gateways) await counters.look();
    }
    redis.pause();
    try {
      const requests = [{ counter: fresh('r'), perMinute: 10 }];
      const granted = [0, 0];
      for (const [i, gateway] of gateways.entries()) {
        for (let n = 0; n < 8; n++) {
          if ((await outcome(gateway, drawOf({ requests }))) === 'granted')
            granted[i] = (granted[i] ?? 0) + 1;
        }
      }
      assert.deepEqual(granted, [5, 5]);
    } finally {
      redis.resume();
    }
    await until(() => gateways.every(({ counters }) => counters.place === 'redis'), 'back');
  });

  for (const onStoreLoss of ['closed', 'open'] as const) {
    test(`K2: neither Redis nor PostgreSQL: ${onStoreLoss}`, async () => {
      const [gateway] = await open(1, onStoreLoss === 'open' ? { onStoreLoss } : {});
      assert.ok(gateway);
      const counter = fresh('b');
      const big = (amount: number): Draw =>
        drawOf({
          budgets: [{ counter, window: 'ever', endsAt: undefined, nanodollars: 9e12, amount }],
        });
      redis.pause();
      await postgres.stop('immediate');
      try {
        await until(() => !gateway.store.store.server.up, 'PostgreSQL is known to be away');
        const outcomes = [];
        for (let i = 0; i < 3; i++) outcomes.push(await outcome(gateway, big(500_000_000)));
        assert.deepEqual(
          outcomes,
          onStoreLoss === 'open'
            ? ['granted', 'granted', 'budget']
            : ['unavailable', 'unavailable', 'unavailable'],
        );
        assert.equal(
          await outcome(gateway, drawOf({ requests: [{ counter, perMinute: 9 }] })),
          'granted',
        );
      } finally {
        redis.resume();
        await postgres.start();
      }
      await until(() => gateway.store.store.server.up, 'PostgreSQL is back');
      assert.equal(await answered(gateway, () => big(1)), 'granted');
    });
  }
}

await withPostgresAndRedis(suite);
