/** Budgets' windows in memory. */
import type { Clock } from '../../core/runtime.ts';
import { Shelf } from './shelf.ts';

export interface Purse {
  readonly window: string;
  settled: number;
  /** Reserved by running calls. */
  open: number;
  endsAt: number | undefined;
  /** Monotonic ms. */
  usedAt: number;
  /** An earlier window of the same counter. */
  older: Purse | undefined;
}

/** A window as a draw names it. */
export interface OpenedWindow {
  readonly counter: string;
  readonly window: string;
  /** Undefined = it never ends, or nobody knows. */
  readonly endsAt: number | undefined;
}

/**
 * How long a window that is over is still known, by the monotonic clock: a wall clock that was wrong
 * for a day and is put right finds what was spent before (G17).
 */
const keptAfterEndMs = 2 * 86_400_000;

export class Purses {
  readonly #clock: Clock;
  /** By counter: its latest window. */
  readonly #latest: Shelf<Purse>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#latest = new Shelf((purse) => {
      purse.older = this.#needed(purse.older);
      return purse.older === undefined && this.#needed(purse) === undefined;
    });
  }

  /** How many counters are known. */
  get size(): number {
    return this.#latest.size;
  }

  find(counter: string, window: string): Purse | undefined {
    let purse = this.#latest.get(counter);
    while (purse !== undefined && purse.window !== window) purse = purse.older;
    return purse;
  }

  /**
   * Finds or makes it.
   * @param usedAt monotonic ms, now.
   */
  open({ counter, window, endsAt }: OpenedWindow, usedAt: number): Purse {
    const found = this.find(counter, window);
    if (found !== undefined) {
      found.usedAt = usedAt;
      found.endsAt ??= endsAt;
      return found;
    }
    const purse: Purse = { window, settled: 0, open: 0, endsAt, usedAt, older: undefined };
    const latest = this.#latest.get(counter);
    if (latest !== undefined) {
      purse.older = latest;
      // A restored window does not say when it ends; it does once there is another.
      latest.endsAt ??= this.#clock.wall();
    }
    this.#latest.add(counter, purse);
    return purse;
  }

  /** The chain without the windows that are over. */
  #needed(purse: Purse | undefined): Purse | undefined {
    if (purse === undefined) return undefined;
    purse.older = this.#needed(purse.older);
    const { open, settled, endsAt, usedAt } = purse;
    if (open > 0) return purse;
    if (settled === 0) return purse.older;
    const over = endsAt !== undefined && this.#clock.wall() >= endsAt;
    return over && this.#clock.now() - usedAt >= keptAfterEndMs ? purse.older : purse;
  }
}
