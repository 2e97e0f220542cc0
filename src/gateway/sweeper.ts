/**
 * One timer for all calls. Timeouts and keep-alives are checked ten times a second instead of a timer
 * a call that every chunk would have to reset.
 */
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';

export const sweepEveryMs = 100;
/** A sweep that comes so late behind the one before it tells that this process did nothing meanwhile. */
const lateMs = 2 * sweepEveryMs;

export interface Swept {
  /** Where the sweeper keeps the item; -1 while it does not. Only the sweeper sets it. */
  place: number;
  /** Compares its deadlines with the monotonic time. */
  check(now: number): void;
  /** Of its call. */
  readonly id: string;
  /** Ends at once. */
  end(error: GatewayError): void;
  /** Whether its client wants a stream. */
  readonly isStream?: boolean;
  /** Whether it is read on for what it costs, without its client. */
  readonly readsOn?: boolean;
  /** Since when its client takes nothing; undefined while it does. */
  readonly fullSince?: number | undefined;
  /** Ends at once, and leaves its client's connection no time to take what is written. */
  giveUp?(error: GatewayError): void;
}

export interface SweeperOptions {
  /**
   * Where other gateways settle the calls of one that says nothing: calls end when this process stood
   * still for longer (a stopped process, a suspended machine), since what they held may be spent (Q1).
   */
  readonly stillMs?: number;
}

export class Sweeper {
  readonly #clock: Clock;
  /**
   * An array, not a Set: a Set that is added to and deleted from for every call is rehashed all the
   * time, and each dead table keeps the next one, with the calls of its time, alive until the next
   * full collection. That cost a tenth of the CPU of a call.
   */
  readonly #live: Swept[] = [];
  readonly #stillMs: number;
  #timer: NodeJS.Timeout | undefined;
  #sweptAt = 0;
  #wasLate = false;

  constructor(clock: Clock, { stillMs = Number.POSITIVE_INFINITY }: SweeperOptions = {}) {
    this.#clock = clock;
    this.#stillMs = stillMs;
  }

  get size(): number {
    return this.#live.length;
  }

  /** How many of the calls are read on without their clients. */
  get readingOn(): number {
    return this.#live.reduce((sum, { readsOn }) => (readsOn === true ? sum + 1 : sum), 0);
  }

  /** How many of the calls are streams. */
  get streams(): number {
    return this.#live.reduce((sum, { isStream }) => (isStream === true ? sum + 1 : sum), 0);
  }

  add(item: Swept): void {
    // Time without live calls does not count as a late sweep.
    if (this.#live.length === 0) this.#sweptAt = this.#clock.now();
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
  }

  /** Ends everything that is still running (G14). */
  shutDown(): void {
    this.#endAll(new GatewayError('shutting_down', 'The gateway is shutting down.'));
  }

  /** Gives up the call whose client has taken nothing for the longest time; false when all take (G7). */
  cutStalest(error: GatewayError): boolean {
    let stalest: Swept | undefined;
    for (const item of this.#live) {
      const { fullSince = Number.POSITIVE_INFINITY } = item;
      if (fullSince < (stalest?.fullSince ?? Number.POSITIVE_INFINITY)) stalest = item;
    }
    if (stalest?.giveUp === undefined) return false;
    stalest.giveUp(error);
    return true;
  }

  /** Ends those of the calls that still run here: another gateway has settled them (F81). */
  endSettled(callIds: ReadonlySet<string>): void {
    for (let i = this.#live.length - 1; i >= 0; i--) {
      const item = this.#live[i];
      if (item !== undefined && callIds.has(item.id)) item.end(settledElsewhere());
    }
  }

  /**
   * From the end: a removed item is replaced by one that was already visited. The timer stops when a sweep
   * finds no calls, not at the end of each single call. A late sweep checks nothing, once: timers run before
   * pending socket data, and an upstream is not to blame for a time in which the gateway did not read.
   */
  #sweep(): void {
    if (this.#live.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = this.#clock.now();
    const sinceMs = now - this.#sweptAt;
    this.#sweptAt = now;
    if (sinceMs > this.#stillMs) {
      this.#endAll(settledElsewhere());
      return;
    }
    this.#wasLate = sinceMs > lateMs && !this.#wasLate;
    if (this.#wasLate) return;
    for (let i = this.#live.length - 1; i >= 0; i--) this.#live[i]?.check(now);
  }

  #endAll(error: GatewayError): void {
    for (let i = this.#live.length - 1; i >= 0; i--) this.#live[i]?.end(error);
  }
}

function settledElsewhere(): GatewayError {
  const why = 'The gateway did not report this call for so long that another instance settled it.';
  return new GatewayError('store_unavailable', why, { retryable: false });
}

/** Detached streams at the same time, so that clients that disconnect cannot keep a provider busy. */
const maxDetached = 64;
/** They count against `limits.streams`: at most this share of it. */
const maxDetachedShare = 0.1;
/** How long a detached stream is read; then its usage is estimated. */
export const maxDetachedMs = 60_000;

/**
 * Limits detached streams: their client disconnected, their provider bills them in full, and they are read to
 * their end for the usage that it reports.
 */
export class DetachedStreams {
  readonly #streams: () => number;
  #running = 0;

  /** @param streams how many calls may run at the same time now. */
  constructor(streams: () => number) {
    this.#streams = streams;
  }

  /** Takes a slot; false when none is free. `done` must follow. */
  take(): boolean {
    if (this.#running >= Math.min(maxDetached, maxDetachedShare * this.#streams())) return false;
    this.#running += 1;
    return true;
  }

  done(): void {
    this.#running -= 1;
  }
}
