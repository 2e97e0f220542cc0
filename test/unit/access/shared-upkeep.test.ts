import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SharedUpkeep } from '../../../src/access/shared-upkeep.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { leaseExpiryMs } from '../../../src/store/leases/budget-leases.ts';
import { leaseMs } from '../../../src/store/counters/counters.ts';
import { deadNumber, LeaseExpiry } from '../../../src/store/leases/lease-expiry.ts';
import type { SeenInstance } from '../../../src/store/leases/lease-home.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import type { Spent } from '../../../src/store/store.ts';
import { callRow } from '../store/call-rows.ts';
import { HeldClock } from './fakes.ts';

const cost = { total: 7, input: 7, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: 0 };
const lookMs = 10_000;
const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];

function scene(context: TestContext, { hasPredecessor = false } = {}) {
  const clock = new HeldClock();
  const store = memoryStore();
  const heard: (readonly Spent[])[] = [];
  const told: string[] = [];
  const expired: SeenInstance[] = [];
  const register = {
    instances: [] as SeenInstance[],
    isAway: false,
    /** What each instance has leased; undefined: its leases cannot be ended. */
    leased: (_instance: string): number | undefined => 70,
  };
  const state: { upSince: number | undefined } = { upSince: clock.now() };
  const tell: Log['error'] = (event, fields) => told.push(`${event} ${JSON.stringify(fields)}`);
  const givenBack: string[] = [];
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell };
  const left = {
    instance: 'before',
    leases: [{ counter: 'key:k1:ever', window: 'ever', taken: 7 }],
    remove: () => givenBack.push('removed'),
  };
  const expiry = new LeaseExpiry({
    register: {
      instances: async () => {
        if (register.isAway) throw new StoreError('unavailable', 'away');
        return register.instances;
      },
      expire: async (seen) => {
        const leased = register.leased(seen.instance);
        if (leased === undefined) throw new StoreError('failed', 'it cannot be ended');
        expired.push(seen);
        register.instances = register.instances.filter(
          ({ instance }) => instance !== seen.instance,
        );
        return leased;
      },
      giveBack: async ({ instance, leases }) => {
        if (register.isAway) throw new StoreError('unavailable', 'away');
        givenBack.push(`${instance} took ${leases.map(({ taken }) => taken).join()}`);
        return 30;
      },
    },
    clock,
    log,
    left: hasPredecessor ? [left] : [],
  });
  const upkeep = new SharedUpkeep({
    store: store.calls,
    expiry,
    clock,
    log,
    upSince: () => state.upSince,
    onSpent: (spent) => heard.push(spent),
  });
  context.after(() => upkeep.close());
  return { clock, store, upkeep, heard, told, expired, givenBack, register, state };
}

test('F81 Q2: a call without a report for the time of a lease is settled, once', async (t) => {
  const { clock, store, upkeep, told } = scene(t);
  const row = callRow('dead', { cost, budgets });
  await store.calls.open([{ row, seenAt: clock.wall() }]);
  clock.time += leaseMs;
  await upkeep.sweep();
  assert.equal(await store.calls.find('dead'), undefined);
  clock.time += 1;
  await upkeep.sweep();
  assert.deepEqual(await store.calls.find('dead'), row);
  await upkeep.sweep();
  assert.deepEqual(told, ['calls_recovered {"calls":1}']);
});

test('F88: after an outage of the store the living may tell of their calls first', async (t) => {
  const { clock, store, upkeep, state } = scene(t);
  await store.calls.open([{ row: callRow('alive'), seenAt: clock.wall() }]);
  clock.time += 10 * leaseMs;
  state.upSince = undefined;
  await upkeep.sweep();
  state.upSince = clock.now();
  clock.time += leaseMs - 1;
  await upkeep.sweep();
  await store.calls.open([{ row: callRow('alive'), seenAt: clock.wall() }]);
  clock.time += 1;
  await upkeep.sweep();
  assert.equal(await store.calls.find('alive'), undefined);
});

test('Q1: the leases of an instance that says nothing for ten minutes are ended, and no sooner', async (t) => {
  const { clock, upkeep, expired, register, told } = scene(t);
  const dead = { instance: 'dead', number: 5 };
  register.instances = [dead, { instance: 'alive', number: 1 }];
  const look = async (): Promise<void> => {
    await upkeep.sweep();
    register.instances = register.instances.map((each) =>
      each.instance === 'alive' ? { ...each, number: each.number + 1 } : each,
    );
  };
  await look();
  for (let ms = lookMs; ms < leaseExpiryMs; ms += lookMs) {
    clock.time += lookMs;
    await look();
  }
  clock.time += lookMs - 1;
  await look();
  assert.deepEqual(expired, []);
  clock.time += 1;
  await look();
  assert.deepEqual(expired, [dead]);
  assert.deepEqual(told, ['budget_leases_expired {"instance":"dead","nanodollars":70}']);
});

