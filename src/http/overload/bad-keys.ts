/**
 * Rate limit for invalid keys (B74): after this many refused keys a minute and address the answer is 429. The
 * key is checked first in every case: a valid key always works, and an attempt costs the same before and after
 * the limit.
 */
import type { Clock } from '../../core/runtime.ts';
import { networkOf } from '../request-headers.ts';

interface BadKeysDeps {
  readonly clock: Pick<Clock, 'now'>;
  /** Refused keys per minute and address. */
  readonly perMinute: () => number;
}

/** Maximum number of remembered addresses; the oldest entry is dropped first. */
export const maxAddresses = 10_000;
const minuteMs = 60_000;

interface Tries {
  left: number;
  at: number;
}

export class BadKeys {
  readonly #deps: BadKeysDeps;
  readonly #tries = new Map<string, Tries>();

  constructor(deps: BadKeysDeps) {
    this.#deps = deps;
  }

  /** Number of remembered addresses. */
  get size(): number {
    return this.#tries.size;
  }

  /** A key was refused. Ms until the next attempt, or undefined while attempts are allowed. */
  refused(address: string | undefined): number | undefined {
    const most = this.#deps.perMinute();
    const now = this.#deps.clock.now();
    const tries = this.#of(networkOf(address), { left: most, at: now });
    tries.left = Math.min(most, tries.left + ((now - tries.at) * most) / minuteMs);
    tries.at = now;
    if (tries.left < 1) return Math.ceil(((1 - tries.left) * minuteMs) / most);
    tries.left -= 1;
    return undefined;
  }

  /** The refused key turned out to be valid. */
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
