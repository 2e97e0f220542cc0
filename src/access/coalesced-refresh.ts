/**
 * Reads a shared store for keys that are not known here: another instance may have made them a moment ago. Requests
 * that ask at the same time share one read, and reads are at least 250 ms apart.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../core/runtime.ts';

export interface CoalescedRefreshOptions {
  /** Reads what is new. */
  read(): Promise<void>;
  readonly clock: Pick<Clock, 'now'>;
}

const pauseMs = 250;
/** Requests beyond these are refused without a read. */
const maxWaiting = 1000;

export class CoalescedRefresh {
  readonly #options: CoalescedRefreshOptions;
  /** The read that has not begun yet: what it finds is newer than the question. */
  #next: Promise<void> | undefined;
  #waiting = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(options: CoalescedRefreshOptions) {
    this.#options = options;
  }

  /** Undefined when too many requests wait already. @throws what `read` throws. */
  ask(): Promise<void> | undefined {
    if (this.#waiting >= maxWaiting) return undefined;
    this.#waiting += 1;
    this.#next ??= this.#soon();
    return this.#next.finally(() => {
      this.#waiting -= 1;
    });
  }

  async #soon(): Promise<void> {
    const { read, clock } = this.#options;
    // Awaited without a pause, too: `ask` must have stored this promise before the read begins.
    await sleep(Math.max(0, this.#lastAt + pauseMs - clock.now()));
    this.#next = undefined;
    this.#lastAt = clock.now();
    await read();
  }
}
