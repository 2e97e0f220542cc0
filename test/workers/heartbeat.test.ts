/** A process of the gateway that stops to answer is noticed, and one that stood still itself blames nobody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchHeartbeat } from '../../src/compose/workers/processes.ts';

test('silence for longer than the bound is reported, and answers put it off', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  let answers = true;
  let told = 0;
  const stop = watchHeartbeat({
    ping: () => (answers ? Promise.resolve() : Promise.reject(new Error('silent'))),
    silentMs: 30_000,
    silent: () => void (told += 1),
    now: () => now,
  });
  const beats = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) {
      now += 1000;
      t.mock.timers.tick(1000);
      await Promise.resolve();
    }
  };
  await beats(100);
  assert.equal(told, 0);
  answers = false;
  await beats(30);
  assert.equal(told, 0, 'the bound is not over');
  await beats(1);
  assert.equal(told, 1);
  await beats(100);
  assert.equal(told, 1, 'one silence is told once');
  answers = true;
  await beats(1);
  answers = false;
  await beats(32);
  assert.equal(told, 2, 'the next one is told again');
  stop();
  answers = true;
  await beats(1);
  answers = false;
  await beats(100);
  assert.equal(told, 2, 'nothing is told after its end');
});

test('a process that stood still itself gives the other side its time anew', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  let told = 0;
  const stop = watchHeartbeat({
    ping: () => Promise.reject(new Error('silent')),
    silentMs: 30_000,
    silent: () => void (told += 1),
    now: () => now,
  });
  now += 3_600_000;
  t.mock.timers.tick(1000);
  assert.equal(told, 0);
  for (let i = 0; i < 31; i += 1) {
    now += 1000;
    t.mock.timers.tick(1000);
  }
  assert.equal(told, 1);
  stop();
});
