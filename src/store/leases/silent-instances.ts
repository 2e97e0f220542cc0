/**
 * Finds instances that do not answer: others asked for what is free in their leases, and they have stated nothing
 * for longer than between two signs of life. No wall clock counts: instances are told apart by their numbers.
 */
import type { Clock } from '../../core/runtime.ts';
import type { SeenInstance } from './lease-home.ts';

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
