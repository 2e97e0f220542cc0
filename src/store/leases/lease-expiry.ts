/**
 * Finds instances that died and ends their leases. Only the watching instance's monotonic clock counts: an
 * instance is dead when its last statement was seen unchanged, without a gap in watching, for
 * `leaseExpiryMs`. A database that is away, or a wall clock that jumps, expires nothing.
 */
import type { Clock } from '../../core/runtime.ts';
import { leaseExpiryMs } from './budget-leases.ts';
import type { SeenInstance } from './lease-home.ts';

export interface LeaseRegister {
  /** @throws StoreError */
  instances(): Promise<readonly SeenInstance[]>;
  /**
   * Ends the leases of an instance unless it stated something meanwhile. All of them is booked as spent: what was
   * free may have been drawn since the instance stated it. `BudgetHome.revive` turns that back.
   * @returns nanodollars that were booked; undefined when the instance lives, or another instance was faster
   * @throws StoreError
   */
  expire(seen: SeenInstance): Promise<number | undefined>;
}

/** After a longer pause between two looks all watches begin anew: this process may have stood still with the others. */
const maxPauseMs = 30_000;

interface Watched {
  readonly number: number;
  /** Monotonic ms. */
  readonly since: number;
}

export class LeaseExpiry {
  readonly #register: LeaseRegister;
  readonly #clock: Pick<Clock, 'now'>;
  #watched: ReadonlyMap<string, Watched> = new Map();
  /** Monotonic ms. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(register: LeaseRegister, clock: Pick<Clock, 'now'>) {
    this.#register = register;
    this.#clock = clock;
  }

  /**
   * To be called every few seconds.
   * @returns the instances that were ended, with what was booked
   * @throws StoreError
   */
  async look(): Promise<ReadonlyMap<string, number>> {
    const ended = new Map<string, number>();
    const before = this.#watched;
    const wasPaused = this.#clock.now() - this.#lookedAt > maxPauseMs;
    // A look that fails begins the watch anew.
    this.#watched = new Map();
    const seen = await this.#register.instances();
    const now = this.#clock.now();
    const watched = new Map<string, Watched>();
    for (const each of seen) {
      const known = before.get(each.instance);
      const since = known?.number === each.number && !wasPaused ? known.since : now;
      watched.set(each.instance, { number: each.number, since });
    }
    this.#watched = watched;
    this.#lookedAt = now;
    for (const each of seen) {
      const since = watched.get(each.instance)?.since ?? now;
      if (now - since < leaseExpiryMs) continue;
      const booked = await this.#register.expire(each);
      if (booked !== undefined) ended.set(each.instance, booked);
    }
    return ended;
  }
}
