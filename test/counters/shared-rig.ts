/** One of several gateways, as far as it counts, on real servers. */
import assert from 'node:assert/strict';
import type { Log } from '../../src/core/runtime.ts';
import { systemClock } from '../../src/observe/runtime.ts';
import { BudgetLeases } from '../../src/store/leases/budget-leases.ts';
import type { DeadLeases } from '../../src/store/leases/lease-expiry.ts';
import type { BudgetHome } from '../../src/store/leases/lease-home.ts';
import type { TakenLease } from '../../src/store/leases/lease-journal.ts';
import type { ReserveRequest } from '../../src/store/counters/counters.ts';
import { RedisCounters } from '../../src/store/counters/redis-counters.ts';
import type { RedisClient } from '../../src/store/counters/redis-client.ts';
import { RedisRates } from '../../src/store/counters/redis-rates.ts';
import { SharedCounters } from '../../src/store/counters/shared-counters.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import type { TestRedis } from '../support/redis.ts';
import { openTestRedis } from './redis-rig.ts';
import { requestOf, fresh, type Wanted } from './rig.ts';

export interface Gateway {
  readonly counters: SharedCounters;
  readonly budgets: BudgetLeases;
  readonly rates: RedisRates;
  readonly client: RedisClient;
  readonly store: TestStore;
  /** Of the database. */
  readonly url: string;
  readonly log: readonly string[];
  /** What its journal proves. */
  left(): DeadLeases;
  /** How often it has stated its leases. */
  statements(): number;
  close(): Promise<void>;
}

export async function openGateway(
  at: { redis: Pick<TestRedis, 'url'>; url: string; tenant: string },
  more: { readonly onStoreLoss?: 'open' } = {},
): Promise<Gateway> {
  const store = await openTestStore(at.url);
  const client = await openTestRedis(at.redis);
  const lines: string[] = [];
  const note = (event: string, fields: object = {}): void => {
    lines.push(`${event} ${JSON.stringify(fields)}`);
  };
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const clock = systemClock;
  const instance = fresh(`gw_${process.pid}_`);
  const taken = new Map<string, TakenLease>();
  const journal = {
    note: ({ counter, window, taken: n }: TakenLease): void => {
      taken.set(counter, { counter, window, taken: n });
    },
    mayReserve: () => true,
  };
  let statements = 0;
  const home: BudgetHome = {
    state: (statement) => {
      statements += 1;
      return store.store.budgets.state(statement);
    },
    revive: (dead) => store.store.budgets.revive(dead),
    balance: (...asked) => store.store.budgets.balance(...asked),
  };
  const budgets = new BudgetLeases({ home, instance, clock, log, journal });
  store.store.onAsked((counter, window) => budgets.asked(counter, window));
  store.store.watch(() => undefined);
  const redis = new RedisCounters({ client, tenant: at.tenant, clock, log });
  const isStoreUp = (): boolean => store.store.server.up;
  const rates = new RedisRates({ redis, clock, log, instance, isStoreUp });
  await rates.begin();
  const onStoreLoss = more.onStoreLoss ?? 'closed';
  const counters = new SharedCounters({ rates, budgets, clock, log, onStoreLoss });
  // What runs is booked as in a gateway.
  store.store.onWritten((rows) => counters.written(rows));
  return {
    counters,
    budgets,
    rates,
    client,
    store,
    url: at.url,
    log: lines,
    left: () => ({ instance, leases: [...taken.values()] }),
    statements: () => statements,
    close: async () => {
      await counters.close();
      client.disconnect();
      await store.close();
    },
  };
}

export const limit = 1_000_000_000;

export function paying(counter: string, amount: number, more: Wanted = {}): ReserveRequest {
  const window = { window: 'ever', endsAt: undefined, nanodollars: limit };
  return requestOf({ budgets: [{ counter, ...window, amount }], ...more });
}

/** How the reservation ended: `granted`, the kind that refused, or `unavailable`. */
export async function outcome(
  gateway: Pick<Gateway, 'counters'>,
  request: ReserveRequest,
): Promise<string> {
  try {
    const result = await gateway.counters.reserve(request);
    return result.granted ? 'granted' : result.kind;
  } catch (error) {
    assert.ok(error instanceof StoreError, String(error));
    return error.kind;
  }
}

/** Reserves until it is granted or refused. */
export async function answered(gateway: Gateway, request: () => ReserveRequest): Promise<string> {
  let last = 'unavailable';
  await until(async () => {
    last = await outcome(gateway, request());
    return last !== 'unavailable';
  }, 'budgets are counted again');
  return last;
}
