/**
 * How a gateway stops (G14): it says that it is not ready and goes on serving, so that balancers can
 * turn away from it; then it takes no more connections and waits for what runs; then it ends the rest.
 */
import type { Server } from 'node:http';
import type { Clock } from '../core/runtime.ts';
import { closeWaiting } from './connections.ts';
import { closeDoors, letInTheLast } from './doors.ts';

export interface DrainTimes {
  /**
   * How long calls are still taken after a stop was asked for. Undefined: `customaryWaitMs` where
   * somebody has been asking whether the gateway is ready, else not at all.
   */
  readonly waitMs: number | undefined;
  /** How long running calls may go on after that. */
  readonly limitMs: number;
}

export interface DrainParts {
  readonly server: Server;
  readonly clock: Clock;
  readonly times: () => DrainTimes;
  readonly calls: {
    /** Ends all that run, with an error as their last words. */
    shutDown(): void;
    /** Streams that are read to their end without a client, for what they cost (F73). */
    readonly readingOn: number;
  };
}

export interface DrainWay {
  readonly announced: boolean;
  readonly alone?: boolean;
}

/** Balancers ask every few seconds, and turn away after one or two refusals. */
export const customaryWaitMs = 5000;
const lookEveryMs = 100;
/** Whoever asked for readiness within this time will ask again. */
const probedWithinMs = 60_000;

export class Drain {
  readonly #parts: DrainParts;
  readonly #hurry = Promise.withResolvers<void>();
  #probedAt = -Infinity;
  #begun = false;
  #told = false;
  #isCut = false;

  constructor(parts: DrainParts) {
    this.#parts = parts;
  }

  /** Answers are the last of their connections from here on. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Whether the gateway is to say that it is not ready. */
  get told(): boolean {
    return this.#told;
  }

  /** Somebody asked whether the gateway is ready. */
  probed(): void {
    this.#probedAt = this.#parts.clock.now();
  }

  /** Whether somebody asks, and will ask again. */
  get watched(): boolean {
    return this.#parts.clock.now() - this.#probedAt <= probedWithinMs;
  }

  /**
   * Resolves when the last connection is gone, and the last call settled. `announced`: balancers are given time to
   * notice; `alone`: other processes serve on at the same address.
   */
  async run({ announced, alone = false }: DrainWay): Promise<void> {
    this.#begun = true;
    this.#told = !alone;
    const waitMs = announced ? this.#waitMs() : 0;
    if (waitMs > 0) await this.#waitAtMost(waitMs);
    const timer = setTimeout(() => this.cut(), this.#parts.times().limitMs);
    await closeServer(this.#parts.server, { letInLast: !this.#isCut });
    await this.#untilAllRead();
    clearTimeout(timer);
  }

  /** Ends running calls at once; nothing is waited for any longer. */
  cut(): void {
    this.#isCut = true;
    this.#hurry.resolve();
    this.#parts.calls.shutDown();
    // The last words of the calls are written in this turn; then nobody is waited for.
    setImmediate(() => this.#parts.server.closeAllConnections());
  }

  /** Nobody waits for those, but they cost all that their providers still send. */
  async #untilAllRead(): Promise<void> {
    const { calls } = this.#parts;
    while (calls.readingOn > 0) {
      await new Promise<void>((resolve) => {
        setTimeout(resolve, lookEveryMs);
      });
    }
  }

  #waitMs(): number {
    const { waitMs } = this.#parts.times();
    if (waitMs !== undefined) return waitMs;
    return this.watched ? customaryWaitMs : 0;
  }

  async #waitAtMost(ms: number): Promise<void> {
    const timer = setTimeout(this.#hurry.resolve, ms);
    await this.#hurry.promise;
    clearTimeout(timer);
  }
}

/**
 * Lets in who stands in front, stops listening and waits until the last connection is gone; a server that never
 * listened is fine.
 */
export async function closeServer(server: Server, { letInLast = true } = {}): Promise<void> {
  if (!server.listening) return;
  if (letInLast) await letInTheLast(server);
  const closed = closeDoors(server);
  closeWaiting(server);
  // Connections fall silent one by one, as their answers end.
  const timer = setInterval(() => closeWaiting(server), 100);
  await closed;
  clearInterval(timer);
}
