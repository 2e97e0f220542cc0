/** Part of the composition root: limits and budgets that several gateways count together. It is loaded by these only. */
import { join } from 'node:path';
import { overEverywhere } from '../access/windows.ts';
import type { Settings } from '../config/settings.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import type { Spent } from '../store/counters/counters.ts';
import { PostgresCounters } from '../store/counters/postgres-counters.ts';
import { RedisRates } from '../store/counters/redis-rates.ts';
import { SharedCounters } from '../store/counters/shared-counters.ts';
import { BudgetLeases } from '../store/leases/budget-leases.ts';
import { LeaseExpiry } from '../store/leases/lease-expiry.ts';
import { LeaseJournal, bootId } from '../store/leases/lease-journal.ts';
import type { PostgresStore } from '../store/postgres/postgres-store.ts';
import { mayPass } from '../store/store-error.ts';
import type { OpenedCounters } from './limits.ts';

interface SharedCountersOptions {
  readonly shared: PostgresStore;
  readonly settings: Pick<Settings, 'storage' | 'dataDir'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: NewId;
}

/**
 * Budgets in PostgreSQL; rates and slots in Redis, or in PostgreSQL too. A server that cannot be reached at the start is not a failure.
 * @throws StoreError
 */
export async function openSharedCounters(options: SharedCountersOptions): Promise<OpenedCounters> {
  const { shared, clock } = options;
  const opened = await open(options);
  return { ...opened, spent: await whatIsSpent(shared, clock) };
}

/** While the store is away or locked nothing is known; the upkeep reports it later. */
async function whatIsSpent(shared: PostgresStore, clock: Clock): Promise<readonly Spent[]> {
  try {
    return await shared.calls.spent(overEverywhere(clock.wall()));
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
  const expiry = new LeaseExpiry({ register: shared, clock, log, left: journal.left });
  const budgets = new BudgetLeases({ home: shared.budgets, instance, clock, log, journal });
  shared.onAsked((counter, window) => budgets.asked(counter, window));
  const isPostgres = storage.database === 'postgres';
  const both = { budgets, clock, log, onStoreLoss: isPostgres ? storage.onStoreLoss : 'closed' };
  if (!isPostgres || storage.redis === undefined) {
    const rates = new PostgresCounters({ server, clock, log });
    const counters = new SharedCounters({ ...both, rates });
    return { counters, expiry, release: () => journal.close() };
  }
  const { redis: address, tenant } = storage;
  const { openRedis, reportOutages } = await import('../store/counters/redis-client.ts');
  const { RedisCounters } = await import('../store/counters/redis-counters.ts');
  const client = await openRedis(address, Math.random);
  reportOutages(client, address, log);
  const redis = new RedisCounters({ client, tenant, clock, log });
  const isStoreUp = (): boolean => server.up;
  const rates = new RedisRates({ redis, clock, log, instance, isStoreUp });
  await rates.begin();
  return {
    counters: new SharedCounters({ ...both, rates }),
    expiry,
    release: () => {
      client.disconnect();
      journal.close();
    },
  };
}
