/** issue 8.5: health as events: each change once, and no flood of a subject that flaps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HealthEvents } from '../../../src/features/health-events.ts';

function scene(): {
  readonly told: string[];
  readonly saw: (level: number, subject?: string) => void;
  readonly pass: (ms: number) => void;
} {
  let now = 0;
  const told: string[] = [];
  const timers = new Set<{ at: number; run: () => void }>();
  const events = new HealthEvents({
    tell: (type, data) => told.push(`${now} ${type} ${String(data['changes'])}`),
    clock: { now: () => now, wall: () => now },
    later: (ms, run) => {
      const timer = { at: now + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  });
  return {
    told,
    saw: (level, subject = 'a') => {
      events.saw({ subject, level, type: level === 0 ? 'well' : `bad${level}`, data: {} });
    },
    pass: (ms) => {
      now += ms;
      for (const timer of timers) {
        if (timer.at > now) continue;
        timers.delete(timer);
        timer.run();
      }
    },
  };
}

test('issue 8.5 what fails and comes back is reported at once, and once', () => {
  const { told, saw, pass } = scene();
  saw(0);
  saw(1);
  saw(1);
  pass(5000);
  saw(0);
  saw(0);
  assert.deepEqual(told, ['0 bad1 1', '5000 well 2']);
});

test('issue 8.5 what flaps is told twice a minute, and at its end as it stands', () => {
  const { told, saw, pass } = scene();
  for (let i = 0; i < 20; i++) {
    saw(1);
    pass(500);
    saw(0);
    pass(500);
  }
  assert.deepEqual(told, ['0 bad1 1', '500 well 1']);
  saw(1);
  pass(40_000);
  assert.deepEqual(told.slice(2), ['60000 bad1 39']);
  saw(0);
  assert.equal(told.length, 4);
});

test('issue 8.5 what failed again and came back within the minute is no news', () => {
  const { told, saw, pass } = scene();
  saw(1);
  saw(0);
  saw(1);
  saw(0);
  pass(120_000);
  assert.equal(told.length, 2);
});

test('issue 8.5 worse is news, less bad is not', () => {
  const { told, saw } = scene();
  for (const level of [1, 2, 1, 3, 2, 0]) saw(level);
  assert.deepEqual(told, ['0 bad1 1', '0 bad2 1', '0 bad3 2', '0 well 2']);
});

test('issue 8.5 subjects do not hinder each other, and there is an end to their number', () => {
  const { told, saw } = scene();
  for (let i = 0; i < 3000; i++) saw(1, `subject ${i}`);
  assert.equal(told.length, 3000);
});
