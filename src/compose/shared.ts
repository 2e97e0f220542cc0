/** Part of the composition root: limits and budgets that several gateways count together. */
import { join } from 'node:path';
import type { Settings } from '../config/settings.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import type { OpenedCounters } from './limits.ts';
import { BudgetLeases } from '../store/leases/budget-leases.ts';
import { bootId, LeaseJournal } from '../store/leases/lease-journal.ts';
import { PostgresCounters } from '../store/counters/postgres-counters.ts';
import { RedisRates } from '../store/counters/redis-rates.ts';
import { SharedCounters } from '../store/counters/shared-counters.ts';
import type { Spent } from '../store/counters/counters.ts';
import type { PostgresStore } from '../store/postgres/postgres-store.ts';
import { mayPass } from '../store/store-error.ts';

export interface SharedCountersOptions {
  readonly shared: PostgresStore;
  readonly settings: Pick<Settings, 'storage' | 'dataDir'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: NewId;
}

/**
 * Budgets in PostgreSQL; rates and places in Redis, or in PostgreSQL too. Servers that are away now are not failure.
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
    return await shared.calls.spent(clock.wall());
  } catch (error) {
    if (mayPass(error)) return [];
    throw error;
  }
}

async function open({
  shared,
  settings: { storage, dataDir },
  clock,
  log,
  newId,
}: SharedCountersOptions): Promise<Omit<OpenedCounters, 'spent'>> {
  const { server } = shared;
  const instance = newId('gw_');
  const directory = join(dataDir, 'leases');
  const journal = new LeaseJournal({ directory, instance, log, boot: bootId() });
  const { left } = journal;
  const budgets = new BudgetLeases({ home: shared.budgets, instance, clock, journal });
  shared.onAsked((counter, window) => budgets.asked(counter, window));
  const isPostgres = storage.database === 'postgres';
  const both = { budgets, clock, log, onStoreLoss: isPostgres ? storage.onStoreLoss : 'closed' };
  if (!isPostgres || storage.redis === undefined) {
    const rates = new PostgresCounters({ server, clock, log });
    const counters = new SharedCounters({ ...both, rates });
    return { counters, left, release: () => journal.close() };
  }
  const { redis: address, tenant } = storage;
  const { openRedis } = await import('../store/counters/redis-client.ts');
  const { RedisCounters } = await import('../store/counters/redis-counters.ts');
  const client = await openRedis(address, Math.random);
  const redis = new RedisCounters({ client, tenant, clock, log });
  const isStoreUp = (): boolean => server.up;
  const rates = new RedisRates({ redis, clock, log, instance, isStoreUp });
  await rates.begin();
  return {
    counters: new SharedCounters({ ...both, rates }),
    left,
    release: () => {
      client.disconnect();
      journal.close();
    },
  };
}
