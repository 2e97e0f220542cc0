import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SlowBodies, type ComingBody } from '../../../../src/http/overload/body-budget.ts';
import { HeldClock } from '../../access/fakes.ts';

const rate = 16 * 1024;

interface Coming extends ComingBody {
  refused: number;
}

function scene(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const clock = new HeldClock();
  const bodies = new SlowBodies({ clock, rate: () => rate });
  const body = (): Coming => {
    const coming = { received: 0, refused: 0, tooSlow: () => void (coming.refused += 1) };
    return coming;
  };
  const pass = (seconds: number): void => {
    for (let i = 0; i < seconds; i++) {
      clock.time += 1000;
      t.mock.timers.tick(1000);
    }
  };
  return { bodies, body, clock, pass };
}

test('G10 a body that does not come at all is refused after the grace, once', (t) => {
  const { bodies, body, pass } = scene(t);
  const silent = body();
  bodies.watch(silent);
  pass(5);
  assert.equal(silent.refused, 0);
  pass(1);
  assert.equal(silent.refused, 1);
  assert.equal(bodies.size, 0);
  pass(100);
  assert.equal(silent.refused, 1);
});

test('G10 a body at the rate is read for as long as it takes', (t) => {
  const { bodies, body, pass } = scene(t);
  const steady = body();
  bodies.watch(steady);
  // 32 MB take half an hour.
  for (let i = 0; i < 2048; i++) {
    steady.received += rate;
    pass(1);
  }
  assert.equal(steady.received, 32 * 1024 ** 2);
  assert.equal(steady.refused, 0);
});

test('G10 one byte a second is too slow, and much at first buys five seconds only', (t) => {
  const { bodies, body, pass } = scene(t);
  const dripping = body();
  const stalled = body();
  bodies.watch(dripping);
  bodies.watch(stalled);
  stalled.received = 31 * 1024 ** 2;
  for (let i = 0; i < 6; i++) {
    dripping.received += 1;
    pass(1);
  }
  assert.equal(dripping.refused, 1);
  assert.equal(stalled.refused, 0);
  pass(1);
  assert.equal(stalled.refused, 1);
});

test('G10 the time in which the gateway itself stood still is owed by nobody', (t) => {
  const { bodies, body, clock, pass } = scene(t);
  const waiting = body();
  bodies.watch(waiting);
  clock.time += 60_000;
  pass(1);
  assert.equal(waiting.refused, 0);
  waiting.received += 2 * rate;
  pass(1);
  assert.equal(waiting.refused, 0);
  pass(6);
  assert.equal(waiting.refused, 1);
});

test('G10 a body that is there is not watched any more, whatever place it had', (t) => {
  const { bodies, body, pass } = scene(t);
  const three = [body(), body(), body()];
  const ends = three.map((each) => bodies.watch(each));
  ends[0]?.();
  ends[0]?.();
  assert.equal(bodies.size, 2);
  pass(6);
  assert.deepEqual(
    three.map(({ refused }) => refused),
    [0, 1, 1],
  );
  const later = body();
  bodies.watch(later);
  pass(6);
  assert.equal(later.refused, 1);
});
