/** Part of the composition root: limits and budgets that several gateways count together. */
import type { Settings } from './config/settings.ts';
import type { Clock, Log } from './core/runtime.ts';
import type { OpenedCounters } from './start-limits.ts';
import { PostgresCounters } from './store/postgres-counters.ts';
import type { PostgresStore } from './store/postgres.ts';

export interface SharedCountersOptions {
  readonly shared: PostgresStore;
  readonly settings: Pick<Settings, 'storage'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws StoreError */
export async function openSharedCounters(options: SharedCountersOptions): Promise<OpenedCounters> {
  const { shared, clock, log } = options;
  const counters = new PostgresCounters({ server: shared.server, clock, log });
  // While the book is away nothing is known; the upkeep tells it later.
  const spent = shared.server.up ? await shared.spent(clock.wall()) : [];
  return { counters, spent };
}
