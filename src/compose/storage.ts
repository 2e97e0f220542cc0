/** Part of the composition root: where keys and ledger are stored, and who else uses that. */
import { join } from 'node:path';
import type { Settings } from '../config/settings.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import { systemClock } from '../observe/runtime.ts';
import type { Spent } from '../store/counters/counters.ts';
import { PostgresCounters } from '../store/counters/postgres-counters.ts';
import { RedisRates } from '../store/counters/redis-rates.ts';
import { SharedCounters } from '../store/counters/shared-counters.ts';
import { BudgetLeases } from '../store/leases/budget-leases.ts';
import { LeaseJournal, bootId } from '../store/leases/lease-journal.ts';
import type { PostgresStore } from '../store/postgres/postgres-store.ts';
import { openMemoryStore, openSqliteStore } from '../store/sqlite/sqlite-store.ts';
import { mayPass } from '../store/store-error.ts';
import type { Store } from '../store/store.ts';
import type { OpenedCounters } from './limits.ts';

export interface OpenedStorage {
  readonly store: Store;
  /** The same store, where other gateways may use it too. */
  readonly shared?: PostgresStore;
}

/** @throws StoreError; a shared book that is only away now is none: it is waited for. */
export async function openStorage(
  { storage, dataDir, ledger }: Pick<Settings, 'storage' | 'dataDir' | 'ledger'>,
  log: Log,
): Promise<OpenedStorage> {
  switch (storage.database) {
    case 'memory':
      return { store: openMemoryStore(systemClock) };
    case 'sqlite':
      return {
        store: await openSqliteStore({ path: join(dataDir, 'gateway.db'), log, ...ledger }),
      };
    case 'postgres': {
      const { openPostgresStore } = await import('../store/postgres/postgres-store.ts');
      const shared = await openPostgresStore({
        address: storage.postgres,
        log,
        clock: systemClock,
        random: Math.random,
        spoolDirectory: join(dataDir, 'spool'),
      });
      return { store: shared, shared };
    }
    default:
      return storage satisfies never;
  }
}

// Part of the composition root: limits and budgets that several gateways count together.

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
  const budgets = new BudgetLeases({ home: shared.budgets, instance, clock, log, journal });
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
