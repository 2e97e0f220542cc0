/** Part of the composition root: limits and budgets that several gateways count together. */
import type { Clock, Log } from './core/runtime.ts';
import type { OpenedCounters } from './start-limits.ts';
import { MemoryCounters } from './store/memory-counters.ts';
import type { PostgresStore } from './store/postgres.ts';

export interface SharedCountersOptions {
  readonly shared: PostgresStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws StoreError */
export async function openSharedCounters({
  shared,
  clock,
}: SharedCountersOptions): Promise<OpenedCounters> {
  const spent = shared.server.up ? await shared.spent(clock.wall()) : [];
  const counters = new MemoryCounters(clock);
  counters.restore(spent);
  return { counters, spent };
}
