/** Counters on a real server under a tenant of their own; the server's time is what the test says. */
import { readRedis } from '../../src/config/server-address.ts';
import { openRedis, type RedisClient } from '../../src/store/redis-client.ts';
import { RedisCounters } from '../../src/store/redis-counters.ts';
import type { TestRedis } from '../support/redis.ts';
import { until } from '../support/postgres-store.ts';
import { HeldClock, silentLog } from '../unit/access/parts.ts';
import { fresh, type Rig } from './rig.ts';

export interface RedisRig extends Rig {
  readonly counters: RedisCounters;
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

/** @param named told with each asking for the epoch, before it is answered. */
export async function openRedisRig(
  server: TestRedis,
  named: (counters: RedisCounters) => void = () => {},
): Promise<RedisRig> {
  const client = await openTestRedis(server);
  const clock = new HeldClock();
  const tenant = fresh('tenant');
  const prefix = `gw:{${tenant}}:`;
  const setTime = (): Promise<unknown> => client.set(`${prefix}test-time`, clock.wall());
  await setTime();
  const counters: RedisCounters = new RedisCounters({
    client,
    tenant,
    clock,
    log: silentLog,
    // The machine of the tests may be busy; how long a draw waits is tested with shared counters.
    patienceMs: 10_000,
    time: `local now = tonumber(redis.call('GET', '${prefix}test-time'))`,
    epoch: async () => {
      await client.set(`${prefix}epoch`, '1');
      named(counters);
      return '1';
    },
  });
  await counters.renew();
  return {
    counters,
    client,
    pass: async (ms) => {
      clock.time += ms;
      await setTime();
    },
    settled: () => counters.settled(),
    close: async () => {
      await counters.close();
      client.disconnect();
    },
  };
}
