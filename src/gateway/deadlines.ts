/** The deadlines of one upstream request: its first event, silence, pings alone, the lowest rate (docs/operator/time.md). */
import type { Timeouts } from '../core/provider.ts';

/** How long pings and comments alone count as a sign that the model goes on (F49). */
const pingsMs = 5 * 60_000;

/** All times are monotonic ms. A missed deadline is told as the message of the error. */
export class Deadlines {
  readonly #timeouts: Timeouts;
  #sentAt = Number.NEGATIVE_INFINITY;
  /** When bytes of any kind came last. */
  lastActivityAt = Number.NEGATIVE_INFINITY;
  /** Of events; pings and comments are none. */
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

  /** The request is sent. @param reasons the model may reason before its first event. */
  start(now: number, reasons: boolean): void {
    const { firstEventMs, reasoningMs } = this.#timeouts;
    this.#sentAt = now;
    this.lastActivityAt = now;
    this.#lastEventAt = now;
    this.#reasons = reasons;
    this.#firstEventMs = reasons ? (reasoningMs ?? firstEventMs) : firstEventMs;
  }

  /** The upstream was paused until now: its silence does not count. */
  restart(now: number): void {
    this.lastActivityAt = now;
    this.#lastEventAt = now;
    this.#measureFrom(now);
  }

  event(bytes: number, now: number): void {
    this.#lastEventAt = now;
    this.#rateBytes += bytes;
  }

  /** The rate counts from the commit point on. */
  commit(): void {
    this.#measureFrom(this.#lastEventAt);
  }

  /** A body that stops in its middle does not go on. */
  stalls(now: number): boolean {
    return now - this.lastActivityAt > this.#timeouts.idleMs;
  }

  /** Before the first event of a stream or the end of a document. @param document one has begun. */
  missedByBeginning(
    now: number,
    { document, streamed }: { readonly document: boolean; readonly streamed: boolean },
  ): string | undefined {
    // All of the document is here: what takes time is reading it.
    if (this.lastActivityAt === Number.POSITIVE_INFINITY) return undefined;
    const { idleMs, documentMs } = this.#timeouts;
    if (document && this.stalls(now)) {
      return `The model stopped in the middle of its answer for more than ${idleMs} ms.`;
    }
    // A document may come though a stream was asked for.
    const limit = streamed && !document ? this.#firstEventMs : documentMs;
    return now - this.#sentAt > limit ? `The model did not answer within ${limit} ms.` : undefined;
  }

  /** After the first event. @param committed its first content came. */
  missedByStream(now: number, committed: boolean): string | undefined {
    const { minBytesPerS, rateWindowMs = 30_000 } = this.#timeouts;
    const idleMs = this.#idleMs(committed);
    if (now - this.lastActivityAt > idleMs) {
      return `The model stopped answering for more than ${idleMs} ms.`;
    }
    if (now - this.#lastEventAt > Math.max(idleMs, pingsMs)) {
      return 'The model sent nothing but pings for more than five minutes.';
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
