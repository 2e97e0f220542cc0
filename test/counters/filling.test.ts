/** What fills a new epoch in Redis, and what a fill that failed leaves there (Q1, F89). */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { RedisClient } from '../../src/store/redis-client.ts';
import { drawArguments } from '../../src/store/redis-draw.ts';
import { EpochFill } from '../../src/store/redis-fill.ts';
import { Script } from '../../src/store/redis-run.ts';
import { counterScripts, serverTime } from '../../src/store/redis-script.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { HaltingProxy } from '../support/halting-proxy.ts';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { noRedis, redisPassword, startRedis, type TestRedis } from '../support/redis.ts';
import { openRedisRig } from './redis-rig.ts';
import { fresh } from './rig.ts';
import { answered, openGateway, paying, spendSome } from './shared-rig.ts';

const budgets = 250;
const nothing = (): Promise<void> => Promise.resolve();

async function epochKeys(client: RedisClient, prefix: string, epoch: string): Promise<number> {
  return (await client.keys(`${prefix}${epoch}:*`)).length;
}

function redisSuite(redis: TestRedis): void {
  test('F89: what running calls hold is sent in parts, and between them the row is held on to', async () => {
    const rig = await openRedisRig(redis);
    try {
      const { client } = rig;
      const { prefix } = rig.counters;
      const key = `${prefix}epoch`;
      const script = new Script(client, counterScripts(serverTime).draw);
      let [onTheirWay, together, sinceHeldOn] = [0, 0, 0];
      const filling = new EpochFill({
        client,
        key,
        prefix,
        now: () => rig.counters.wall(),
        take: async (draw, epoch) => {
          onTheirWay += 1;
          sinceHeldOn += 1;
          assert.ok(sinceHeldOn <= 50, 'not many between two signs of life');
          together = Math.max(together, onTheirWay);
          const about = { prefix, epoch, force: true, now: rig.counters.wall() };
          const answer = await script.run(key, drawArguments(draw, about));
          onTheirWay -= 1;
          return answer;
        },
      });
      const { epoch: there } = await rig.counters.present();
      const open = Array.from({ length: 420 }, () => paying('b', 3));
      const contents = { settled: [], open };
      await filling.begin('2.one.run', there);
      await filling.fill('2.one.run', contents, () => {
        assert.equal(onTheirWay, 0);
        sinceHeldOn = 0;
        return Promise.resolve();
      });
      assert.equal(together, 50);
      assert.equal(await client.hget(`${prefix}2.one.run:b:b|ever`, 'o'), String(3 * 420));

      await filling.begin('2.other.run', undefined);
      const overtaken = (error: unknown): boolean => error instanceof StoreError;
      sinceHeldOn = 0;
      await assert.rejects(filling.fill('2.one.run', contents, nothing), overtaken);
    } finally {
      await rig.close();
    }
  });

  test('F89: of a fill that goes no further nothing stays, and it never begins; one that counts stays', async () => {
    const rig = await openRedisRig(redis);
    try {
      const { filling, prefix } = rig.counters;
      const settled = Array.from({ length: 450 }, (_, i) => ({
        name: `b${i}|ever`,
        nanodollars: 1,
        endsAt: undefined,
      }));
      const contents = { settled, open: [paying('b0', 1), paying('other', 1)] };
      const { epoch: there } = await rig.counters.present();

      await filling.begin('2.one.run', there);
      await filling.fill('2.one.run', contents, nothing);
      // Its counters, that of the second call, what the two hold, and their leases.
      assert.equal(await epochKeys(rig.client, prefix, '2.one.run'), 450 + 1 + 2 + 1);
      await filling.drop('2.one.run', contents);
      assert.equal(await epochKeys(rig.client, prefix, '2.one.run'), 0);
      await assert.rejects(filling.fill('2.one.run', contents, nothing), StoreError);
      await assert.rejects(filling.end('2.one.run'), StoreError);

      await filling.begin('2.two.run', undefined);
      await filling.fill('2.two.run', contents, nothing);
      await filling.drop('2.one.run', contents);
      await filling.end('2.two.run');
      await filling.drop('2.two.run', contents);
      assert.equal((await rig.counters.present()).epoch, '2.two.run');
      assert.equal(await epochKeys(rig.client, prefix, '2.two.run'), 450 + 1 + 2 + 1);
    } finally {
      await rig.close();
    }
  });
}

function suite(postgres: TestPostgres, redis: TestRedis): void {
  test('F89: behind a fill that failed Redis keeps the counters of one epoch only', async () => {
    const url = await postgres.makeDatabase();
    const at = { redis, url, tenant: fresh('t') };
    const prefix = `gw:{${at.tenant}}:`;
    const counter = fresh('b');
    const first = await openGateway(at);
    await spendSome(first, { counter, budgets });
    await redis.command('FLUSHALL');
    assert.equal(await answered(first, () => paying(counter, 1)), 'granted');
    const before = await first.client.get(`${prefix}epoch`);
    assert.equal((await first.client.keys(`${prefix}${before}:b:*`)).length, budgets);
    await first.close();
    await postgres.query('UPDATE counter_mode SET asked = epoch + 1', url);

    const proxy = await HaltingProxy.start(redis.port, '$6\r\nloaded');
    const way = `redis://:${redisPassword}@127.0.0.1:${proxy.port}/0`;
    const opening = openGateway({ ...at, redis: { url: way } });
    try {
      await proxy.halted;
      const other = await openGateway(at);
      try {
        assert.equal(await answered(other, () => paying(counter, 1)), 'granted');
        const counting = await other.client.get(`${prefix}epoch`);
        assert.notEqual(counting, before);
        proxy.goOn();
        await opening;
        const kept = async (): Promise<readonly string[]> => {
          const keys = await other.client.keys(`${prefix}*:b:*`);
          const left = await Promise.all(keys.map((key) => other.client.pttl(key)));
          return keys.filter((_, i) => Number(left[i]) > 60_000);
        };
        await until(async () => (await kept()).length === budgets, 'the rest goes');
        for (const key of await kept()) assert.ok(key.startsWith(`${prefix}${counting}:`), key);
        const names = (await other.client.keys(`${prefix}*:b:*`)).map((key) => key.split(':')[2]);
        const known = [before, counting];
        assert.deepEqual(
          [...new Set(names)].filter((name) => !known.includes(name ?? null)),
          [],
          'nothing of the fill that failed',
        );
      } finally {
        await other.close();
      }
    } finally {
      proxy.goOn();
      await (await opening).close();
      await proxy.close();
    }
  });
}

const postgres = await startPostgres();
const redis = await startRedis();
after(async () => {
  await redis?.close();
  await postgres?.close();
});
if (postgres === undefined) test(noPostgres, () => {});
if (redis === undefined) test(noRedis, () => {});
if (redis !== undefined) redisSuite(redis);
if (postgres !== undefined && redis !== undefined) suite(postgres, redis);
