/** One of several gateways, as far as it counts, on real servers. */
import assert from 'node:assert/strict';
import type { Log } from '../../src/core/runtime.ts';
import { systemClock } from '../../src/observe/clock.ts';
import type { Balance, Draw } from '../../src/store/counters.ts';
import { openSharedCounters } from '../../src/store/open-shared-counters.ts';
import type { RedisClient } from '../../src/store/redis-client.ts';
import type { SharedCounters } from '../../src/store/shared-counters.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { openTestStore, until, type TestStore } from '../support/postgres-store.ts';
import type { TestRedis } from '../support/redis.ts';
import { costing } from '../store/rows.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { openTestRedis } from './redis-rig.ts';
import { drawOf, fresh, type Wanted } from './rig.ts';

export interface Gateway {
  readonly counters: SharedCounters;
  readonly client: RedisClient;
  readonly store: TestStore;
  /** Of the database. */
  readonly url: string;
  readonly log: readonly string[];
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
  const counters = await openSharedCounters({
    client,
    server: store.store.server,
    tenant: at.tenant,
    instance: fresh('gateway'),
    clock: systemClock,
    log,
    returnAfterMs: 300,
    ...more,
  });
  return {
    counters,
    client,
    store,
    url: at.url,
    log: lines,
    close: async () => {
      await counters.close();
      client.disconnect();
      await store.close();
    },
  };
}

export const limit = 1_000_000_000;

export function paying(counter: string, amount: number, more: Wanted = {}): Draw {
  const window = { window: 'ever', endsAt: undefined, nanodollars: limit };
  return drawOf({ budgets: [{ counter, ...window, amount }], ...more });
}

/** How the draw ended: `granted`, the kind that refused, or `unavailable`. */
export async function outcome(gateway: Gateway, draw: Draw): Promise<string> {
  try {
    const result = await gateway.counters.draw(draw);
    return result.granted ? 'granted' : result.kind;
  } catch (error) {
    assert.ok(error instanceof StoreError, String(error));
    return error.kind;
  }
}

/** Draws until it is granted or refused. */
export async function answered(gateway: Gateway, draw: () => Draw): Promise<string> {
  let last = 'unavailable';
  await until(async () => {
    last = await outcome(gateway, draw());
    return last !== 'unavailable';
  }, 'budgets are counted again');
  return last;
}

/** What is settled and open, as soon as somebody can say. */
export async function balanceOf({ counters }: Gateway, counter: string): Promise<Balance> {
  let told: Balance | undefined;
  await until(async () => {
    told = await counters.balance(counter, 'ever').catch(() => undefined);
    return told !== undefined;
  }, 'the balance is told');
  assert.ok(told);
  return told;
}

/** Books a quarter of the limit for each of several budgets: `counter`, and others behind its name. */
export async function spendSome(
  { store }: Gateway,
  { counter, budgets }: { readonly counter: string; readonly budgets: number },
): Promise<void> {
  const rows = Array.from({ length: budgets }, (_, i) => {
    const name = i === 0 ? counter : `${counter}-${i}`;
    const windows = [{ counter: name, window: 'ever' }];
    return callRow(fresh('call_'), { budgets: windows, ...costing(limit / 4) });
  });
  await store.store.recordCalls(rows);
}
