/**
 * Finds instances that died and ends their leases. Only the watching instance's monotonic clock counts: an
 * instance is dead when its last statement was seen unchanged, without a gap in watching, for
 * `leaseExpiryMs`. A database that is away, or a wall clock that jumps, expires nothing.
 *
 * A process need not watch the owners of journals in its own data directory: the lock of the directory proves that the
 * process before it is dead, and the journal shows its unspent amount.
 */
import type { Clock, Log } from '../../core/runtime.ts';
import { leaseMs } from '../counters/counters.ts';
import { leaseExpiryMs } from './budget-leases.ts';
import type { SeenInstance } from './lease-home.ts';
import type { OrphanedJournal } from './lease-journal.ts';

/** A dead instance, and the amounts that calls took off each of its leases. */
export type DeadLeases = Omit<OrphanedJournal, 'remove'>;

export interface LeaseRegister {
  /** @throws StoreError */
  instances(): Promise<readonly SeenInstance[]>;
  /**
   * Ends the leases of an instance unless it stated something meanwhile. All of them is booked as spent: what was
   * free may have been reserved since the instance stated it. `BudgetHome.revive` turns that back.
   * @returns nanodollars that were booked; undefined when the instance lives, or another instance was faster
   * @throws StoreError
   */
  expire(seen: SeenInstance): Promise<number | undefined>;
  /**
   * Gives back what a dead instance had not spent, and gives it `deadNumber`. A second time changes nothing.
   * @returns nanodollars that were given back
   * @throws StoreError
   */
  giveBack(dead: DeadLeases): Promise<number>;
}

/** The number of an instance that is known to be dead: whatever it stated last arrives late. */
export const deadNumber = Number.MAX_SAFE_INTEGER;

/** After a longer pause between two checks all watches begin anew: this process may have hung together with the others. */
const maxPauseMs = 30_000;
/** Calls that it had noted are settled before what they held is booked. */
const endDeadAfterMs = 2 * leaseMs;

interface Watched {
  readonly number: number;
  /** Monotonic ms. */
  readonly since: number;
}

export interface LeaseExpiryOptions {
  readonly register: LeaseRegister;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** Of processes that ran in this data directory. */
  readonly left: readonly OrphanedJournal[];
}

export class LeaseExpiry {
  readonly #options: LeaseExpiryOptions;
  #left: readonly OrphanedJournal[];
  #watched: ReadonlyMap<string, Watched> = new Map();
  /** Monotonic ms. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: LeaseExpiryOptions) {
    this.#options = options;
    this.#left = options.left;
  }

  /**
   * To be called every few seconds.
   * @throws StoreError
   */
  async look(): Promise<void> {
    const { register, clock, log } = this.#options;
    const before = this.#watched;
    const wasPaused = clock.now() - this.#lookedAt > maxPauseMs;
    // A failed check begins the watch anew.
    this.#watched = new Map();
    await this.#giveBack();
    const seen = await register.instances();
    const now = clock.now();
    const watched = new Map<string, Watched>();
    for (const { instance, number } of seen) {
      const known = before.get(instance);
      const since = known?.number === number && !wasPaused ? known.since : now;
      watched.set(instance, { number, since });
    }
    this.#watched = watched;
    this.#lookedAt = now;
    const failures: unknown[] = [];
    for (const each of seen) {
      const { instance, number } = each;
      const since = watched.get(instance)?.since ?? now;
      if (now - since < (number === deadNumber ? endDeadAfterMs : leaseExpiryMs)) continue;
      try {
        const nanodollars = (await register.expire(each)) ?? 0;
        // An instance without leases sends no statements, so its silence is no sign of death.
        if (nanodollars > 0) log.warn('budget_leases_expired', { instance, nanodollars });
      } catch (error) {
        // It must not block the others.
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Each journal serves once. */
  async #giveBack(): Promise<void> {
    const { register, log } = this.#options;
    for (const left of this.#left) {
      const { instance } = left;
      const nanodollars = await register.giveBack(left);
      if (nanodollars > 0) log.info('budget_leases_given_back', { instance, nanodollars });
      left.remove();
      this.#left = this.#left.filter((each) => each !== left);
    }
  }
}
