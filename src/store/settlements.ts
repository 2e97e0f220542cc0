/** Settlements on their way to a server: a few at a time, again until each has arrived. */
import type { Log } from '../core/runtime.ts';
import type { Used } from './counters.ts';
import { StoreError } from './store-error.ts';

export interface SettlementsOptions {
  /** @throws StoreError `refused` when it would be refused again; anything else when it is to be sent again */
  send(callId: string, used: Used): Promise<void>;
  readonly log: Log;
  readonly atOnce: number;
}

const againMs = 500;
/** As many as wait at most for a server that is away; their leases end then. */
const mostWaiting = 100_000;

export class Settlements {
  readonly #options: SettlementsOptions;
  readonly #waiting = new Map<string, Used>();
  readonly #sending = new Map<string, Promise<void>>();
  #again: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: SettlementsOptions) {
    this.#options = options;
  }

  get waiting(): Iterable<string> {
    return this.#waiting.keys();
  }

  /** The first one of a call counts (Q3). */
  add(callId: string, used: Used): void {
    if (this.#waiting.has(callId)) return;
    if (this.#waiting.size >= mostWaiting) {
      this.#options.log.error('settlement_dropped', { call: callId });
      return;
    }
    this.#waiting.set(callId, used);
    this.#sendMore();
  }

  /** Waits for those that are known now, until one fails; under load more come all the time. */
  async sent(): Promise<void> {
    const known = [...this.#waiting.keys()];
    while (this.#sending.size > 0 && known.some((callId) => this.#waiting.has(callId))) {
      await Promise.race(this.#sending.values());
    }
  }

  async close(): Promise<void> {
    await this.sent();
    this.#closed = true;
    clearTimeout(this.#again);
  }

  #sendMore(): void {
    for (const [callId, used] of this.#waiting) {
      const full = this.#sending.size >= this.#options.atOnce;
      if (full || this.#again !== undefined || this.#closed) return;
      if (!this.#sending.has(callId)) this.#send(callId, used);
    }
  }

  #send(callId: string, used: Used): void {
    const sent = this.#sendOne(callId, used);
    this.#sending.set(callId, sent);
  }

  async #sendOne(callId: string, used: Used): Promise<void> {
    try {
      await this.#options.send(callId, used);
      this.#waiting.delete(callId);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'refused') {
        // It must not hold up all others. What it held comes back with its lease, what it spent with the ledger.
        this.#waiting.delete(callId);
        this.#options.log.error('settlement_refused', { call: callId, reason: error.message });
      } else this.#later();
    }
    this.#sending.delete(callId);
    this.#sendMore();
  }

  #later(): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      this.#sendMore();
    }, againMs).unref();
  }
}
