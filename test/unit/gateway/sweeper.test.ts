import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sweeper, sweepEveryMs, type Swept } from '../../../src/gateway/deadlines.ts';
import { HeldClock } from '../access/fakes.ts';

interface Item extends Swept {
  readonly told: string[];
}

function item(id: string): Item {
  const told: string[] = [];
  return {
    id,
    index: -1,
    told,
    check: () => told.push('check'),
    end: ({ code }) => told.push(code),
  };
}

function scene(stillMs?: number) {
  const clock = new HeldClock();
  const sweeper = new Sweeper(clock, stillMs === undefined ? {} : { stillMs });
  const items = [item('a'), item('b'), item('c')] as const;
  for (const each of items) sweeper.add(each);
  const told = (): readonly (readonly string[])[] => items.map((each) => each.told.splice(0));
  return { clock, sweeper, items, told };
}

test('Q1 F81: calls end when the process stood still for so long that others settled them', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { clock, told } = scene(20_000);
  const all = (word: string): string[][] => [[word], [word], [word]];
  clock.time += 20_000;
  t.mock.timers.tick(2 * sweepEveryMs);
  assert.deepEqual(told(), all('check'));
  clock.time += 20_001;
  t.mock.timers.tick(sweepEveryMs);
  assert.deepEqual(told(), all('store_unavailable'));
});

test('F8: what came while the process stood still is read before it is missed; a loop that is always late looks nevertheless', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { clock, told } = scene();
  const looks = [1, 3, 1, 3, 3, 3, 3, 2].map((turns) => {
    clock.time += turns * sweepEveryMs;
    t.mock.timers.tick(sweepEveryMs);
    return told()[0]?.length;
  });
  assert.deepEqual(looks, [1, 0, 1, 0, 1, 0, 1, 1]);
});

test('F80: where nobody else settles calls, one that stood still continues', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { clock, told, sweeper } = scene();
  clock.time += 3_600_000;
  t.mock.timers.tick(2 * sweepEveryMs);
  assert.deepEqual(told(), [['check'], ['check'], ['check']]);
  sweeper.shutDown();
  assert.deepEqual(told(), [['shutting_down'], ['shutting_down'], ['shutting_down']]);
});

test('Q1: what stood still before the first call is nothing to end it for', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { clock, items, sweeper, told } = scene(20_000);
  for (const each of items) sweeper.delete(each);
  clock.time += 60_000;
  const [first] = items;
  sweeper.add(first);
  t.mock.timers.tick(sweepEveryMs);
  assert.deepEqual(told(), [['check'], [], []]);
  sweeper.delete(first);
});

test('Q1 F81: calls that another gateway has settled end, the others continue', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { sweeper, told } = scene(20_000);
  sweeper.endSettled(new Set(['b', 'unknown']));
  assert.deepEqual(told(), [[], ['store_unavailable'], []]);
});

test('F81: every call that others settled ends, the first and the last one too', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { sweeper, told } = scene();
  sweeper.endSettled(new Set(['a', 'c']));
  assert.deepEqual(told(), [['store_unavailable'], [], ['store_unavailable']]);
});
