/** Counters in Redis or Valkey, on a real server. */
import assert from 'node:assert/strict';
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
  test('Q1: an epoch that others were told of while a gateway began it is asked for again', async () => {
    let askings = 0;
    const begun = await openRedisRig(server, (counters) => {
      askings += 1;
      if (askings === 2) counters.forsake();
    });
    try {
      begun.counters.forsake();
      await begun.counters.begin();
      assert.equal(askings, 3);
    } finally {
      await begun.close();
    }
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
