/**
 * What calls cost beyond their reservations. A vendor bills some of them for what nothing in the request tells. Many
 * calls beside each other would overrun a budget once each: so the first overrun is held for the running calls of the
 * same budget and target too, and reserved by those that come within the hour. Known to one process; a restart forgets it.
 */
import type { Clock } from '../core/runtime.ts';
import type { HeldBudget } from './held-limits.ts';

interface Named {
  readonly provider: string;
  readonly model: string;
}

/** A running call with a budget. */
export interface Reserving {
  readonly held: readonly HeldBudget[];
  mayAsk(target: Named): boolean;
  /** Holds so many nanodollars beside its reservation, or what the budgets still have of them. */
  holdBeside(nanodollars: number): void;
}

/** What admission and grants need of it. */
export type Learned = Pick<Overruns, 'began' | 'ended' | 'learn' | 'beside'>;

interface Excess {
  readonly nanodollars: number;
  /** Wall time in ms. */
  readonly until: number;
}

const learnedForMs = 3_600_000;
/** The oldest is forgotten first. */
const mostLearned = 1000;

export class Overruns {
  readonly #clock: Pick<Clock, 'wall'>;
  /** By the counter of the budget. */
  readonly #running = new Map<string, Set<Reserving>>();
  readonly #learned = new Map<string, Excess>();

  constructor(clock: Pick<Clock, 'wall'>) {
    this.#clock = clock;
  }

  began(call: Reserving): void {
    for (const { counter } of call.held) {
      const calls = this.#running.get(counter);
      if (calls === undefined) this.#running.set(counter, new Set([call]));
      else calls.add(call);
    }
  }

  /** Tells what was learned, and takes no account of calls: for those that are looked at and not served. */
  get lookOnly(): Learned {
    return {
      began: () => undefined,
      ended: () => undefined,
      learn: () => undefined,
      beside: (held, targets) => this.beside(held, targets),
    };
  }

  ended(call: Reserving): void {
    for (const { counter } of call.held) {
      const calls = this.#running.get(counter);
      if (calls?.delete(call) === true && calls.size === 0) this.#running.delete(counter);
    }
  }

  /** Nanodollars that a call for one of these targets reserves besides. */
  beside(held: readonly HeldBudget[], targets: readonly Named[]): number {
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

  /** A call cost so many nanodollars more at that target than all that it had reserved. */
  learn({ held }: Pick<Reserving, 'held'>, target: Named, nanodollars: number): void {
    for (const { counter } of held) {
      this.#keep(nameOf(counter, target), nanodollars);
      for (const call of this.#running.get(counter) ?? []) {
        if (call.mayAsk(target)) call.holdBeside(nanodollars);
      }
    }
  }

  #keep(name: string, nanodollars: number): void {
    const now = this.#clock.wall();
    const known = this.#learned.get(name);
    const before = known !== undefined && known.until > now ? known.nanodollars : 0;
    this.#learned.delete(name);
    this.#learned.set(name, {
      nanodollars: Math.max(before, nanodollars),
      until: now + learnedForMs,
    });
    if (this.#learned.size <= mostLearned) return;
    const [oldest] = this.#learned.keys();
    if (oldest !== undefined) this.#learned.delete(oldest);
  }
}

function nameOf(counter: string, { provider, model }: Named): string {
  return `${counter}\n${provider}/${model}`;
}
