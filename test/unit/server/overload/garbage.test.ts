import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage, type LoadSample } from '../../../../src/server/overload/load.ts';
import { Overload } from '../../../../src/server/overload/overload.ts';
import { HeldClock, silentLog } from '../../access/parts.ts';

test('G7 garbage between a few objects that live is given back to the system', () => {
  const all = Array.from({ length: 1_500_000 }, () => ({}));
  const few = all.filter((_, i) => i % 997 === 0);
  const full = process.memoryUsage().heapTotal;
  all.length = 0;
  collectGarbage(true);
  const left = process.memoryUsage().heapTotal;
  assert.ok(left < full - 60_000_000, `${left} of ${full}`);
  assert.ok(few.length > 1000);
});

test('G7 as long as nobody is refused for it, garbage is collected in the usual way', () => {
  let tell: (sample: LoadSample) => void = () => undefined;
  const collected: boolean[] = [];
  const clock = new HeldClock();
  const overload = new Overload({
    clock,
    log: silentLog,
    random: () => 0,
    limits: () => ({
      streams: 100,
      keyShare: 0.5,
      loopDelayMs: 25,
      bodyBytes: 1000,
      memoryBytes: 1000,
      bodyRate: 1,
      badKeys: 1,
    }),
    load: (listener) => {
      tell = listener;
      return () => undefined;
    },
    slowReaders: { cutStalest: () => false },
    memory: { process: 1000, heap: 1000 },
    collectGarbage: (thorough) => collected.push(thorough),
  });
  overload.start();
  for (const rssBytes of [740, 760, 810, 930]) {
    clock.time += 10_000;
    tell({ rssBytes, heapShare: 0, delayMs: 0, busy: 0 });
  }
  assert.deepEqual(collected, [false, true, true]);
});
