/**
 * How a gateway stops (G14). It reports that it is not ready and continues serving, so that load balancers send their
 * traffic elsewhere; then it accepts no more connections and waits for running calls; then it ends the remaining ones.
 */
import type { Server } from 'node:http';
import type { Clock } from '../core/runtime.ts';
import { closeWaiting, QuietConnections } from './connections.ts';
import { closeListeners, drainAcceptQueue } from './listen.ts';
import { closeHandshakes } from './tls.ts';

export interface DrainTimes {
  /**
   * How long new calls are served after a stop was requested. Undefined: `defaultWaitMs` where /readyz was probed
   * lately, else 0.
   */
  readonly waitMs: number | undefined;
  /** How long running calls may continue after that. */
  readonly limitMs: number;
}

interface DrainDeps {
  readonly server: Server;
  readonly clock: Clock;
  readonly times: () => DrainTimes;
  readonly calls: {
    /** Ends all running calls; their answers end in an error. */
    shutDown(): void;
    /** Streams that are read to their end after their client left, to know their cost (F73). */
    readonly readingOn: number;
  };
}

export interface DrainWay {
  /** Load balancers get time to notice. */
  readonly announced: boolean;
  /** Other processes continue serving at the same address: /readyz does not report that the gateway is not ready. */
  readonly alone?: boolean;
  /** Another process listens on the same sockets, and accepts what waits in their queues. */
  readonly replaced?: boolean;
}

/** Load balancers probe every few seconds and remove a backend after one or two failures. */
export const defaultWaitMs = 5000;
const lookEveryMs = 100;
/** The time for a handshake in progress after a stop. */
const handshakeMs = 1000;
/** A probe within this time is taken as one of a series. */
const probedWithinMs = 60_000;

export class Drain {
  readonly #deps: DrainDeps;
  readonly #hurry = Promise.withResolvers<void>();
  #probedAt = -Infinity;
  #begun = false;
  #announced = false;
  #isCut = false;

  constructor(deps: DrainDeps) {
    this.#deps = deps;
  }

  /** Whether each answer closes its connection. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Whether /readyz reports that the gateway is not ready. */
  get announced(): boolean {
    return this.#announced;
  }

  /** Notes a probe of /readyz. */
  probed(): void {
    this.#probedAt = this.#deps.clock.now();
  }

  /** Whether /readyz is probed. */
  get watched(): boolean {
    return this.#deps.clock.now() - this.#probedAt <= probedWithinMs;
  }

  /** Resolves when the last connection is closed and the last call is settled. */
  async run({ announced, alone = false, replaced = false }: DrainWay): Promise<void> {
    this.#begun = true;
    this.#announced = !alone;
    const waitMs = announced ? this.#waitMs() : 0;
    if (waitMs > 0) await this.#waitAtMost(waitMs);
    const timer = setTimeout(() => this.cut(), this.#deps.times().limitMs);
    const { server } = this.#deps;
    if (server.listening) {
      if (!replaced) await drainAcceptQueue(server, () => this.#isCut);
      const closed = alone ? leaveServer(server) : closeDrained(server);
      // Ends what was accepted after the cut.
      if (this.#isCut) this.cut();
      await closed;
    }
    await this.#untilAllRead();
    clearTimeout(timer);
  }

  /** Ends running calls now; `run` then waits for nothing more. */
  cut(): void {
    this.#isCut = true;
    this.#hurry.resolve();
    this.#deps.calls.shutDown();
    // The calls write their final errors in this turn of the event loop; the connections close after it.
    setImmediate(() => {
      this.#deps.server.closeAllConnections();
      closeHandshakes(this.#deps.server, 0);
    });
  }

  /** No client waits for these streams, but the providers charge for all that they still send. */
  async #untilAllRead(): Promise<void> {
    const { calls } = this.#deps;
    while (calls.readingOn > 0) {
      await new Promise<void>((resolve) => {
        setTimeout(resolve, lookEveryMs);
      });
    }
  }

  #waitMs(): number {
    const { waitMs } = this.#deps.times();
    if (waitMs !== undefined) return waitMs;
    return this.watched ? defaultWaitMs : 0;
  }

  async #waitAtMost(ms: number): Promise<void> {
    const timer = setTimeout(this.#hurry.resolve, ms);
    await this.#hurry.promise;
    clearTimeout(timer);
  }
}

/**
 * Drains the accept queue, stops listening and waits until the last connection is closed. Does nothing for a server
 * that never listened.
 */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  await drainAcceptQueue(server);
  await closeDrained(server);
}

/** Stops listening at once and waits until the last connection is closed. */
async function closeDrained(server: Server): Promise<void> {
  const closed = closeListeners(server);
  const close = (): void => {
    closeWaiting(server);
    closeHandshakes(server, handshakeMs);
  };
  close();
  // Connections become idle one by one, as their answers end.
  const timer = setInterval(close, lookEveryMs);
  await closed;
  clearInterval(timer);
}

/**
 * Stops listening at once, where other processes continue, and waits until the last connection is closed. A connection is
 * closed by its next answer, or when it is quiet.
 */
async function leaveServer(server: Server): Promise<void> {
  const closed = closeListeners(server);
  const quiet = new QuietConnections(server);
  // After the reads of the same turn of the event loop: what has come by then is seen.
  const close = (): void => {
    quiet.close();
    closeHandshakes(server, handshakeMs);
  };
  const timer = setInterval(() => setImmediate(close), lookEveryMs);
  await closed;
  clearInterval(timer);
}
