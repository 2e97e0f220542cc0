/**
 * Counters on a real server under a tenant of their own; the server's time is what the test says. Budgets are leased
 * from a database in memory.
 */
import { readRedis } from '../../src/config/storage.ts';
import { BudgetLeases } from '../../src/store/leases/budget-leases.ts';
import { openRedis, type RedisClient } from '../../src/store/counters/redis-client.ts';
import { RedisCounters } from '../../src/store/counters/redis-counters.ts';
import { SharedCounters } from '../../src/store/counters/shared-counters.ts';
import { LeaseDatabase } from '../simulation/lease-database.ts';
import type { TestRedis } from '../support/redis.ts';
import { until } from '../support/postgres-store.ts';
import { HeldClock, silentLog } from '../unit/access/fakes.ts';
import { fresh, type Rig } from './rig.ts';

export interface RedisRig extends Rig {
  readonly redis: RedisCounters;
  readonly client: RedisClient;
}

export async function openTestRedis(server: Pick<TestRedis, 'url'>): Promise<RedisClient> {
  const address = readRedis(server.url, {
    directory: '/',
    complain: (message) => {
      throw new Error(message);
    },
  });
  if (address === undefined) throw new Error('no address');
  const client = await openRedis(address, Math.random);
  await until(() => client.status === 'ready', 'Redis answers');
  return client;
}

export async function openRedisRig(server: TestRedis): Promise<RedisRig> {
  const client = await openTestRedis(server);
  const clock = new HeldClock();
  const log = silentLog;
  const tenant = fresh('tenant');
  const prefix = `gw:{${tenant}}:`;
  const setTime = (): Promise<unknown> => client.set(`${prefix}test-time`, clock.wall());
  await setTime();
  const redis = new RedisCounters({
    client,
    tenant,
    clock,
    log,
    // The machine of the tests may be busy; how long a reservation waits is tested with shared counters.
    patienceMs: 10_000,
    time: `local now = tonumber(redis.call('GET', '${prefix}test-time'))`,
  });
  await redis.renew();
  const database = new LeaseDatabase({ clock, notify: () => {}, changed: () => {} });
  const home = {
    state: async (...[statement]: Parameters<LeaseDatabase['state']>) => database.state(statement),
    revive: async (instance: string) => database.revive(instance),
    balance: async (_instance: string, counter: string, window: string) => ({
      settled: database.spent(`${counter}|${window}`),
      open: 0,
    }),
  };
  const budgets = new BudgetLeases({ home, instance: fresh('gw_'), clock, log: silentLog });
  const counters = new SharedCounters({ rates: redis, budgets, clock, log, onStoreLoss: 'closed' });
  return {
    counters,
    redis,
    client,
    pass: async (ms) => {
      clock.time += ms;
      await setTime();
    },
    settled: () => redis.settled(),
    close: async () => {
      await counters.close();
      client.disconnect();
    },
  };
}
