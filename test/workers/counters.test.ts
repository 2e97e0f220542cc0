/** The counters of a worker are its parent's: the suite of all counters, over a socket. */
import { MemoryCounters } from '../../src/store/counters/memory-counters.ts';
import { memoryStore } from '../support/memory-store.ts';
import { RemoteCounters } from '../../src/compose/workers/session.ts';
import { properties } from '../counters/properties.ts';
import type { Rig } from '../counters/rig.ts';
import { suite } from '../counters/suite.ts';
import { HeldClock } from '../unit/access/fakes.ts';
import { linkSession } from './linked.ts';
import { after } from 'node:test';

const clock = new HeldClock();
const book = await linkSession(memoryStore(), new MemoryCounters(clock), clock);
after(() => book.close());
const counters = new RemoteCounters({
  link: book.link,
  clock,
  state: () => ({ aheadMs: 0, countersUp: true }),
});
const rig: Rig = {
  counters,
  pass: async (ms) => {
    clock.time += ms;
  },
  // What is asked behind a settlement is answered behind it.
  settled: async () => {
    await counters.balance('none', 'ever');
  },
  close: () => counters.close(),
};

suite('worker', () => rig);
properties('worker', () => rig, 100);
