/**
 * One timer for all calls. Timeouts and keep-alives are checked ten times a second instead of a timer
 * a call that every chunk would have to reset.
 */
import type { Clock } from '../core/runtime.ts';

export const sweepEveryMs = 100;

export interface Swept {
  /** Compares its deadlines with the monotonic time. */
  check(now: number): void;
  /** Ends at once: the gateway stops and will not wait any longer. */
  shutDown(): void;
}

export class Sweeper {
  readonly #clock: Clock;
  readonly #live = new Set<Swept>();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#live.size;
  }

  add(item: Swept): void {
    this.#live.add(item);
    this.#timer ??= setInterval(() => this.#sweep(), sweepEveryMs);
  }

  delete(item: Swept): void {
    this.#live.delete(item);
    if (this.#live.size === 0 && this.#timer !== undefined) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Ends everything that is still running (G14). */
  shutDown(): void {
    for (const item of this.#live) item.shutDown();
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const item of this.#live) item.check(now);
  }
}
