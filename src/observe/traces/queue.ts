/**
 * Spans on their way to the collector. Bounded: what a slow collector, or none, leaves no room for is dropped
 * and counted, and nobody waits (F95).
 */
import type { Log } from '../../core/runtime.ts';
import type { SpanData } from '../../core/trace.ts';

/** Sends spans. Resolves with why they did not arrive; undefined = they did. Never rejects. */
export interface SpanSender {
  send(spans: readonly SpanData[]): Promise<string | undefined>;
  /** Gives up what is on its way. */
  close(): void;
}

export interface SpanQueueParts {
  readonly sender: SpanSender;
  readonly log: Pick<Log, 'warn'>;
  /** Monotonic ms. */
  readonly now: () => number;
  /** How long a span may wait for others. */
  readonly sendEveryMs: number;
}

const maxWaiting = 2048;
/** Encoding is work of the event loop: no more at once than it can bear. */
const batchSize = 128;
/** The same for prompts and answers, in characters; a batch has one span at least. */
const batchContent = 1024 * 1024;
const maxContentWaiting = 32 * batchContent;
const tellEveryMs = 60_000;

export class SpanQueue {
  readonly #parts: SpanQueueParts;
  readonly #waiting: SpanData[] = [];
  /** Characters of prompts and answers in them. */
  #content = 0;
  #sending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #toldAt = Number.NEGATIVE_INFINITY;
  #untold = 0;
  /** Spans of the batch that is on its way. */
  #underWay = 0;
  /** Spans that arrived. */
  sent = 0;
  /** Spans that were not sent: no room, or the end of the gateway. */
  dropped = 0;
  /** Spans that were sent and that the collector did not take. */
  failed = 0;

  constructor(parts: SpanQueueParts) {
    this.#parts = parts;
  }

  /** Spans that wait; those on their way are not counted. */
  get length(): number {
    return this.#waiting.length;
  }

  add(span: SpanData): void {
    if (this.#closed || !this.#hasRoom(span)) {
      this.#drop(
        1,
        this.#closed ? 'the gateway stops' : 'the collector is too slow: too many spans wait',
      );
      return;
    }
    this.#waiting.push(span);
    this.#content += span.contentLength ?? 0;
    if (this.#sending !== undefined) return;
    if (this.#waiting.length >= batchSize || this.#content >= batchContent) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), this.#parts.sendEveryMs).unref();
  }

  /** Sends what is there, for so many ms at most; then gives up the rest. */
  async close(ms: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms);
    this.#begin();
    await Promise.race([this.#sending, over.promise]);
    clearTimeout(timer);
    this.#closed = true;
    const left = this.#waiting.splice(0).length + this.#underWay;
    if (left > 0) this.#drop(left, 'the gateway stops');
    this.#parts.sender.close();
    this.#tell('the gateway stops');
  }

  #hasRoom({ contentLength = 0 }: SpanData): boolean {
    if (this.#waiting.length >= maxWaiting) return false;
    return contentLength === 0 || this.#content + contentLength <= maxContentWaiting;
  }

  /** How many spans go together. */
  #nextBatch(): number {
    if (this.#content === 0) return batchSize;
    let content = 0;
    let count = 0;
    for (const { contentLength = 0 } of this.#waiting) {
      if (count === batchSize || (count > 0 && content + contentLength > batchContent)) break;
      count += 1;
      content += contentLength;
    }
    this.#content -= content;
    return count;
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.length === 0) return;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#waiting.splice(0, this.#nextBatch());
      this.#underWay = batch.length;
      const problem = await this.#parts.sender.send(batch);
      // They were given up at the end.
      if (this.#closed) return;
      this.#underWay = 0;
      if (problem === undefined) this.sent += batch.length;
      else this.#fail(batch.length, problem);
    }
  }

  #drop(count: number, reason: string): void {
    this.dropped += count;
    this.#miss(count, reason);
  }

  #fail(count: number, reason: string): void {
    this.failed += count;
    this.#miss(count, reason);
  }

  #miss(count: number, reason: string): void {
    this.#untold += count;
    const now = this.#parts.now();
    if (now - this.#toldAt < tellEveryMs) return;
    this.#toldAt = now;
    this.#tell(reason);
  }

  #tell(reason: string): void {
    if (this.#untold === 0) return;
    this.#parts.log.warn('spans dropped', { count: this.#untold, reason: reason.slice(0, 300) });
    this.#untold = 0;
  }
}
