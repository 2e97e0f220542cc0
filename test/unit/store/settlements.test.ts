import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Settlements } from '../../../src/store/counters/settlements.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { silentLog } from '../access/fakes.ts';

test('Q2: who waits for settlements does not wait for those that come later, which may never end', async () => {
  const sent: string[] = [];
  let more = true;
  const settlements: Settlements = new Settlements({
    send: async (calls) => {
      await new Promise(setImmediate);
      sent.push(...calls.map(({ callId }) => callId));
      if (more) settlements.add(`later${sent.length}`, { tokens: 0, nanodollars: 0 });
    },
    log: silentLog,
    atOnce: 2,
  });
  for (const id of ['a', 'b', 'c']) settlements.add(id, { tokens: 0, nanodollars: 0 });
  await settlements.sent();
  assert.deepEqual(sent.slice(0, 3).toSorted(), ['a', 'b', 'c']);
  more = false;
  await settlements.close();
});

for (const together of [1, 4]) {
  test(`Q2: a settlement that is always refused is told and holds up no other, ${together} at once`, async () => {
    const sent: string[] = [];
    const told: unknown[] = [];
    const log: Log = {
      ...silentLog,
      error: (event, fields) => told.push([event, fields?.['call']]),
    };
    const settlements = new Settlements({
      send: async (calls) => {
        const poisoned = calls.some(({ callId }) => callId === 'poison');
        if (poisoned) throw new StoreError('refused', 'out of range');
        sent.push(...calls.map(({ callId }) => callId));
      },
      log,
      atOnce: 2,
      together,
      waitMs: together - 1,
    });
    settlements.add('poison', { tokens: 0, nanodollars: 0 });
    for (let i = 0; i < 10; i += 1) settlements.add(`c${i}`, { tokens: 0, nanodollars: 0 });
    await settlements.sent();
    assert.deepEqual(
      sent.toSorted(),
      Array.from({ length: 10 }, (_, i) => `c${i}`),
    );
    assert.deepEqual([...settlements.waiting], []);
    assert.deepEqual(told, [['settlement_refused', 'poison']]);
    await settlements.close();
  });
}

test('Q2: settlements wait for each other, and for no longer than for who asks', async () => {
  const sends: (readonly string[])[] = [];
  const settlements = new Settlements({
    send: async (calls) => {
      sends.push(calls.map(({ callId }) => callId));
    },
    log: silentLog,
    atOnce: 2,
    together: 3,
    waitMs: 60_000,
  });
  for (const id of ['a', 'b', 'c', 'd']) settlements.add(id, { tokens: 0, nanodollars: 0 });
  // The first one of a call counts, also while it waits.
  settlements.add('a', { tokens: 1, nanodollars: 1 });
  assert.deepEqual(sends, []);
  settlements.flush();
  assert.deepEqual(sends, [['a', 'b', 'c'], ['d']]);
  await settlements.close();
  assert.deepEqual([...settlements.waiting], []);
});

test('Q2: settlements travel with another command, and are sent by themselves where it fails', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const sends: string[][] = [];
  const idsOf = (calls: readonly { readonly callId: string }[]): string[] =>
    calls.map(({ callId }) => callId);
  const settlements = new Settlements({
    send: async (calls) => void sends.push(idsOf(calls)),
    log: silentLog,
    atOnce: 2,
    together: 2,
    waitMs: 5,
  });
  const none = { tokens: 0, nanodollars: 0 };
  const carried: string[][] = [];
  settlements.add('a', none);
  const answer = await settlements.sendWith(async (calls) => carried.push(idsOf(calls)));
  assert.equal(answer, 1);
  assert.deepEqual([...settlements.waiting], []);
  settlements.add('b', none);
  const failing = settlements.sendWith((calls) => {
    carried.push(idsOf(calls));
    return Promise.reject(new Error('it is away'));
  });
  await assert.rejects(failing, /it is away/);
  assert.deepEqual(carried, [['a'], ['b']]);
  // While nothing is sent, nothing travels with a command either.
  await settlements.sendWith(async (calls) => carried.push(idsOf(calls)));
  assert.deepEqual(carried.at(-1), []);
  assert.deepEqual(sends, []);
  t.mock.timers.tick(500);
  assert.deepEqual(sends, [['b']]);
  // What is too much for one command is sent before it.
  for (const id of ['c', 'd', 'e']) settlements.add(id, none);
  await settlements.sendWith(async (calls) => carried.push(idsOf(calls)));
  assert.deepEqual(sends, [['b'], ['c', 'd'], ['e']]);
  assert.deepEqual(carried.at(-1), []);
  await settlements.close();
});

test('Q2: a settlement that failed within another command is sent by itself', async () => {
  const sent: string[] = [];
  const settlements = new Settlements({
    send: async (calls) => {
      sent.push(...calls.map(({ callId }) => callId));
    },
    log: silentLog,
    atOnce: 2,
    together: 8,
    waitMs: 60_000,
  });
  for (const id of ['a', 'b', 'c']) settlements.add(id, { tokens: 0, nanodollars: 0 });
  const answer = await settlements.sendWith(
    async (calls) => calls.map(({ callId }) => callId),
    () => ['b'],
  );
  assert.deepEqual(answer, ['a', 'b', 'c']);
  await settlements.sent();
  assert.deepEqual(sent, ['b']);
  assert.deepEqual([...settlements.waiting], []);
  await settlements.close();
});
