/** Counters in Redis or Valkey, on a real server. */
import { after, test } from 'node:test';
import { noRedis, startRedis } from '../support/redis.ts';
import { openRedisRig } from './redis-rig.ts';
import { leases } from './leases.ts';
import { properties } from './properties.ts';
import { suite } from './suite.ts';

const server = await startRedis();
if (server === undefined) {
  test(noRedis, () => {});
} else {
  const rig = await openRedisRig(server);
  // Without what other tests left: two hundred lost calls are told at once.
  const lonely = await openRedisRig(server);
  after(async () => {
    await rig.close();
    await lonely.close();
    await server.close();
  });
  suite('redis', () => rig);
  properties('redis', () => rig, 60);
  leases('redis', () => lonely, {
    book: async (rows) => {
      for (const { id, cost } of rows) await lonely.counters.booked(id, cost?.total ?? 0);
    },
    bookReal: (rows) => lonely.counters.written(rows),
  });
}
