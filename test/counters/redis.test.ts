/** Counters in Redis or Valkey, on a real server. */
import { after, test } from 'node:test';
import { noRedis, startRedis } from '../support/redis.ts';
import { openRedisRig } from './redis-rig.ts';
import { properties } from './properties.ts';
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
}
