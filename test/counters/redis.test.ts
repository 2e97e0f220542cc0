/** Rates and places in Redis or Valkey, on a real server. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { leaseMs } from '../../src/store/counters/counters.ts';
import { noRedis, startRedis } from '../support/redis.ts';
import { openRedisRig } from './redis-rig.ts';
import { properties } from './properties.ts';
import { fresh, granted, refused, requestOf, settle } from './rig.ts';
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

  test('Q2: a settlement that fails refuses no reservation that it goes along with', async () => {
    const counter = fresh('c');
    const concurrent = [{ counter, most: 2 }];
    const [poisoned, whole] = [fresh('call_'), fresh('call_')];
    await rig.redis.reserve(requestOf({ callId: poisoned, concurrent }));
    await rig.redis.reserve(requestOf({ callId: whole, concurrent }));
    const kept = (await rig.client.keys('gw:*')).find((key) => key.endsWith(`:k:${poisoned}`));
    assert.ok(kept !== undefined);
    await rig.client.del(kept);
    await rig.client.rpush(kept, 'a list');
    await rig.redis.renew();
    rig.redis.settle(poisoned, { tokens: 0, nanodollars: 0 });
    rig.redis.settle(whole, { tokens: 0, nanodollars: 0 });
    const along = await rig.redis.reserve(requestOf({ concurrent }));
    assert.ok(along.granted, 'the slot of the other settlement is free');
    await rig.settled();
    assert.equal((await refused(rig, { concurrent })).kind, 'concurrent');
    // What the settlement could not give back comes back with its lease.
    await rig.pass(leaseMs);
    await granted(rig, { concurrent });
  });

  test('Q2: a counter that cannot be read keeps no other of its call', async () => {
    const [slot, bucket] = [fresh('c'), fresh('t')];
    const wanted = {
      concurrent: [{ counter: slot, most: 1 }],
      tokens: [
        { counter: bucket, perMinute: 10, amount: 5 },
        { counter: fresh('t'), perMinute: 10, amount: 10 },
      ],
    };
    const { callId } = await granted(rig, wanted);
    const key = (await rig.client.keys('gw:*')).find((each) => each.endsWith(`:t:${bucket}`));
    assert.ok(key !== undefined);
    await rig.client.set(key, 'a text');
    await settle(rig, callId, { tokens: 0 });
    await granted(rig, { ...wanted, tokens: wanted.tokens.slice(1) });
    // Its own calls are refused by it, and the server does not count as lost for all others.
    for (let i = 0; i < 5; i += 1) await assert.rejects(rig.redis.reserve(requestOf(wanted)));
    assert.equal(rig.redis.lost, false);
  });

  test('Q2: a call that cannot be read does not end the leases of others', async () => {
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    const poisoned = fresh('call_');
    await rig.redis.reserve(
      requestOf({ callId: poisoned, concurrent: [{ counter: fresh('c'), most: 1 }] }),
    );
    await rig.redis.reserve(requestOf({ concurrent }));
    const kept = (await rig.client.keys('gw:*')).find((key) => key.endsWith(`:k:${poisoned}`));
    assert.ok(kept !== undefined);
    await rig.client.del(kept);
    await rig.client.rpush(kept, 'a list');
    await rig.pass(leaseMs - 1);
    await rig.redis.renew();
    await rig.pass(1);
    assert.equal((await refused(rig, { concurrent })).kind, 'concurrent');
  });
}
