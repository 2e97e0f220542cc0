/** What the book does not know yet of calls that ended here (Q1, F89). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draw } from '../../../src/store/counters.ts';
import { Unbooked } from '../../../src/store/unbooked.ts';

const parts = { concurrent: [], requests: [], tokens: [] };
const budgets = [{ counter: 'b', window: 'ever', endsAt: undefined, nanodollars: 9, amount: 1 }];
const drawn = (callId: string): Draw => ({ callId, ...parts, budgets });

test('F89: what was told and is booked later is told back, each once', () => {
  const unbooked = new Unbooked();
  for (const callId of ['a', 'b', 'c']) unbooked.add({ draw: drawn(callId), nanodollars: 5 });
  const telling = unbooked.calls;
  assert.deepEqual(unbooked.booked(['a']), [], 'nobody was told of it');
  assert.deepEqual(unbooked.told(telling), ['a'], 'booked while it was told');
  assert.deepEqual(unbooked.booked(['b']), ['b']);
  assert.deepEqual(unbooked.booked(['b']), []);
  assert.deepEqual(
    unbooked.calls.map(({ draw }) => draw.callId),
    ['c'],
  );
});

test('Q2: what no row will ever name does not pile up', () => {
  const unbooked = new Unbooked();
  unbooked.add({ draw: drawn('a+'), nanodollars: 0 });
  unbooked.add({ draw: { ...drawn('free'), budgets: [] }, nanodollars: 5 });
  assert.equal(unbooked.calls.length, 0);
  unbooked.add({ draw: drawn('paid'), nanodollars: 1 });
  for (let i = 0; i < 20_000; i += 1) unbooked.add({ draw: drawn(`left${i}`), nanodollars: 0 });
  assert.equal(unbooked.calls.length, 10_001);
  assert.ok(unbooked.calls.some(({ draw }) => draw.callId === 'paid'));
  assert.ok(unbooked.calls.some(({ draw }) => draw.callId === 'left19999'));
});
