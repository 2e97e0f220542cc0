/** Counters of one process. */
import { HeldClock } from '../unit/access/parts.ts';
import { MemoryCounters } from '../../src/store/memory-counters.ts';
import type { Rig } from './rig.ts';
import { properties } from './properties.ts';
import { suite } from './suite.ts';

function memoryRig(): Rig {
  const clock = new HeldClock();
  const counters = new MemoryCounters(clock);
  return {
    counters,
    pass: async (ms) => {
      clock.time += ms;
    },
    settled: async () => {},
    close: () => counters.close(),
  };
}

const rig = memoryRig();
suite('memory', () => rig);
properties('memory', () => rig, 400);
