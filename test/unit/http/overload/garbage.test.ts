import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Script } from 'node:vm';
import {
  collectGarbage,
  type Collection,
  type LoadSample,
} from '../../../../src/http/overload/load.ts';
import { Overload } from '../../../../src/http/overload/overload.ts';
import { HeldClock, silentLog } from '../../access/fakes.ts';

// Before any other collection of this process.
test('V8 takes saved code after a collection as before it', () => {
  const text = 'function double(number) { return 2 * number; }';
  const cachedData = new Script(text, { filename: 'saved.js' }).createCachedData();
  collectGarbage('young');
  const { cachedDataRejected } = new Script(text, { filename: 'loaded.js', cachedData });
  assert.equal(cachedDataRejected, false);
});

test('G7 garbage between a few objects that live is given back to the system', () => {
  const all = Array.from({ length: 1_500_000 }, () => ({}));
  const few = all.filter((_, i) => i % 997 === 0);
  const full = process.memoryUsage().heapTotal;
  all.length = 0;
  collectGarbage('compact');
  const left = process.memoryUsage().heapTotal;
  assert.ok(left < full - 60_000_000, `${left} of ${full}`);
  assert.ok(few.length > 1000);
});

/** What a test sees and sets of a process that may use so many bytes. */
interface Rig {
  readonly overload: Overload;
  readonly collected: Collection[];
  /** What it uses at this moment. */
  readonly now: { rssBytes: number };
  /** A look at it. */
  look(rssBytes: number): void;
}

function rig(memoryBytes: number): Rig {
  let tell: (sample: LoadSample) => void = () => undefined;
  const collected: Collection[] = [];
  const now = { rssBytes: 0 };
  const clock = new HeldClock();
  const watch = (listener: typeof tell) => {
    tell = listener;
    return () => undefined;
  };
  const overload = new Overload({
    clock,
    log: silentLog,
    random: () => 0,
    limits: () => ({
      streams: 100,
      keySharePercent: 50,
      loopDelayMs: 25,
      bodyBytes: memoryBytes,
      memoryBytes,
      bodyRate: 1,
      badKeys: 1,
    }),
    load: Object.assign(watch, { rssBytes: () => now.rssBytes }),
    slowReaders: { cutStalest: () => false },
    memory: { process: memoryBytes, heap: memoryBytes },
    collectGarbage: (collection) => collected.push(collection),
  });
  overload.start();
  const look = (rssBytes: number): void => {
    clock.time += 10_000;
    now.rssBytes = rssBytes;
    tell({ rssBytes, heapShare: 0, delayMs: 0, busy: 0 });
  };
  return { overload, collected, now, look };
}

test('G7 as long as nobody is refused for it, garbage is collected in the usual way', () => {
  const { collected, look } = rig(1000);
  for (const rssBytes of [740, 760, 810, 930]) look(rssBytes);
  assert.deepEqual(collected, ['young', 'full', 'compact', 'compact']);
});

test('G5 values are refused by what the process uses when they are made, not by the last look', () => {
  const mb = 1_000_000;
  const { overload, collected, now, look } = rig(500 * mb);
  look(100 * mb);
  const share = overload.bodies.take('a', mb);
  assert.ok(share !== undefined);
  assert.equal(share.parsed(mb, 100_000), true);
  // Its values, what they were copied from, and reads of bodies that were refused.
  now.rssBytes = 390 * mb;
  assert.equal(share.parsed(mb, 200_000), false);
  now.rssBytes = 100 * mb;
  assert.equal(share.parsed(mb, 200_000), true);
  // Somebody was refused: it is collected at the next look, however little that finds.
  look(100 * mb);
  assert.deepEqual(collected, ['young', 'compact']);
});

test('G7 a process at rest trims its young generation once, and again after calls', () => {
  const { overload, collected, look } = rig(1000);
  look(100);
  look(100);
  assert.deepEqual(collected, ['young']);
  overload.enter('a');
  look(100);
  look(100);
  assert.deepEqual(collected, ['young'], 'a call runs');
  overload.calls.leave('a');
  look(100);
  assert.deepEqual(collected, ['young', 'young'], 'it ended');
  // A call between two samples is no rest.
  overload.enter('a');
  overload.calls.leave('a');
  look(100);
  assert.deepEqual(collected, ['young', 'young']);
  look(100);
  assert.deepEqual(collected, ['young', 'young', 'young']);
});

test('G7 a process at rest that holds much collects all garbage, and again where much has come since', () => {
  const mb = 1024 * 1024;
  const { overload, collected, now, look } = rig(1000 * mb);
  const rest = (rssBytes: number): void => {
    overload.enter('a');
    overload.calls.leave('a');
    look(rssBytes);
    look(rssBytes);
  };
  look(300 * mb);
  assert.deepEqual(collected, ['full']);
  now.rssBytes = 280 * mb;
  rest(330 * mb);
  assert.deepEqual(collected, ['full', 'young']);
  rest(370 * mb);
  assert.deepEqual(collected, ['full', 'young', 'full']);
});
