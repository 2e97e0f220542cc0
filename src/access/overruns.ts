/**
 * Costs beyond reservations. A vendor bills some calls for things that the request does not show. Many
 * concurrent calls would each overrun the budget once. Therefore the first overrun is also held for the running
 * calls of the same budget and target, and is reserved by calls of the next hour. It is known to one process
 * and lost by a restart.
 */
import { IdTable } from '../core/id-table.ts';
import type { Clock } from '../core/runtime.ts';
import type { HeldBudget } from './held-limits.ts';

interface Named {
  readonly provider: string;
  readonly model: string;
}

/** A running call with a budget. */
export interface Reserving {
  readonly callId: string;
  readonly held: readonly HeldBudget[];
  mayAsk(target: Named): boolean;
  /** Holds this amount in addition to the reservation, or what is left of the budgets. */
  holdExtra(nanodollars: number): void;
}

/** The part that admission and grants need. */
export type Learned = Pick<Overruns, 'began' | 'ended' | 'learn' | 'extraFor'>;

interface Excess {
  readonly nanodollars: number;
  /** Wall time in ms. */
  readonly until: number;
}

const learnedForMs = 3_600_000;
/** The oldest is forgotten first. */
const maxLearned = 1000;

export class Overruns {
  readonly #clock: Pick<Clock, 'wall'>;
  /** Calls with a budget. All of them are searched, since overruns are rare and calls are not. */
  readonly #running = new IdTable<Reserving>();
  readonly #learned = new Map<string, Excess>();

  constructor(clock: Pick<Clock, 'wall'>) {
    this.#clock = clock;
  }

  began(call: Reserving): void {
    if (call.held.length > 0) this.#running.set(call.callId, call);
  }

  /** Reports what was learned without tracking calls: for previews. */
  get lookOnly(): Learned {
    return {
      began: () => undefined,
      ended: () => undefined,
      learn: () => undefined,
      extraFor: (held, targets) => this.extraFor(held, targets),
    };
  }

  ended(call: Reserving): void {
    if (call.held.length > 0) this.#running.delete(call.callId);
  }

  /** Nanodollars that a call for one of these targets reserves in addition. */
  extraFor(held: readonly HeldBudget[], targets: readonly Named[]): number {
    if (this.#learned.size === 0) return 0;
    const now = this.#clock.wall();
    let most = 0;
    for (const { counter } of held) {
      for (const target of targets) {
        const learned = this.#learned.get(nameOf(counter, target));
        if (learned !== undefined && learned.until > now) {
          most = Math.max(most, learned.nanodollars);
        }
      }
    }
    return most;
  }

  /** Records that a call at this target cost this much more than it had reserved. */
  learn({ held }: Pick<Reserving, 'held'>, target: Named, nanodollars: number): void {
    for (const { counter } of held) this.#remember(nameOf(counter, target), nanodollars);
    const counters = new Set(held.map(({ counter }) => counter));
    for (const [, call] of this.#running.entries()) {
      const shares = call.held.some(({ counter }) => counters.has(counter));
      if (shares && call.mayAsk(target)) call.holdExtra(nanodollars);
    }
  }

  #remember(name: string, nanodollars: number): void {
    const now = this.#clock.wall();
    const known = this.#learned.get(name);
    const before = known !== undefined && known.until > now ? known.nanodollars : 0;
    this.#learned.delete(name);
    this.#learned.set(name, {
      nanodollars: Math.max(before, nanodollars),
      until: now + learnedForMs,
    });
    if (this.#learned.size <= maxLearned) return;
    const [oldest] = this.#learned.keys();
    if (oldest !== undefined) this.#learned.delete(oldest);
  }
}

function nameOf(counter: string, { provider, model }: Named): string {
  return `${counter}\n${provider}/${model}`;
}
