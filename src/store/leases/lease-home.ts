/** What instances and the database of budgets say to each other (budget-leases.ts). */
import type { Clock } from '../../core/runtime.ts';
import type { Balance } from '../counters/counters.ts';

/**
 * A slice is one part in this many of what is left. What is free in the lease of a gateway that is killed counts as
 * spent, so slices are small; they are refilled before they are used up.
 */
export const sliceShare = 256;

/** What a gateway says of its lease on one window of a budget. Amounts are nanodollars. */
export interface StatedLease {
  readonly counter: string;
  readonly window: string;
  /** Ms since the epoch; undefined for `ever`. */
  readonly endsAt: number | undefined;
  /** The budget. */
  readonly limit: number;
  /** All that the gateway has taken out and the ledger does not have. */
  readonly amount: number;
  /** The part of `amount` that no call holds or has spent. */
  readonly free: number;
  /**
   * What rows have taken off this lease, as far as the gateway knows. What the database knows beyond it is
   * still in `amount`, and is taken off again.
   */
  readonly booked: number;
  /** What calls have taken off `free` since the lease began, net of what they gave back. */
  readonly taken: number;
  /** What waiting calls need; `free` counts towards it. */
  readonly wanted: number;
  /** Requests a slice although no call waits. */
  readonly refill: boolean;
  /** Where the budget has too little left: other gateways are asked to give back what is free there. */
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

/** What the database says of one stated lease. */
export interface LeaseState {
  /** By the ledger. */
  readonly settled: number;
  /** Leased by other gateways. */
  readonly others: number;
  /** Added to the stated amount. */
  readonly granted: number;
  /** What is left after `settled` and all leases; below 0 = calls cost more than they had reserved. */
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
      /** Windows (`counter|window`) of which other gateways want what is free here. */
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

// Finds instances that do not answer: others requested what is free in their leases, and they have stated nothing
// for longer than between two signs of life. No wall clock counts: instances are distinguished by their numbers.

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

  /** Those that have said nothing for too long. */
  deaf(): readonly SeenInstance[] {
    const now = this.#clock.now();
    return [...this.#silences]
      .filter(([, { since }]) => now - since >= deafMs)
      .map(([instance, { number }]) => ({ instance, number }));
  }
}
