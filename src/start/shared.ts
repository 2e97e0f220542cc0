/** Part of the composition root: limits and budgets that several gateways count together. */
import type { Settings } from '../config/settings.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import type { OpenedCounters } from './limits.ts';
import { PostgresCounters } from '../store/postgres-counters.ts';
import type { Spent } from '../store/counters.ts';
import type { PostgresStore } from '../store/postgres.ts';
import { mayPass } from '../store/store-error.ts';

export interface SharedCountersOptions {
  readonly shared: PostgresStore;
  readonly settings: Pick<Settings, 'storage'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: NewId;
}

/**
 * Redis with PostgreSQL behind it, or PostgreSQL alone. Servers that are away now are no failure.
 * @throws StoreError
 */
export async function openSharedCounters(options: SharedCountersOptions): Promise<OpenedCounters> {
  const { shared, clock } = options;
  const opened = await open(options);
  return { ...opened, spent: await whatIsSpent(shared, clock) };
}

/** While the book is away or locked nothing is known; the upkeep tells it later. */
async function whatIsSpent(shared: PostgresStore, clock: Clock): Promise<readonly Spent[]> {
  try {
    return await shared.spent(clock.wall());
  } catch (error) {
    if (mayPass(error)) return [];
    throw error;
  }
}

async function open({
  shared,
  settings: { storage },
  clock,
  log,
  newId,
}: SharedCountersOptions): Promise<Omit<OpenedCounters, 'spent'>> {
  const { server } = shared;
  if (storage.book !== 'postgres' || storage.redis === undefined) {
    return { counters: new PostgresCounters({ server, clock, log }) };
  }
  const { redis, tenant, onStoreLoss } = storage;
  const { openRedis } = await import('../store/redis-client.ts');
  const { openSharedCounters: openBoth } = await import('../store/open-shared-counters.ts');
  const client = await openRedis(redis, Math.random);
  const instance = newId('gw_');
  const both = { client, server, tenant, instance, clock, log, onStoreLoss };
  const counters = await openBoth(both);
  return { counters, release: () => client.disconnect() };
}
