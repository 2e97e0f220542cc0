/** Counters of one process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldClock } from '../unit/access/fakes.ts';
import { caseCount } from '../support/depth.ts';
import { MemoryCounters } from '../../src/store/counters/memory-counters.ts';
import { requestOf, fresh, type Rig } from './rig.ts';
import { properties } from './properties.ts';
import { suite } from './suite.ts';

function memoryRig(): Rig {
  const clock = new HeldClock();
  const counters = new MemoryCounters(clock);
  return {
    counters,
    pass: async (ms) => {
      clock.time += ms;
    },
    settled: async () => {},
    close: () => counters.close(),
  };
}

const rig = memoryRig();
suite('memory', () => rig);
properties('memory', () => rig, 400);

const dayMs = 86_400_000;

test('K7: 60 requests per minute, asked 600 times a second for 3 minutes: 180 and the burst', () => {
  const clock = new HeldClock();
  const counters = new MemoryCounters(clock);
  const requests = [{ counter: 'r', perMinute: 60 }];
  let accepted = 0;
  for (let i = 0; i < 3 * 60 * 600; i++) {
    clock.time = 1_000_000 + (i * 1000) / 600;
    if (counters.reserve(requestOf({ requests })).granted) accepted += 1;
  }
  assert.ok(Math.abs(accepted - 60 - 180) <= 1, String(accepted));
});

test('G17: a wall clock that was wrong for a day finds what was spent before; then it is forgotten', () => {
  let wall = Date.UTC(2026, 10, 21, 12);
  let now = 0;
  const counters = new MemoryCounters({ now: () => now, wall: () => wall });
  const day = (name: string, ends: number): object => ({
    budgets: [{ counter: 'b', window: name, endsAt: ends, nanodollars: 10, amount: 10 }],
  });
  const today = requestOf(day('2026-11-21', Date.UTC(2026, 10, 22)));
  assert.ok(counters.reserve(today).granted);
  counters.settle(today.callId, { tokens: 0, nanodollars: 10 });
  wall += dayMs;
  const wrong = requestOf(day('2026-11-22', Date.UTC(2026, 10, 23)));
  assert.ok(counters.reserve(wrong).granted);
  counters.settle(wrong.callId, { tokens: 0, nanodollars: 10 });
  for (let i = 0; i < 100; i++)
    counters.reserve(requestOf({ requests: [{ counter: fresh('r'), perMinute: 9 }] }));
  wall -= dayMs;
  assert.equal(
    counters.reserve(requestOf(day('2026-11-21', Date.UTC(2026, 10, 22)))).granted,
    false,
  );
  wall += dayMs;
  assert.equal(
    counters.reserve(requestOf(day('2026-11-22', Date.UTC(2026, 10, 23)))).granted,
    false,
  );
  wall += 9 * dayMs;
  now += 9 * dayMs;
  assert.ok(counters.reserve(requestOf(day('2026-12-01', Date.UTC(2026, 11, 2)))).granted);
});

test('L2: idle counters are forgotten: a million keys that call once each', () => {
  const keys = caseCount(1_000_000, 100_000);
  const clock = new HeldClock();
  const counters = new MemoryCounters(clock);
  let largest = 0;
  for (let i = 0; i < keys; i++) {
    clock.time += 10;
    const request = requestOf({
      concurrent: [{ counter: `c${i}`, most: 1 }],
      requests: [{ counter: `r${i}`, perMinute: 60 }],
      tokens: [{ counter: `t${i}`, perMinute: 60_000, amount: 1000 }],
    });
    assert.ok(counters.reserve(request).granted);
    counters.settle(request.callId, { tokens: 500, nanodollars: 0 });
    largest = Math.max(largest, counters.size);
  }
  // A second's worth of keys is a hundred; each is full again after one.
  assert.ok(largest < 2000, String(largest));
});

test('K3: a restart begins with what the ledger has booked', () => {
  const counters = new MemoryCounters(new HeldClock());
  counters.restore([
    { counter: 'b', window: '2026-11', nanodollars: 90 },
    { counter: 'b', window: 'ever', nanodollars: 5 },
  ]);
  const budget = { counter: 'b', window: '2026-11', endsAt: 9e12, nanodollars: 100, amount: 11 };
  assert.equal(counters.reserve(requestOf({ budgets: [budget] })).granted, false);
  assert.ok(counters.reserve(requestOf({ budgets: [{ ...budget, amount: 10 }] })).granted);
});

test('K3: of windows that a restart finds in any order, the one that has not ended stays', () => {
  let now = 0;
  const counters = new MemoryCounters({ now: () => now, wall: () => Date.UTC(2026, 10, 1) + now });
  counters.restore([
    { counter: 'b', window: '2026-11', nanodollars: 90 },
    { counter: 'b', window: '2026-10', nanodollars: 90 },
  ]);
  now += 3 * dayMs;
  const other = { window: 'ever', endsAt: undefined, nanodollars: 9, amount: 1 };
  for (let i = 0; i < 100; i++)
    counters.reserve(requestOf({ budgets: [{ counter: fresh('b'), ...other }] }));
  const ends = Date.UTC(2026, 11, 1);
  const budget = { counter: 'b', window: '2026-11', endsAt: ends, nanodollars: 100, amount: 11 };
  assert.equal(counters.reserve(requestOf({ budgets: [budget] })).granted, false);
});

test('K6: an undone reservation leaves no trace', () => {
  const counters = new MemoryCounters(new HeldClock());
  const wanted = {
    concurrent: [{ counter: 'c', most: 1 }],
    requests: [{ counter: 'r', perMinute: 1 }],
    tokens: [{ counter: 't', perMinute: 10, amount: 10 }],
    budgets: [{ counter: 'b', window: 'ever', endsAt: undefined, nanodollars: 1, amount: 1 }],
  };
  for (let i = 0; i < 3; i++) {
    const request = requestOf(wanted);
    assert.ok(counters.reserve(request).granted);
    counters.undo(request.callId);
  }
});
