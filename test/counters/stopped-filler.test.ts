/** A gateway that stands still while it fills Redis holds nobody up, and spoils nothing when it goes on (Q1, F89). */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { StoreError } from '../../src/store/store-error.ts';
import { HaltingProxy } from '../support/halting-proxy.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { redisPassword, type TestRedis } from '../support/redis.ts';
import { withPostgresAndRedis } from '../support/with-servers.ts';
import { openRedisRig } from './redis-rig.ts';
import { fresh } from './rig.ts';
import { answered, balanceOf, limit, openGateway, paying, spendSome } from './shared-rig.ts';

/** More than are loaded at once, so that the filler stands between two parts. */
const budgets = 250;

function startFiller(values: readonly string[]): { child: ChildProcess; said: Promise<string> } {
  const path = new URL('filler.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...values], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()));
  return { child, said: once(child, 'close').then(() => text) };
}

function suite(postgres: TestPostgres, redis: TestRedis): void {
  test('Q1 F89: who stands still in the middle of filling loses the row, and its epoch counts for nobody', async () => {
    const url = await postgres.makeDatabase();
    const at = { redis, url, tenant: fresh('t') };
    const counter = fresh('b');
    const first = await openGateway(at);
    await spendSome(first, { counter, budgets });
    await first.close();
    await redis.command('FLUSHALL');

    // What the script says that loads a part; INFO has the word, too.
    const proxy = await HaltingProxy.start(redis.port, '$6\r\nloaded');
    const way = `redis://:${redisPassword}@127.0.0.1:${proxy.port}/0`;
    const { child, said } = startFiller([url, way, at.tenant, counter, String(limit / 4)]);
    try {
      await proxy.halted;
      child.kill('SIGSTOP');

      const other = await openGateway(at);
      try {
        assert.equal(await answered(other, () => paying(counter, limit / 2)), 'granted');
        assert.equal(await answered(other, () => paying(counter, limit / 4)), 'granted');
        assert.equal(await answered(other, () => paying(counter, 1)), 'budget');

        child.kill('SIGCONT');
        proxy.goOn();
        assert.equal(await said, 'budget', 'it counts with the others');
        const full = { settled: limit / 4, open: (limit * 3) / 4 };
        assert.deepEqual(await balanceOf(other, counter), full);
        assert.equal(await answered(other, () => paying(counter, 1)), 'budget');
      } finally {
        await other.close();
      }
    } finally {
      child.kill('SIGKILL');
      await proxy.close();
    }
  });

  test('Q1: whoever begins to fill overtakes who was at it, at each of its steps', async () => {
    const rig = await openRedisRig(redis);
    try {
      const { filling } = rig.counters;
      const goesOn = (): Promise<void> => Promise.resolve();
      const settled = [{ name: 'b|ever', nanodollars: 1, endsAt: undefined }];
      const contents = { settled, open: [] };
      const { epoch: there } = await rig.counters.present();
      const overtaken = (error: unknown): boolean => error instanceof StoreError;

      await filling.begin('2.one.run', there);
      await filling.begin('2.other.run', undefined);
      await assert.rejects(filling.fill('2.one.run', contents, goesOn), overtaken);
      await assert.rejects(filling.end('2.one.run'), overtaken);
      await filling.fill('2.other.run', contents, goesOn);
      await assert.rejects(filling.end('2.one.run'), overtaken);
      await filling.end('2.other.run');
      await assert.rejects(filling.end('2.one.run'), overtaken);
      await assert.rejects(filling.begin('2.one.run', undefined), overtaken);
      await assert.rejects(filling.begin('2.one.run', there), overtaken);
      assert.equal((await rig.counters.present()).epoch, '2.other.run');
    } finally {
      await rig.close();
    }
  });
}

await withPostgresAndRedis(suite);
