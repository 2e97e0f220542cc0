/** Settlements on their way to a server: a few at a time, again until each has arrived. */
import { IdTable } from '../core/id-table.ts';
import type { Log } from '../core/runtime.ts';
import type { Used } from './counters.ts';
import { StoreError } from './store-error.ts';

export interface SettlementsOptions {
  /** @throws StoreError `refused` when it would be refused again; anything else when it is to be sent again */
  send(callId: string, used: Used): Promise<void>;
  readonly log: Log;
  readonly atOnce: number;
  /** How long one waits for others to be sent with; absent = it is sent at once. */
  readonly waitMs?: number;
}

const againMs = 500;
/** As many as wait at most for a server that is away; their leases end then. */
const mostWaiting = 100_000;
/** Sent ones at the queue's beginning are cut off from here on. */
const longestTail = 1000;

export class Settlements {
  readonly #options: SettlementsOptions;
  /** Those that have not arrived. */
  readonly #waiting = new IdTable<Used>();
  /** Those that are to be sent, from `#next` on. */
  #queue: string[] = [];
  #next = 0;
  #sending = 0;
  /** Told when one has arrived or failed; there is one while somebody waits. */
  #progress: PromiseWithResolvers<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: SettlementsOptions) {
    this.#options = options;
  }

  get waiting(): Iterable<string> {
    return this.#waiting.entries().map(([callId]) => callId);
  }

  /** The first one of a call counts (Q3). */
  add(callId: string, used: Used): void {
    if (this.#waiting.has(callId)) return;
    if (this.#waiting.size >= mostWaiting) {
      this.#options.log.error('settlement_dropped', { call: callId });
      return;
    }
    this.#waiting.set(callId, used);
    this.#queue.push(callId);
    const { waitMs = 0 } = this.#options;
    if (waitMs === 0) this.#sendMore();
    else this.#timer ??= setTimeout(() => this.flush(), waitMs);
  }

  /** Sends now what waits for company. */
  flush(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sendMore();
  }

  /** Waits for those that are known now, until one fails; under load more come all the time. */
  async sent(): Promise<void> {
    this.flush();
    const known = [...this.waiting];
    while (this.#sending > 0 && known.some((callId) => this.#waiting.has(callId))) {
      this.#progress ??= Promise.withResolvers();
      await this.#progress.promise;
    }
  }

  async close(): Promise<void> {
    await this.sent();
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
  }

  #sendMore(): void {
    while (this.#sending < this.#options.atOnce && this.#again === undefined && !this.#closed) {
      const callId = this.#queue[this.#next];
      if (callId === undefined) break;
      this.#next += 1;
      const used = this.#waiting.get(callId);
      if (used !== undefined) void this.#send(callId, used);
    }
    if (this.#next === this.#queue.length) this.#queue.length = 0;
    else if (this.#next >= longestTail) this.#queue = this.#queue.slice(this.#next);
    else return;
    this.#next = 0;
  }

  async #send(callId: string, used: Used): Promise<void> {
    this.#sending += 1;
    try {
      await this.#options.send(callId, used);
      this.#waiting.delete(callId);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'refused') {
        // It must not hold up all others. What it held comes back with its lease, what it spent with the ledger.
        this.#waiting.delete(callId);
        this.#options.log.error('settlement_refused', { call: callId, reason: error.message });
      } else {
        this.#queue.push(callId);
        this.#later();
      }
    }
    this.#sending -= 1;
    this.#progress?.resolve();
    this.#progress = undefined;
    this.#sendMore();
  }

  #later(): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      this.#sendMore();
    }, againMs).unref();
  }
}
