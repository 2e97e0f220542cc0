/** The messages between instances and the database of budgets (budget-leases.ts). */
import type { Clock } from '../../core/runtime.ts';
import type { Balance } from '../counters/counters.ts';

/**
 * A slice is the remaining amount divided by this. The free part of a killed gateway's lease counts as
 * spent, so slices are small; they are refilled before they are used up.
 */
export const sliceShare = 256;

/** A gateway's statement about its lease on one window of a budget. Amounts are nanodollars. */
export interface StatedLease {
  readonly counter: string;
  readonly window: string;
  /** Ms since the epoch; undefined for `ever`. */
  readonly endsAt: number | undefined;
  /** The budget. */
  readonly limit: number;
  /** The amount that the gateway has leased and that is not in the ledger yet. */
  readonly amount: number;
  /** The part of `amount` that no call holds or has spent. */
  readonly free: number;
  /**
   * The amount that rows have taken off this lease, as far as the gateway knows. Any further amount is
   * still in `amount`, and is taken off again.
   */
  readonly booked: number;
  /** The net amount that calls have taken off `free` since the lease began. */
  readonly taken: number;
  /** The amount that waiting calls need; `free` counts towards it. */
  readonly wanted: number;
  /** Requests a slice although no call waits. */
  readonly refill: boolean;
  /** If the budget has too little left: asks other gateways to give back the free part of their leases. */
  readonly ask: boolean;
}

export interface LeaseStatement {
  readonly instance: string;
  /** Rises with each statement of the instance; a lower one that comes later has no effect. */
  readonly number: number;
  /** Whether the database has acknowledged a statement of this instance before. */
  readonly isKnown: boolean;
  readonly leases: readonly StatedLease[];
  /** Gateways that were asked and have stated nothing since. They are asked again once they have. */
  readonly deaf: readonly SeenInstance[];
}

/** An instance and the number of its last statement. */
export interface SeenInstance {
  readonly instance: string;
  readonly number: number;
}

/** The database's answer about one stated lease. */
export interface LeaseState {
  /** By the ledger. */
  readonly settled: number;
  /** Leased by other gateways. */
  readonly others: number;
  /** Added to the stated amount. */
  readonly granted: number;
  /** The amount after `settled` and all leases; below 0 = calls cost more than they had reserved. */
  readonly room: number;
  /** Gateways that were asked for their free money, have not stated their lease since, and are not deaf. */
  readonly asked: readonly SeenInstance[];
}

export type LeaseAnswer =
  | {
      readonly code: 'ok';
      /** Ms since the epoch, by the server. */
      readonly now: number;
      /** In the order of the statement. */
      readonly leases: readonly LeaseState[];
      /** Windows (`counter|window`) in which other gateways need the free part of this lease. */
      readonly asked: readonly { readonly counter: string; readonly window: string }[];
    }
  /** `late`: a statement with a higher number came first. `expired`: its leases were ended; `revive` turns that back. */
  | { readonly code: 'late' | 'expired'; readonly now: number };

/** The database that budgets live in. */
export interface BudgetHome {
  /** @throws StoreError; whether the statement took effect is not known then. */
  state(statement: LeaseStatement): Promise<LeaseAnswer>;
  /**
   * Turns the end of an instance's leases back: what was booked as spent for them is in its leases again. Without
   * ended leases nothing changes.
   * @throws StoreError; whether it was done is not known then.
   */
  revive(instance: string): Promise<void>;
  /**
   * `settled` by the ledger, `open` what other gateways than `instance` hold or have not booked.
   * @throws StoreError
   */
  balance(instance: string, counter: string, window: string): Promise<Balance>;
}

// Finds instances that do not answer: others requested the free part of their leases, and they have stated nothing
// for longer than the interval of statements. No wall clock counts: instances are distinguished by their numbers.

/** A living instance with leases states once a second. */
const deafMs = 1200;

interface Silence {
  readonly number: number;
  /** Monotonic ms. */
  readonly since: number;
}

export class SilentInstances {
  readonly #clock: Pick<Clock, 'now'>;
  #silences: ReadonlyMap<string, Silence> = new Map();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** All that were asked and have not answered, by the last answer of the database. */
  asked(instances: readonly SeenInstance[]): void {
    if (instances.length === 0 && this.#silences.size === 0) return;
    const [before, now] = [this.#silences, this.#clock.now()];
    this.#silences = new Map(
      instances.map(({ instance, number }) => {
        const known = before.get(instance);
        return [instance, known?.number === number ? known : { number, since: now }];
      }),
    );
  }

  /** The instances that have stated nothing for too long. */
  deaf(): readonly SeenInstance[] {
    const now = this.#clock.now();
    return [...this.#silences]
      .filter(([, { since }]) => now - since >= deafMs)
      .map(([instance, { number }]) => ({ instance, number }));
  }
}
