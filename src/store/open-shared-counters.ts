/** Puts together what counts for several gateways where there is a Redis. */
import type { Clock, Log } from '../core/runtime.ts';
import { CounterMode } from './counter-mode.ts';
import { PostgresCounters } from './postgres-counters.ts';
import type { PostgresServer } from './postgres-server.ts';
import type { RedisClient } from './redis-client.ts';
import { RedisCounters } from './redis-counters.ts';
import { currentEpoch } from './redis-epoch.ts';
import { SharedCounters } from './shared-counters.ts';

export interface OpenSharedCountersOptions {
  readonly client: RedisClient;
  readonly server: PostgresServer;
  readonly tenant: string;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly onStoreLoss?: 'closed' | 'open';
  readonly returnAfterMs?: number;
}

/** Looks once for where budgets are counted; servers that are away now are no failure. */
export async function openSharedCounters(
  options: OpenSharedCountersOptions,
): Promise<SharedCounters> {
  const { client, server, tenant, instance, clock, log } = options;
  let fills = 0;
  const mode = new CounterMode({ server, tenant, clock });
  const redis: RedisCounters = new RedisCounters({
    client,
    tenant,
    clock,
    log,
    epoch: () =>
      currentEpoch(redis, {
        mode,
        log,
        mayEnter: () => shared.returning,
        newToken: () => `${instance}-${(fills += 1)}`,
        tell: (asked) => shared.tell(asked),
      }),
  });
  const postgres = new PostgresCounters({ server, clock, log, tenant });
  const shared: SharedCounters = new SharedCounters({
    redis,
    postgres,
    mode,
    instance,
    clock,
    log,
    onStoreLoss: options.onStoreLoss ?? 'closed',
    ...(options.returnAfterMs === undefined ? {} : { returnAfterMs: options.returnAfterMs }),
  });
  await shared.begin();
  return shared;
}
