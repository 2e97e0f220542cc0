/**
 * The deadlines of one upstream request: first event, silence, pings only, minimum rate
 * (docs/operator/time.md).
 */
import type { Timeouts } from '../core/provider.ts';

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
