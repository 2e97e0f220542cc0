/** Settlements on their way to a server: a few at a time, again until each has arrived. */
import { IdTable } from '../../core/id-table.ts';
import type { Log } from '../../core/runtime.ts';
import type { Used } from './counters.ts';
import { StoreError } from '../store-error.ts';

export interface Settlement {
  readonly callId: string;
  readonly used: Used;
}

export interface SettlementsOptions {
  /**
   * Sends at least one; what has arrived already changes nothing.
   * @throws StoreError `refused` when it would be refused again; anything else when it is to be sent again
   */
  send(calls: readonly Settlement[]): Promise<void>;
  readonly log: Log;
  /** Batches on their way at the same time, at most. */
  readonly atOnce: number;
  /** Settlements in a batch, at most; absent = 1. */
  readonly together?: number;
  /** How long one waits for others to be sent with; absent = it is sent at once. */
  readonly waitMs?: number;
}

const againMs = 500;
/** As many as wait at most for a server that is away; their leases end then. */
const maxWaiting = 100_000;
/** Sent ones at the queue's beginning are cut off from here on. */
const maxTail = 1000;

export class Settlements {
  readonly #options: SettlementsOptions;
  /** Those that have not arrived. */
  readonly #waiting = new IdTable<Used>();
  /** Those that are to be sent, from `#next` on. */
  #queue: string[] = [];
  #next = 0;
  #sending = 0;
  /** Called when a settlement has arrived or failed; set while a caller waits. */
  #progress: PromiseWithResolvers<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #timeIsUp = (): void => {
    this.#timer = undefined;
    this.flush();
  };

  constructor(options: SettlementsOptions) {
    this.#options = options;
  }

  get waiting(): Iterable<string> {
    return this.#waiting.entries().map(([callId]) => callId);
  }

  /** The first one of a call counts (Q3). */
  add(callId: string, used: Used): void {
    if (this.#waiting.has(callId)) return;
    if (this.#waiting.size >= maxWaiting) {
      this.#options.log.error('settlement_dropped', { call: callId });
      return;
    }
    this.#waiting.set(callId, used);
    this.#queue.push(callId);
    const { waitMs = 0 } = this.#options;
    if (waitMs === 0) this.#sendMore();
    else this.#timer ??= setTimeout(this.#timeIsUp, waitMs);
  }

  /** Sends now what waits for company. The timer is not cleared: setting it for each call costs more than one check of an empty queue. */
  flush(): void {
    if (this.#next < this.#queue.length) this.#sendMore();
  }

  /**
   * Sends what waits as a part of another command: a command of its own costs as much as that one. If that one fails,
   * they are sent again by themselves.
   * @param unsettled the calls whose settlement failed although the command did not: each is sent by itself.
   */
  sendWith<T>(
    send: (calls: readonly Settlement[]) => Promise<T>,
    unsettled: (answer: T) => readonly string[] = () => [],
  ): Promise<T> {
    const { together = 1 } = this.#options;
    // What does not fit into one command must not come after it.
    if (this.#queue.length - this.#next > together) this.flush();
    const calls = this.#maySend ? this.#take(together) : [];
    const sent = send(calls);
    if (calls.length > 0) void this.#follow(calls, sent, unsettled);
    return sent;
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

  get #maySend(): boolean {
    return this.#sending < this.#options.atOnce && this.#again === undefined && !this.#closed;
  }

  #sendMore(): void {
    while (this.#maySend) {
      const some = this.#take(this.#options.together ?? 1);
      if (some.length === 0) break;
      this.#send(some);
    }
  }

  /** The next ones of the queue. */
  #take(most: number): readonly Settlement[] {
    const some: Settlement[] = [];
    while (some.length < most && this.#next < this.#queue.length) {
      const callId = this.#queue[this.#next] ?? '';
      this.#next += 1;
      const used = this.#waiting.get(callId);
      if (used !== undefined) some.push({ callId, used });
    }
    this.#forgetTaken();
    return some;
  }

  #forgetTaken(): void {
    if (this.#next === this.#queue.length) this.#queue.length = 0;
    else if (this.#next >= maxTail) this.#queue = this.#queue.slice(this.#next);
    else return;
    this.#next = 0;
  }

  #send(calls: readonly Settlement[]): void {
    void this.#follow(calls, this.#options.send(calls), () => []);
  }

  async #follow<T>(
    calls: readonly Settlement[],
    sent: Promise<T>,
    unsettledOf: (answer: T) => readonly string[],
  ): Promise<void> {
    this.#sending += 1;
    try {
      const unsettled = unsettledOf(await sent);
      for (const call of calls) {
        if (unsettled.includes(call.callId)) this.#send([call]);
        else this.#waiting.delete(call.callId);
      }
    } catch (error) {
      this.#failed(calls, error);
    }
    this.#sending -= 1;
    this.#progress?.resolve();
    this.#progress = undefined;
    this.#sendMore();
  }

  #failed(calls: readonly Settlement[], error: unknown): void {
    if (!(error instanceof StoreError) || error.kind !== 'refused') {
      for (const { callId } of calls) this.#queue.push(callId);
      this.#later();
    } else if (calls.length > 1) {
      // The arrival of the others shows which one it was.
      for (const call of calls) this.#send([call]);
    } else {
      // It must not hold up all others. What it held comes back with its lease, what it spent with the ledger.
      for (const { callId } of calls) {
        this.#waiting.delete(callId);
        this.#options.log.error('settlement_refused', { call: callId, reason: error.message });
      }
    }
  }

  #later(): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      this.#sendMore();
    }, againMs).unref();
  }
}
