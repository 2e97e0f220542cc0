/** What becomes of the calls of a worker that dies (F81, Q1, Q2). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BudgetItem, Counters } from '../../src/store/counters/counters.ts';
import { MemoryCounters } from '../../src/store/counters/memory-counters.ts';
import { memoryStore } from '../support/memory-store.ts';
import type { Store } from '../../src/store/store.ts';
import { RemoteCounters, remoteStore, Writes } from '../../src/compose/workers/session.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { requestOf } from '../counters/rig.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { HeldClock } from '../unit/access/fakes.ts';
import { linkSession, type LinkedSession } from './linked.ts';

const budget: BudgetItem = {
  counter: 'key:abc:month',
  window: '2026-11',
  endsAt: 9e12,
  nanodollars: 1000,
  amount: 100,
};
const about = { keyId: 'abc', tags: [], endpoint: 'chat', model: 'm', startedAt: 5 };

interface Scene {
  readonly book: LinkedSession;
  readonly store: Store;
  readonly counters: MemoryCounters;
  readonly own: RemoteCounters;
}

async function scene(): Promise<Scene> {
  const clock = new HeldClock();
  const store = memoryStore();
  const counters = new MemoryCounters(clock);
  const book = await linkSession(store, counters, clock);
  const state = { aheadMs: 0, countersUp: true };
  const own = new RemoteCounters({ link: book.link, clock, state: () => state });
  return { book, store, counters, own };
}

test('Q1: an unreported call is booked with all that it held, once', async () => {
  const { book, store, counters, own } = await scene();
  const request = requestOf({ budgets: [budget], about });
  await own.reserve(request);
  await own.reserve(
    requestOf({ callId: `${request.callId}+`, budgets: [{ ...budget, amount: 50 }] }),
  );
  book.close();
  await book.session.end();
  assert.deepEqual(counters.balance(budget.counter, budget.window), { settled: 150, open: 0 });
  assert.deepEqual(await store.calls.spent(0), [
    { counter: budget.counter, window: budget.window, nanodollars: 150 },
  ]);
  const row = await store.calls.find(request.callId);
  assert.deepEqual(
    [row?.keyId, row?.outcome, row?.error, row?.usageSource, row?.cost?.total],
    ['abc', 'failed', 'interrupted', 'estimated', 150],
  );
  assert.equal(book.session.calls, 0);
});

test('F81: a call that was noted is recorded as it was last known', async () => {
  const { book, store, counters, own } = await scene();
  const request = requestOf({ budgets: [budget], about });
  await own.reserve(request);
  const cost = {
    total: 30,
    input: 30,
    cacheRead: 0,
    cacheWrite: 0,
    output: 0,
    reasoning: 0,
    call: 0,
  };
  const row = callRow(request.callId, {
    outcome: 'failed',
    error: 'interrupted',
    usageSource: 'estimated',
    cost,
    budgets: [{ counter: budget.counter, window: budget.window, endsAt: 9e12 }],
  });
  await remoteStore(book.link).calls.open([{ row, seenAt: 6 }]);
  book.close();
  await book.session.end();
  assert.deepEqual(counters.balance(budget.counter, budget.window), { settled: 30, open: 0 });
  assert.equal((await store.calls.find(request.callId))?.cost?.total, 30);
  assert.deepEqual(await store.calls.settleOrphans(Infinity), []);
});

test('F82: a call that ended, and whose row was not written yet, is booked with what it cost', async () => {
  const { book, store, counters, own } = await scene();
  const request = requestOf({ budgets: [budget], about });
  await own.reserve(request);
  own.settle(request.callId, { tokens: 7, nanodollars: 42 });
  await own.balance(budget.counter, budget.window);
  book.close();
  await book.session.end();
  assert.deepEqual(counters.balance(budget.counter, budget.window), { settled: 42, open: 0 });
  assert.equal((await store.calls.find(request.callId))?.cost?.total, 42);
});

test('Q3: what was recorded before its worker died is not recorded again', async () => {
  const { book, store, counters, own } = await scene();
  const request = requestOf({ budgets: [budget], about });
  await own.reserve(request);
  own.settle(request.callId, { tokens: 7, nanodollars: 42 });
  const row = callRow(request.callId, { outcome: 'ok' });
  await remoteStore(book.link).calls.record([row]);
  assert.equal(book.session.calls, 0);
  book.close();
  await book.session.end();
  assert.equal(counters.balance(budget.counter, budget.window).settled, 42);
  assert.equal((await store.calls.find(request.callId))?.outcome, 'ok');
});

test('F81: places of a dead worker are free, and its idempotency keys as well', async () => {
  const { book, store, counters, own } = await scene();
  const concurrent = [{ counter: 'c', most: 1 }];
  await own.reserve(requestOf({ concurrent }));
  const claim = { id: 'i', keyId: 'abc', owner: 'o', fingerprint: 'm', leaseMs: 30_000 };
  assert.deepEqual(await remoteStore(book.link).answers.claim(claim), { state: 'mine' });
  book.close();
  await book.session.end();
  assert.equal(counters.reserve(requestOf({ concurrent })).granted, true);
  const other = { ...claim, owner: 'other' };
  assert.deepEqual(await store.answers.claim(other), { state: 'mine' });
});

test('Q2: a reservation that its worker waited for in vain holds nothing when it is granted after all', async (t) => {
  const clock = new HeldClock();
  const counters = new MemoryCounters(clock);
  const answer = Promise.withResolvers<void>();
  // As a database that is slow.
  const slow: Counters = {
    wall: () => counters.wall(),
    reserve: (request) => answer.promise.then(() => counters.reserve(request)),
    settle: (callId, used) => counters.settle(callId, used),
    releaseSlots: (callId) => counters.releaseSlots(callId),
    balance: (counter, window) => counters.balance(counter, window),
    healthy: () => true,
    close: () => counters.close(),
  };
  const { session, close } = await linkSession(memoryStore(), slow, clock);
  t.after(close);
  const request = requestOf({ budgets: [budget], concurrent: [{ counter: 'c', most: 1 }], about });
  const reserving = session.operations.reserve(request);
  session.operations.settle(request.callId, { tokens: 0, nanodollars: 0 });
  answer.resolve();
  await reserving;
  assert.deepEqual(counters.balance(budget.counter, budget.window), { settled: 0, open: 0 });
  assert.equal(session.calls, 0);
});

test('F84 the writes of workers say why they wait: their last error, or for how long there was no answer', async () => {
  const clock = new HeldClock();
  const writes = new Writes(clock);
  const hung = Promise.withResolvers<void>();
  const first = writes.during(() => hung.promise);
  assert.equal(writes.failure, undefined);
  clock.time += 7500;
  assert.deepEqual([writes.healthy(), writes.failure], [false, 'no answer for 7 s']);
  await assert.rejects(writes.during(() => Promise.reject(new Error('disk full'))));
  assert.equal(writes.failure, 'disk full');
  hung.resolve();
  await first;
  assert.deepEqual([writes.healthy(), writes.failure], [true, undefined]);
});

test('F84 a worker whose only row is refused for its content keeps no other from calls', async () => {
  const clock = new HeldClock();
  const writes = new Writes(clock);
  const refusal = new StoreError('refused', 'startedAt is no number');
  await assert.rejects(
    writes.during(() => Promise.reject(refusal)),
    refusal,
  );
  clock.time += 60_000;
  assert.deepEqual([writes.healthy(), writes.failure], [true, undefined]);
});

test('F84 a worker that ends while its row waits does not keep the others from calls', async () => {
  const clock = new HeldClock();
  const store = memoryStore();
  store.calls.record = () => Promise.reject(new StoreError('failed', 'disk full'));
  const { link, session, writes, close } = await linkSession(
    store,
    new MemoryCounters(clock),
    clock,
  );
  await assert.rejects(remoteStore(link).calls.record([callRow('req_waits')]), /disk full/);
  clock.time += 60_000;
  assert.deepEqual([writes.healthy(), writes.failure], [false, 'disk full']);
  close();
  await session.end();
  assert.deepEqual([writes.healthy(), writes.failure], [true, undefined]);
});
