/** Rates and places in Redis or Valkey, on a real server. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { leaseMs } from '../../src/store/counters/counters.ts';
import { noRedis, startRedis } from '../support/redis.ts';
import { openRedisRig } from './redis-rig.ts';
import { properties } from './properties.ts';
import { fresh, granted, refused } from './rig.ts';
import { suite } from './suite.ts';

const server = await startRedis();
if (server === undefined) {
  test(noRedis, () => {});
} else {
  const rig = await openRedisRig(server);
  after(async () => {
    await rig.close();
    await server.close();
  });
  suite('redis', () => rig);
  properties('redis', () => rig, 60);

  test('Q2: a slot that is not renewed is free when its lease ends', async () => {
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    await granted(rig, { concurrent });
    await rig.pass(leaseMs - 1);
    assert.equal((await refused(rig, { concurrent })).kind, 'concurrent');
    await rig.pass(1);
    await granted(rig, { concurrent });
  });
}
