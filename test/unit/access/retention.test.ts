import assert from 'node:assert/strict';
import { it } from 'node:test';
import { RetentionTask } from '../../../src/access/sweepers.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { memoryStore } from '../../support/memory-store.ts';
import type { Retention } from '../../../src/store/store.ts';
import { callRow, day } from '../store/call-rows.ts';
import { HeldClock, silentLog } from './fakes.ts';

const clock = new HeldClock();
const kept = { clock, log: silentLog, keepMs: 90 * day, keepHoursMs: 400 * day };

it('L3 removes calls beyond their time in batches with pauses', async () => {
  const store = memoryStore();
  const old = clock.wall() - 91 * day;
  const rows = Array.from({ length: 2500 }, (_, i) => callRow(`c${i}`, { startedAt: old + i }));
  await store.calls.record([...rows, callRow('new', { startedAt: clock.wall() - 89 * day })]);
  let pauses = 0;
  const pause = async (): Promise<void> => {
    pauses += 1;
    const { calls } = await store.calls.list({ limit: 5000 });
    assert.equal(calls.length, 2501 - pauses * 1000);
  };
  await new RetentionTask({ ...kept, store: store.calls, pause }).run();
  assert.equal(pauses, 2);
  const { calls } = await store.calls.list({ limit: 5000 });
  assert.deepEqual(
    calls.map(({ id }) => id),
    ['new'],
  );
  assert.equal((await store.calls.usage({ by: 'key', since: 0 }))[0]?.calls, 2501);
});

it('forever removes nothing', async () => {
  const asked: Retention[] = [];
  const prune = async (retention: Retention): Promise<number> => {
    asked.push(retention);
    return 0;
  };
  const store = { prune };
  await new RetentionTask({ ...kept, store, keepMs: Infinity, keepHoursMs: Infinity }).run();
  assert.deepEqual(asked, [{ callsBefore: 0, hoursBefore: 0 }]);
});

it('a failure is told and ends nothing; a closed task stops between two batches', async () => {
  const lines: string[] = [];
  const log: Log = { ...silentLog, error: (event) => lines.push(event) };
  const broken = { prune: () => Promise.reject(new Error('disk full')) };
  await new RetentionTask({ ...kept, store: broken, log }).run();
  assert.deepEqual(lines, ['prune_failed']);
  let batches = 0;
  const store = {
    prune: async (): Promise<number> => {
      batches += 1;
      return 1000;
    },
  };
  const task: RetentionTask = new RetentionTask({
    ...kept,
    store,
    pause: async () => {
      if (batches === 3) task.close();
    },
  });
  await task.run();
  assert.equal(batches, 3);
});
