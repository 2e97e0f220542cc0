/** Who generates next. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineError } from '../../../src/engine/engine-error.ts';
import { Slots, type SlotsOptions } from '../../../src/engine/slots.ts';

let now = 0;
const options = (maxWaiting: number): SlotsOptions => ({ maxWaiting, nowMs: () => now });
const { signal } = new AbortController();

test('slots are handed on in order', async () => {
  const slots = new Slots(['only'], options(8));
  const slot = await slots.acquire(signal);
  const order: number[] = [];
  const waiting = [1, 2, 3].map(async (number) => {
    const own = await slots.acquire(signal);
    order.push(number);
    slots.release(own);
  });
  assert.equal(slots.waiting, 3);
  slots.release(slot);
  await Promise.all(waiting);
  assert.deepEqual(order, [1, 2, 3]);
});

test('who leaves gives up its place; the next one is served', async () => {
  const slots = new Slots(['only'], options(8));
  const slot = await slots.acquire(signal);
  const leaving = new AbortController();
  const left = slots.acquire(leaving.signal);
  const next = slots.acquire(signal);
  leaving.abort();
  await assert.rejects(left);
  assert.equal(slots.waiting, 1);
  slots.release(slot);
  assert.equal(await next, 'only');
});

test('E10 a full line refuses with a time to come back', async () => {
  const slots = new Slots(['only'], options(1));
  await slots.acquire(signal);
  void slots.acquire(signal);
  for (const refused of [() => slots.checkRoom(), () => slots.acquire(signal)]) {
    await assert.rejects(
      async () => refused(),
      (error) => {
        assert.ok(error instanceof EngineError);
        assert.equal(error.status, 503);
        assert.equal(error.code, 'server_is_overloaded');
        assert.ok(Number(error.retryAfterSeconds) > 0);
        return true;
      },
    );
  }
});

test('E10 the time to come back is the time that the line takes', async () => {
  const slots = new Slots(['a', 'b'], options(4));
  for (const heldMs of [6000, 6000]) {
    const slot = await slots.acquire(signal);
    now += heldMs;
    slots.release(slot);
  }
  for (let count = 0; count < 6; count++) void slots.acquire(signal);
  assert.deepEqual([slots.running, slots.waiting], [2, 4]);
  assert.throws(
    () => slots.checkRoom(),
    // Four wait for two slots that are held for six seconds each.
    (error) => error instanceof EngineError && error.retryAfterSeconds === 12,
  );
});

test('a request chooses among the free slots, the longest unused one first', async () => {
  const slots = new Slots(['a', 'b', 'c'], options(4));
  const taken = [await slots.acquire(signal), await slots.acquire(signal)];
  assert.deepEqual(taken, ['a', 'b']);
  slots.release('b');
  slots.release('a');
  let offered: readonly string[] = [];
  const slot = await slots.acquire(signal, (free) => {
    offered = [...free];
    return 'b';
  });
  assert.deepEqual(offered, ['c', 'b', 'a']);
  assert.equal(slot, 'b');
});
