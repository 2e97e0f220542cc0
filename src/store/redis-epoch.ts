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
    // Without the book Redis goes on with what it has, but not with what the book may never have named.
    const isNamed = mode.named === undefined || numberOf(present) <= mode.named;
    if (present?.endsWith(`.${run}`) === true && isNamed) return present;
    throw row;
  }
  const isOver = row.asked > row.epoch;
  if (row.mode === 'redis' && present === nameOf(row.epoch) && !isOver) return present;
  if (row.mode === 'postgres' && !mayEnter()) {
    throw new StoreError('unavailable', 'Budgets are counted in PostgreSQL for now.');
  }
  if ((await mode.read()).epoch !== row.epoch) throw beingBuilt();
  return build(redis, { mode, log, tell, row, present, nameOf });
}

interface Building extends Pick<EpochKeeperOptions, 'mode' | 'log' | 'tell'> {
  readonly row: ModeRow;
  /** What is in Redis, and does not count. */
  readonly present: string | undefined;
  nameOf(epoch: number): string;
}

async function build(
  redis: RedisCounters,
  { mode, log, tell, row, present, nameOf }: Building,
): Promise<string> {
  const begun = performance.now();
  // A later one is being filled.
  if (present !== undefined && numberOf(present) <= row.epoch) await redis.clear(present);
  await askAll(row, { mode, tell });
  let keys = 0;
  const epoch = await mode.enterRedis(
    async (locked) => {
      if (locked.epoch === row.epoch) return false;
      const { epoch: built } = await redis.present();
      if (locked.mode === 'redis' && built === nameOf(locked.epoch)) return true;
      throw beingBuilt();
    },
    async (next, contents) => {
      await redis.clear();
      const found = { ...(await contents()), before: present };
      keys = found.settled.length;
      await redis.fill(nameOf(next), found);
    },
    numberOf(present),
  );
  log.warn('counters_built', { epoch, budgets: keys, ms: Math.round(performance.now() - begun) });
  return nameOf(epoch);
}

function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  throw error;
}

function numberOf(epoch: string | undefined): number {
  return epoch === undefined ? 0 : Number.parseInt(epoch, 10);
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
