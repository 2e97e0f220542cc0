import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Settlements } from '../../../src/store/settlements.ts';
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
