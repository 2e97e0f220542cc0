import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Settlements } from '../../../src/store/settlements.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { silentLog } from '../access/parts.ts';

test('Q2: who waits for settlements does not wait for those that come later, which may never end', async () => {
  const sent: string[] = [];
  let more = true;
  const settlements: Settlements = new Settlements({
    send: async (callId) => {
      await new Promise(setImmediate);
      sent.push(callId);
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

test('Q2: a settlement that the server always refuses is told and holds up no other', async () => {
  const sent: string[] = [];
  const told: unknown[] = [];
  const log: Log = { ...silentLog, error: (event, fields) => told.push([event, fields?.['call']]) };
  const settlements = new Settlements({
    send: async (callId) => {
      if (callId === 'poison') throw new StoreError('refused', 'out of range');
      sent.push(callId);
    },
    log,
    atOnce: 2,
  });
  settlements.add('poison', { tokens: 0, nanodollars: 0 });
  for (let i = 0; i < 10; i += 1) settlements.add(`c${i}`, { tokens: 0, nanodollars: 0 });
  await settlements.sent();
  assert.equal(sent.length, 10);
  assert.deepEqual([...settlements.waiting], []);
  assert.deepEqual(told, [['settlement_refused', 'poison']]);
  await settlements.close();
});
