import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SharedUpkeep } from '../../../src/access/shared-upkeep.ts';
import type { Log } from '../../../src/core/runtime.ts';
import type { Drift, Used } from '../../../src/store/counters.ts';
import { leaseMs } from '../../../src/store/lease.ts';
import { MemoryStore } from '../../../src/store/memory.ts';
import type { CallRow, Spent } from '../../../src/store/store.ts';
import { callRow } from '../store/call-rows.ts';
import { HeldClock } from './parts.ts';

const cost = { total: 7, input: 7, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: 0 };
const budgets = [{ counter: 'key:k1:ever', window: 'ever' }];

function scene(context: TestContext) {
  const clock = new HeldClock();
  const store = new MemoryStore();
  const settled: (readonly [string, Used])[] = [];
  const heard: (readonly Spent[])[] = [];
  const told: string[] = [];
  const repaired: Drift[] = [];
  const counters = { balance: { settled: 0, open: 0 }, healthy: true };
  const lost: { rows: CallRow[]; booked: (readonly [string, number])[] } = { rows: [], booked: [] };
  const state: { upSince: number | undefined } = { upSince: clock.now() };
  const tell: Log['error'] = (event, fields) => told.push(`${event} ${JSON.stringify(fields)}`);
  const upkeep = new SharedUpkeep({
    store,
    counters: {
      settle: (id, used) => settled.push([id, used]),
      settledIn: async (windows) => windows.map(() => counters.balance.settled),
      repair: (drift) => void repaired.push(drift),
      healthy: () => counters.healthy,
      abandoned: async () => lost.rows,
      booked: async (id, nanodollars) => void lost.booked.push([id, nanodollars]),
    },
    recordLost: async (rows) => {
      await store.recordCalls(rows);
      const found = await Promise.all(rows.map(({ id }) => store.findCall(id)));
      return new Map(found.flatMap((row) => (row ? [[row.id, row.cost?.total ?? 0]] : [])));
    },
    clock,
    log: { debug: tell, info: tell, warn: tell, error: tell },
    upSince: () => state.upSince,
    onSpent: (spent) => heard.push(spent),
  });
  context.after(() => upkeep.close());
  return { clock, store, upkeep, settled, lost, heard, told, repaired, counters, state };
}

test('F81 Q2: a call that nobody tells of for a lease is settled, and what it held is given back', async (t) => {
  const { clock, store, upkeep, settled } = scene(t);
  const row = callRow('dead', { cost, budgets });
  await store.openCalls([{ row, seenAt: clock.wall() }]);
  clock.time += leaseMs;
  await upkeep.sweep();
  assert.deepEqual(settled, []);
  clock.time += 1;
  await upkeep.sweep();
  assert.deepEqual(settled, [['dead', { tokens: 15, nanodollars: 7 }]]);
  assert.deepEqual(await store.findCall('dead'), row);
  await upkeep.sweep();
  assert.equal(settled.length, 1);
});

test('Q1: what a dead gateway told nobody of is booked as held, or as its row says', async (t) => {
  const { clock, store, upkeep, settled, lost, told } = scene(t);
  await store.recordCalls([callRow('known', { cost: { ...cost, total: 3 }, budgets })]);
  lost.rows = [callRow('gone', { cost, budgets }), callRow('known', { cost, budgets })];
  await upkeep.sweep();
  assert.deepEqual(lost.booked, [], 'the living may tell of their calls first');
  clock.time += leaseMs;
  await upkeep.sweep();
  assert.deepEqual(lost.booked, [
    ['gone', 7],
    ['known', 3],
  ]);
  assert.deepEqual(settled, []);
  assert.deepEqual(told, ['calls_booked_as_held {"calls":2}']);
});

test('F88: after an outage of the store the living may tell of their calls first', async (t) => {
  const { clock, store, upkeep, settled, state } = scene(t);
  await store.openCalls([{ row: callRow('alive'), seenAt: clock.wall() }]);
  clock.time += 10 * leaseMs;
  state.upSince = undefined;
  await upkeep.sweep();
  state.upSince = clock.now();
  clock.time += leaseMs - 1;
  await upkeep.sweep();
  assert.deepEqual(settled, []);
  await store.openCalls([{ row: callRow('alive'), seenAt: clock.wall() }]);
  clock.time += 1;
  await upkeep.sweep();
  assert.deepEqual(settled, []);
});

test('Q2: a counter that stays apart from the ledger is told; one that is on its way is not', async (t) => {
  const { store, upkeep, told, counters, heard } = scene(t);
  await store.recordCalls([callRow('c1', { cost, budgets })]);
  counters.balance = { settled: 7, open: 3 };
  await upkeep.compare();
  await upkeep.compare();
  counters.balance = { settled: 9, open: 0 };
  await upkeep.compare();
  counters.balance = { settled: 8, open: 0 };
  await upkeep.compare();
  assert.deepEqual(told, []);
  await upkeep.compare();
  assert.deepEqual(told, [
    'budget_drift {"counter":"key:k1:ever","window":"ever","nanodollars":1,"repaired":false}',
  ]);
  counters.healthy = false;
  await upkeep.compare();
  assert.equal(told.length, 1);
  assert.equal(heard.length, 6);
  assert.deepEqual(heard[0], [{ counter: 'key:k1:ever', window: 'ever', nanodollars: 7 }]);
});

test('Q2: what the counter lacks is put right at the second look, what only it has at the fifth', async (t) => {
  const { store, upkeep, told, repaired, counters } = scene(t);
  await store.recordCalls([callRow('c1', { cost, budgets })]);
  const drift = { counter: 'key:k1:ever', window: 'ever', booked: 7 };
  counters.balance = { settled: 5, open: 0 };
  await upkeep.compare();
  assert.deepEqual(repaired, []);
  await upkeep.compare();
  assert.deepEqual(repaired.splice(0), [{ ...drift, settled: 5 }]);
  counters.balance = { settled: 9, open: 0 };
  for (let looks = 1; looks < 5; looks += 1) await upkeep.compare();
  assert.deepEqual(repaired, []);
  await upkeep.compare();
  assert.deepEqual(repaired, [{ ...drift, settled: 9 }]);
  assert.equal(told.filter((line) => line.includes('"repaired":true')).length, 2);
});

test('Q2 L5: budgets are compared in portions, each one once, and a drift in the last is found', async (t) => {
  const { store, upkeep, counters, heard, repaired } = scene(t);
  const windows = 2500;
  const many = Array.from({ length: windows }, (_, i) => ({
    counter: `key:${String(i).padStart(5, '0')}:ever`,
    window: 'ever',
  }));
  await store.recordCalls([callRow('c1', { cost, budgets: many })]);
  counters.balance = { settled: 7, open: 0 };
  await upkeep.compare();
  assert.deepEqual(
    heard.flat().map(({ counter }) => counter),
    many.map(({ counter }) => counter),
  );
  assert.ok(heard.length > 2);
  counters.balance = { settled: 6, open: 0 };
  await upkeep.compare();
  assert.deepEqual(repaired, []);
  await upkeep.compare();
  assert.equal(repaired.length, windows);
});
