/** Counters in PostgreSQL, on a real server whose clock the tests hold. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { leaseMs } from '../../src/store/counters/counters.ts';
import { noPostgres, startPostgres } from '../support/postgres.ts';
import { openPostgresRig } from './postgres-rig.ts';
import { properties } from './properties.ts';
import { fresh, granted, refused } from './rig.ts';
import { suite } from './suite.ts';

const server = await startPostgres();
if (server === undefined) {
  test(noPostgres, () => {});
} else {
  const rig = await openPostgresRig(server);
  after(async () => {
    await rig.close();
    await server.close();
  });
  suite('postgres', () => rig);
  properties('postgres', () => rig, 25);

  test('Q2: a slot that is not renewed is free when its lease ends', async () => {
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    await granted(rig, { concurrent });
    await rig.pass(leaseMs - 1);
    assert.equal((await refused(rig, { concurrent })).kind, 'concurrent');
    await rig.pass(1);
    await granted(rig, { concurrent });
  });
}
