/**
 * What a reservation and its settlement cost in memory: `node bench/counters.ts`. One of each kind of limit, on
 * one of 5,000 keys, CPU time of the whole process.
 */
import { systemClock } from '../src/observe/runtime.ts';
import { MemoryCounters } from '../src/store/counters/memory-counters.ts';

const calls = 200_000;
const keys = 5000;
const counters = new MemoryCounters(systemClock);
const held = Array.from({ length: keys }, (_, key) => ({
  concurrent: [{ counter: `key:${key}:concurrent`, most: 10 }],
  requests: [{ counter: `key:${key}:requests`, perMinute: 1e9 }],
  tokens: [{ counter: `key:${key}:tokens`, perMinute: 1e10, amount: 1000 }],
  budgets: [
    {
      counter: `key:${key}:month`,
      window: '2026-11',
      endsAt: 2e12,
      nanodollars: 9e15,
      amount: 1_000_000,
    },
  ],
}));
const used = { tokens: 500, nanodollars: 600_000 };

function microseconds(work: () => void): string {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) / calls).toFixed(2);
}

for (let round = 0; round < 3; round++) {
  const requests = Array.from({ length: calls }, (_, i) => ({
    callId: `call_${round}_${i}`,
    ...(held[(i * 7919) % keys] ?? { concurrent: [], requests: [], tokens: [], budgets: [] }),
  }));
  const both = microseconds(() => {
    for (const request of requests) {
      if (!counters.reserve(request).granted) throw new Error('refused');
      counters.settle(request.callId, used);
    }
  });
  process.stdout.write(
    `${both} µs a reservation and its settlement, ${counters.size} remembered\n`,
  );
}
