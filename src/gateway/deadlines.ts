/**
 * The times of calls (docs/operator/time.md). `Deadlines` are those of one upstream request: first event, silence, pings
 * only, minimum rate. `Sweeper` is the one timer that checks them for all calls. `DetachedStreams` limits the answers that
 * are read to their end after their client left.
 */
import type { Timeouts } from '../core/provider.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';

/** How long pings and comments alone count as progress. */
const pingsMs = 5 * 60_000;

/** All times are monotonic ms. A missed deadline is returned as an error message. */
export class Deadlines {
  readonly #timeouts: Timeouts;
  #sentAt = Number.NEGATIVE_INFINITY;
  /** Time of the last received bytes of any kind. */
  lastActivityAt = Number.NEGATIVE_INFINITY;
  /** Time of the last event; pings and comments do not count. */
  #lastEventAt = Number.NEGATIVE_INFINITY;
  #reasons = false;
  #firstEventMs: number;
  /** Bytes of events since `#rateSince`. */
  #rateBytes = 0;
  #rateSince = Number.NEGATIVE_INFINITY;

  constructor(timeouts: Timeouts) {
    this.#timeouts = timeouts;
    this.#firstEventMs = timeouts.firstEventMs;
  }

  /** The request was sent. @param reasons the model may reason before its first event. */
  start(now: number, reasons: boolean): void {
    const { firstEventMs, reasoningMs } = this.#timeouts;
    this.#sentAt = now;
    this.lastActivityAt = now;
    this.#lastEventAt = now;
    this.#reasons = reasons;
    this.#firstEventMs = reasons ? (reasoningMs ?? firstEventMs) : firstEventMs;
  }

  /** The upstream was paused until now, which does not count as silence. */
  restart(now: number): void {
    this.lastActivityAt = now;
    this.#lastEventAt = now;
    this.#measureFrom(now);
  }

  event(bytes: number, now: number): void {
    this.#lastEventAt = now;
    this.#rateBytes += bytes;
  }

  /** The minimum rate applies from the commit point on. */
  commit(): void {
    this.#measureFrom(this.#lastEventAt);
  }

  /** Whether the body stalled in the middle. */
  stalls(now: number): boolean {
    return now - this.lastActivityAt > this.#timeouts.idleMs;
  }

  /** Before the first event of a stream or the end of a document. @param document a document has begun. */
  missedByBeginning(
    now: number,
    { document, streamed }: { readonly document: boolean; readonly streamed: boolean },
  ): string | undefined {
    // The document is complete: only parsing takes time.
    if (this.lastActivityAt === Number.POSITIVE_INFINITY) return undefined;
    const { idleMs, documentMs } = this.#timeouts;
    if (document && this.stalls(now)) {
      return `The model stalled in the middle of its answer for more than ${idleMs} ms.`;
    }
    // A document may arrive although a stream was requested.
    const limit = streamed && !document ? this.#firstEventMs : documentMs;
    return now - this.#sentAt > limit ? `The model did not answer within ${limit} ms.` : undefined;
  }

  /** After the first event. @param committed its first content arrived. */
  missedByStream(now: number, committed: boolean): string | undefined {
    const { minBytesPerS, rateWindowMs = 30_000 } = this.#timeouts;
    const idleMs = this.#idleMs(committed);
    if (now - this.lastActivityAt > idleMs) {
      return `The model stopped answering for more than ${idleMs} ms.`;
    }
    if (now - this.#lastEventAt > Math.max(idleMs, pingsMs)) {
      return 'The model sent only pings for more than five minutes.';
    }
    if (!committed || minBytesPerS === undefined) return undefined;
    const passed = now - this.#rateSince;
    if (passed <= rateWindowMs) return undefined;
    const enough = this.#rateBytes >= (minBytesPerS * passed) / 1000;
    this.#measureFrom(now);
    return enough ? undefined : `The model answered with less than ${minBytesPerS} bytes a second.`;
  }

  /** A model may send a first event and then reason without events. */
  #idleMs(committed: boolean): number {
    const { idleMs } = this.#timeouts;
    return this.#reasons && !committed ? Math.max(idleMs, this.#firstEventMs) : idleMs;
  }

  #measureFrom(now: number): void {
    this.#rateSince = now;
    this.#rateBytes = 0;
  }
}

// One timer for all calls. Timeouts and keep-alives are checked ten times a second instead of a timer
// a call that every chunk would have to reset.

export const sweepEveryMs = 100;
/** If a sweep comes this late after the one before it, the process was suspended or blocked meanwhile. */
const lateMs = 2 * sweepEveryMs;

export interface Swept {
  /** The item's index in the sweeper's list; -1 if it is not in the list. Only the sweeper sets it. */
  index: number;
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

interface SweeperOptions {
  /**
   * If other gateways settle the calls of one that is silent: calls end when this process hung
   * still for longer (a stopped process, a suspended machine), since what they held may be spent (Q1).
   */
  readonly stillMs?: number;
}

export class Sweeper {
  readonly #clock: Clock;
  /**
   * An array, not a Set: a Set that is added to and deleted from for every call is rehashed all the
   * time, and each dead table keeps the next one, with the calls of its time, alive until the next
   * full collection (`node bench/call-tables.ts`: 0.7 µs a call instead of 1.0–1.3, one full collection instead of 5–10).
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
    item.index = this.#live.length;
    this.#live.push(item);
    this.#timer ??= setInterval(() => this.#sweep(), sweepEveryMs);
  }

  /** Removes the item; the last one moves to its index. A second call does nothing. */
  delete(item: Swept): void {
    const { index } = item;
    if (index === -1) return;
    item.index = -1;
    const last = this.#live.pop();
    if (last !== undefined && last !== item) {
      this.#live[index] = last;
      last.index = index;
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
