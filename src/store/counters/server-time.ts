/** The clock of a server that counts, as known here: told by each answer, carried on by the monotonic clock. */
import type { Clock } from '../../core/runtime.ts';

export class ServerTime {
  readonly #clock: Clock;
  #ahead: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The server's time in ms since the epoch, as an answer told it just now. */
  heard(serverMs: number): void {
    this.#ahead = serverMs - this.#clock.now();
  }

  /** Before the first answer it is this machine's own clock. */
  wall(): number {
    return this.#ahead === undefined ? this.#clock.wall() : this.#clock.now() + this.#ahead;
  }
}
