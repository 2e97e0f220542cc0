/**
 * Who guesses keys (B73, B74): so many refused keys a minute and address, then 429. The key is looked
 * at first in any case: a good one opens from wherever, and a try costs the same before and after.
 */
import type { Clock } from '../../core/runtime.ts';
import { networkOf } from '../client-address.ts';

interface BadKeysParts {
  readonly clock: Pick<Clock, 'now'>;
  /** Refused keys a minute and address. */
  readonly perMinute: () => number;
}

/** Addresses that are remembered; the one that has been there longest is forgotten first. */
export const maxAddresses = 10_000;
const minuteMs = 60_000;

interface Tries {
  left: number;
  at: number;
}

export class BadKeys {
  readonly #parts: BadKeysParts;
  readonly #tries = new Map<string, Tries>();

  constructor(parts: BadKeysParts) {
    this.#parts = parts;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#tries.size;
  }

  /** A key was refused. Ms until the next try, or undefined when this one still was allowed. */
  refused(address: string | undefined): number | undefined {
    const most = this.#parts.perMinute();
    const now = this.#parts.clock.now();
    const tries = this.#of(networkOf(address), { left: most, at: now });
    tries.left = Math.min(most, tries.left + ((now - tries.at) * most) / minuteMs);
    tries.at = now;
    if (tries.left < 1) return Math.ceil(((1 - tries.left) * minuteMs) / most);
    tries.left -= 1;
    return undefined;
  }

  /** What was refused turned out to be a good key. */
  forgive(address: string | undefined): void {
    const tries = this.#tries.get(networkOf(address));
    if (tries !== undefined) tries.left += 1;
  }

  #of(network: string, fresh: Tries): Tries {
    const known = this.#tries.get(network);
    if (known !== undefined) return known;
    if (this.#tries.size >= maxAddresses) {
      const [oldest] = this.#tries.keys();
      if (oldest !== undefined) this.#tries.delete(oldest);
    }
    this.#tries.set(network, fresh);
    return fresh;
  }
}
