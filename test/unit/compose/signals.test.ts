/** What counts as a signal to stop, and what as the same key press (A14). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { samePressMs, Signals, type Signal } from '../../../src/compose/signals.ts';

function scene(): { readonly heard: Signal[]; readonly signals: Signals; wait(ms: number): void } {
  let now = 0;
  const signals = new Signals(() => now);
  const heard: Signal[] = [];
  signals.handle((signal) => heard.push(signal));
  return { heard, signals, wait: (ms) => (now += ms) };
}

test('A14 one Ctrl-C under npm start, which arrives twice, is one; pressed again it is another', () => {
  const { heard, signals, wait } = scene();
  signals.heard('SIGINT');
  wait(samePressMs - 1);
  signals.heard('SIGINT');
  assert.deepEqual(heard, ['SIGINT']);
  wait(1);
  signals.heard('SIGINT');
  assert.deepEqual(heard, ['SIGINT', 'SIGINT']);
});

test('A14 a supervisor that sends SIGTERM twice means it', () => {
  const { heard, signals } = scene();
  signals.heard('SIGTERM');
  signals.heard('SIGTERM');
  signals.heard('SIGINT');
  assert.deepEqual(heard, ['SIGTERM', 'SIGTERM', 'SIGINT']);
});
