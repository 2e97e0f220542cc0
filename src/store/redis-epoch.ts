/**
 * Which epoch counts in Redis. Its name holds the number of `counter_mode` and the run of the server, so
 * that neither FLUSHALL, nor a restart, nor a failover that lost writes goes unseen; and who filled it, so that
 * one who stood still meanwhile writes into nothing that others filled.
 */
import type { Log } from '../core/runtime.ts';
import type { CounterMode, FilledEpoch, LockedMode, ModeRow } from './counter-mode.ts';
import type { RedisCounters } from './redis-counters.ts';
import { beingBuilt, type EpochContents } from './redis-fill.ts';
import { StoreError } from './store-error.ts';

export interface EpochKeeperOptions {
  readonly mode: CounterMode;
  readonly log: Log;
  /** Whether Redis counts again at once where PostgreSQL counts now. */
  mayEnter(): boolean;
  /** Another one for each epoch that is filled, also by other gateways. */
  newToken(): string;
  /** Tells PostgreSQL what calls of this gateway hold and spent. @throws StoreError */
  tell(asked: number): Promise<void>;
}

/** @throws StoreError when neither the epoch in Redis can be trusted nor a new one be built */
export async function currentEpoch(
  redis: RedisCounters,
  { mode, log, mayEnter, newToken, tell }: EpochKeeperOptions,
): Promise<string> {
  // Before what is in Redis: an epoch is there before the row names it.
  const row = await mode.read().catch((error: unknown) => asStoreError(error));
  const { epoch: present, run } = await redis.present();
  if (row instanceof StoreError) {
    // Without the book Redis goes on with what it has, but not with what the book may never have named.
    const isKnown = mode.named === undefined || numberOf(present) <= mode.named;
    if (present?.endsWith(`.${run}`) === true && isKnown) return present;
    throw row;
  }
  const isOver = row.asked > row.epoch;
  if (row.mode === 'redis' && isNamed(present, { epoch: row.epoch, run }) && !isOver)
    return present;
  if (row.mode === 'postgres' && !mayEnter()) {
    throw new StoreError('unavailable', 'Budgets are counted in PostgreSQL for now.');
  }
  if ((await mode.read()).epoch !== row.epoch) throw beingBuilt();
  return build(redis, { mode, log, tell, newToken, row, present });
}

interface Building extends Pick<EpochKeeperOptions, 'mode' | 'log' | 'newToken' | 'tell'> {
  readonly row: ModeRow;
  /** What is in Redis, and does not count. */
  readonly present: string | undefined;
}

async function build(
  redis: RedisCounters,
  { mode, log, tell, newToken, row, present }: Building,
): Promise<string> {
  const begun = performance.now();
  // A later one is being filled.
  if (present !== undefined && numberOf(present) <= row.epoch) await redis.clear(present);
  await askAll(row, { mode, tell });
  let keys = 0;
  let name = '';
  const fillings = new Map<string, EpochContents>();
  const fill = async ({
    row: locked,
    contents,
    goesOn,
  }: LockedMode): Promise<FilledEpoch | undefined> => {
    const { epoch: instead, run } = await redis.present();
    if (locked.epoch !== row.epoch) {
      if (locked.mode !== 'redis' || !isNamed(instead, { epoch: locked.epoch, run })) {
        throw beingBuilt();
      }
      name = instead;
      return undefined;
    }
    // Above a number that was given to an epoch which nobody came to know.
    const epoch = Math.max(locked.epoch, numberOf(instead)) + 1;
    name = `${epoch}.${newToken()}.${run}`;
    await redis.filling.begin(name, instead);
    const found = await contents();
    keys = found.settled.length;
    fillings.set(name, found);
    await redis.filling.fill(name, found, goesOn);
    return { epoch, begin: () => redis.filling.end(name) };
  };
  try {
    await mode.enterRedis(fill);
    fillings.delete(name);
  } finally {
    // Beside the next try, which has a name of its own.
    for (const [failed, found] of fillings) void redis.filling.drop(failed, found);
  }
  log.warn('counters_built', {
    epoch: numberOf(name),
    budgets: keys,
    ms: Math.round(performance.now() - begun),
  });
  return name;
}

/** Whether the row names what is in Redis. */
function isNamed(
  name: string | undefined,
  { epoch, run }: { readonly epoch: number; readonly run: string },
): name is string {
  return name !== undefined && numberOf(name) === epoch && name.endsWith(`.${run}`);
}

function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  throw error;
}

function numberOf(epoch: string | undefined): number {
  return epoch === undefined ? 0 : Number.parseInt(epoch, 10);
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
