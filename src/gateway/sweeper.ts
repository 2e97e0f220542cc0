/**
 * One timer for all calls. Timeouts and keep-alives are checked ten times a second instead of a timer
 * a call that every chunk would have to reset.
 */
import type { Clock } from '../core/runtime.ts';

export const sweepEveryMs = 100;

export interface Swept {
  /** Where the sweeper keeps the item; -1 while it does not. Only the sweeper sets it. */
  place: number;
  /** Compares its deadlines with the monotonic time. */
  check(now: number): void;
  /** Ends at once: the gateway stops and will not wait any longer. */
  shutDown(): void;
}

export class Sweeper {
  readonly #clock: Clock;
  /**
   * An array, not a Set: a Set that is added to and deleted from for every call is rehashed all the
   * time, and each dead table keeps the next one, with the calls of its time, alive until the next
   * full collection. That cost a tenth of the CPU of a call.
   */
  readonly #live: Swept[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#live.length;
  }

  add(item: Swept): void {
    item.place = this.#live.length;
    this.#live.push(item);
    this.#timer ??= setInterval(() => this.#sweep(), sweepEveryMs);
  }

  /** Takes the item out; the last one moves to its place. A second call does nothing. */
  delete(item: Swept): void {
    const { place } = item;
    if (place === -1) return;
    item.place = -1;
    const last = this.#live.pop();
    if (last !== undefined && last !== item) {
      this.#live[place] = last;
      last.place = place;
    }
    if (this.#live.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Ends everything that is still running (G14). */
  shutDown(): void {
    for (let i = this.#live.length - 1; i >= 0; i--) this.#live[i]?.shutDown();
  }

  /** From the end: an item that leaves is replaced by one that was looked at already. */
  #sweep(): void {
    const now = this.#clock.now();
    for (let i = this.#live.length - 1; i >= 0; i--) this.#live[i]?.check(now);
  }
}
