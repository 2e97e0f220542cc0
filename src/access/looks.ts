/**
 * Looks into a shared store for keys that are not known here: another instance may have made them a
 * moment ago. However many strangers knock, the store is asked a few times a second at most.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../core/runtime.ts';

export interface LooksParts {
  /** Reads what is new. */
  look(): Promise<void>;
  readonly clock: Pick<Clock, 'now'>;
}

const pauseMs = 250;
/** Who comes beyond them is refused without a look. */
const mostWaiting = 1000;

export class Looks {
  readonly #parts: LooksParts;
  /** The look that has not begun yet: what it finds is newer than the question. */
  #next: Promise<void> | undefined;
  #waiting = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(parts: LooksParts) {
    this.#parts = parts;
  }

  /** Undefined when too many wait already. @throws what `look` throws. */
  ask(): Promise<void> | undefined {
    if (this.#waiting >= mostWaiting) return undefined;
    this.#waiting += 1;
    this.#next ??= this.#soon();
    return this.#next.finally(() => {
      this.#waiting -= 1;
    });
  }

  async #soon(): Promise<void> {
    const { look, clock } = this.#parts;
    // Also without a pause: `ask` must have taken note of it before it begins.
    await sleep(Math.max(0, this.#lastAt + pauseMs - clock.now()));
    this.#next = undefined;
    this.#lastAt = clock.now();
    await look();
  }
}