test('Q1 F88: while the database is away no instance is taken for dead, nor right behind it', async (t) => {
  const { clock, upkeep, expired, register } = scene(t);
  register.instances = [{ instance: 'quiet', number: 5 }];
  await upkeep.sweep();
  register.isAway = true;
  clock.time += 10 * leaseExpiryMs;
  await assert.rejects(upkeep.sweep(), StoreError);
  register.isAway = false;
  for (let ms = 0; ms < leaseExpiryMs; ms += lookMs) {
    await upkeep.sweep();
    clock.time += lookMs;
  }
  assert.deepEqual(expired, []);
  await upkeep.sweep();
  assert.equal(expired.length, 1);
});

test('Q1: what the process before had not spent is given back once, and the rest of its leases ends a minute later', async (t) => {
  const { clock, upkeep, expired, givenBack, register, told } = scene(t, { hasPredecessor: true });
  const before = { instance: 'before', number: deadNumber };
  register.isAway = true;
  await assert.rejects(upkeep.sweep(), StoreError);
  assert.deepEqual(givenBack, []);
  register.isAway = false;
  register.instances = [before, { instance: 'other', number: 5 }];
  await upkeep.sweep();
  assert.deepEqual(givenBack, ['before took 7', 'removed']);
  for (let ms = lookMs; ms < 2 * leaseMs; ms += lookMs) {
    clock.time += lookMs;
    await upkeep.sweep();
  }
  clock.time += lookMs - 1;
  await upkeep.sweep();
  assert.deepEqual(expired, []);
  clock.time += 1;
  await upkeep.sweep();
  assert.deepEqual(expired, [before]);
  assert.equal(givenBack.length, 2);
  assert.deepEqual(told, [
    'budget_leases_given_back {"instance":"before","nanodollars":30}',
    'budget_leases_expired {"instance":"before","nanodollars":70}',
  ]);
});

test('Q1: an instance that stood still itself takes no other one for dead', async (t) => {
  const { clock, upkeep, expired, register } = scene(t);
  register.instances = [{ instance: 'stood still too', number: 5 }];
  await upkeep.sweep();
  clock.time += 2 * leaseExpiryMs;
  await upkeep.sweep();
  assert.deepEqual(expired, []);
});

test('L5: what budgets have spent is read in portions, each window once', async (t) => {
  const { store, upkeep, heard } = scene(t);
  const many = Array.from({ length: 2500 }, (_, i) => ({
    counter: `key:${String(i).padStart(5, '0')}:ever`,
    window: 'ever',
  }));
  await store.calls.record([callRow('c1', { cost, budgets: many })]);
  await upkeep.readSpent();
  assert.deepEqual(
    heard.flat().map(({ counter }) => counter),
    many.map(({ counter }) => counter),
  );
  assert.ok(heard.length > 2);
});

test('Q1: an instance without leases says nothing for ten minutes, and is not told as dead', async (t) => {
  const { clock, upkeep, told, expired, register } = scene(t);
  register.instances = [{ instance: 'idle', number: 4 }];
  register.leased = () => 0;
  for (let passed = 0; passed <= leaseExpiryMs; passed += lookMs) {
    await upkeep.sweep();
    clock.time += lookMs;
  }
  assert.equal(expired.length, 1);
  assert.deepEqual(told, []);
});

test('Q1 F81: leases that cannot be ended hold up neither other leases nor calls', async (t) => {
  const { clock, store, upkeep, expired, register } = scene(t);
  register.instances = [
    { instance: 'refused', number: 1 },
    { instance: 'dead', number: 2 },
  ];
  register.leased = (instance) => (instance === 'refused' ? undefined : 70);
  const row = callRow('dead', { cost, budgets });
  await store.calls.open([{ row, seenAt: clock.wall() }]);
  for (let passed = 0; passed <= leaseExpiryMs; passed += lookMs) {
    await upkeep.sweep().catch(() => undefined);
    clock.time += lookMs;
  }
  assert.deepEqual(expired, [{ instance: 'dead', number: 2 }]);
  await assert.rejects(upkeep.sweep(), /cannot be ended/);
  assert.deepEqual(await store.calls.find('dead'), row);
});
