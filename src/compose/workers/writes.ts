/** Whether the ledger takes the rows of the workers: none of them takes calls while those of another wait (F84). */
import type { Clock } from '../../core/runtime.ts';

const maxMs = 5000;

export class Writes {
  readonly #clock: Pick<Clock, 'now'>;
  /** When the oldest write began since one came to its end, monotonic ms. */
  #busySince: number | undefined;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** @throws what the write throws */
  async during<T>(write: () => Promise<T>): Promise<T> {
    this.#busySince ??= this.#clock.now();
    const written = await write();
    this.#busySince = undefined;
    return written;
  }

  healthy(): boolean {
    return this.#busySince === undefined || this.#clock.now() - this.#busySince < maxMs;
  }
}
