/**
 * Which epoch counts in Redis. Its name holds the number of `counter_mode` and the run of the server, so
 * that neither FLUSHALL, nor a restart, nor a failover that lost writes goes unseen.
 */
import type { Log } from '../core/runtime.ts';
import type { CounterMode, ModeRow } from './counter-mode.ts';
import type { RedisCounters } from './redis-counters.ts';
import { StoreError } from './store-error.ts';

export interface EpochKeeperOptions {
  readonly mode: CounterMode;
  readonly log: Log;
  /** Whether Redis counts again at once where PostgreSQL counts now. */
  mayEnter(): boolean;
  /** Tells PostgreSQL what calls of this gateway hold and spent. @throws StoreError */
  tell(asked: number): Promise<void>;
}

/** @throws StoreError when neither the epoch in Redis can be trusted nor a new one be built */
export async function currentEpoch(
  redis: RedisCounters,
  { mode, log, mayEnter, tell }: EpochKeeperOptions,
): Promise<string> {
  // Before what is in Redis: an epoch is there before the row names it.
  const row = await mode.read().catch((error: unknown) => asStoreError(error));
  const { epoch: present, run } = await redis.present();
  const nameOf = (epoch: number): string => `${epoch}.${run}`;
  if (row instanceof StoreError) {
    // Without the book Redis goes on with what it has.
    if (present?.endsWith(`.${run}`) === true) return present;
    throw row;
  }
  if (row.mode === 'redis' && present === nameOf(row.epoch)) return present;
  if (row.mode === 'postgres' && !mayEnter()) {
    throw new StoreError('unavailable', 'Budgets are counted in PostgreSQL for now.');
  }
  if ((await mode.read()).epoch !== row.epoch) throw beingBuilt();
  const begun = performance.now();
  // A later one is being filled.
  if (present !== undefined && Number.parseInt(present, 10) <= row.epoch) {
    await redis.clear(present);
  }
  await askAll(row, { mode, tell });
  let keys = 0;
  const epoch = await mode.enterRedis(
    async (locked) => {
      if (locked.mode === 'redis' && (await redis.present()).epoch === nameOf(locked.epoch))
        return true;
      if (locked.epoch !== row.epoch) throw beingBuilt();
      return false;
    },
    async (next, contents) => {
      await redis.clear();
      const found = { ...(await contents()), before: present };
      keys = found.settled.length;
      await redis.fill(nameOf(next), found);
    },
  );
  log.warn('counters_built', { epoch, budgets: keys, ms: Math.round(performance.now() - begun) });
  return nameOf(epoch);
}

function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  throw error;
}

/** Others were faster: the next who asks finds what they made. */
function beingBuilt(): StoreError {
  return new StoreError('unavailable', 'The counters are being built by another gateway.');
}

/** @throws StoreError */
async function askAll(
  row: ModeRow,
  { mode, tell }: Pick<EpochKeeperOptions, 'mode' | 'tell'>,
): Promise<void> {
  const asked = await mode.askAll(row);
  if (asked === undefined) throw beingBuilt();
  await tell(asked);
  await mode.allTold(asked);
}
