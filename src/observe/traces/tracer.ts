/** Starts traces and exports the spans of calls, where traces are configured. */
import { randomFillSync } from 'node:crypto';
import type { Log } from '../../core/runtime.ts';
import type { CallTrace, SpanData, Tracer } from '../../core/call.ts';

const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

/** Random hex digits, an even number; all zeros mean "none" in a trace and are never returned. */
export function newHex(digits: number): string {
  const bytes = digits / 2;
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const text = pool.toString('hex', used, used + bytes);
  used += bytes;
  return /[^0]/.test(text) ? text : newHex(digits);
}

/** The outcomes of spans since the start. */
export interface SpanCounts {
  readonly waiting: number;
  /** The collector took them. */
  readonly sent: number;
  /** Given up before they were sent. */
  readonly dropped: number;
  /** Sent, and not taken. */
  readonly failed: number;
}

export interface SpanTracerDeps extends SpanQueueDeps {
  readonly sampling: Sampling;
}

export class SpanTracer implements Tracer {
  readonly #sampling: Sampling;
  readonly #queue: SpanQueue;

  constructor(deps: SpanTracerDeps) {
    this.#sampling = deps.sampling;
    this.#queue = new SpanQueue(deps);
  }

  begin(parent: string | undefined, state: string | undefined): CallTrace {
    return beginTrace(this.#sampling, newHex, { parent, state });
  }

  record(span: SpanData): void {
    this.#queue.add(span);
  }

  /** For metrics. */
  counts(): SpanCounts {
    const { length: waiting, sent, dropped, failed } = this.#queue;
    return { waiting, sent, dropped, failed };
  }

  /** Sends the queued spans, for at most `ms`. */
  close(ms: number): Promise<void> {
    return this.#queue.close(ms);
  }
}

// W3C Trace Context (level 2): reads `traceparent` and `tracestate`, decides on sampling, writes them on.

/** Starts traces, and decides which of them are exported. */
export interface Sampling {
  /** Share of the traces that begin here, 0 to 1. */
  readonly ratio: number;
  /** Whether a client's trace continues, and its sampled flag decides. */
  readonly followsParent: boolean;
  /** Whether prompts and answers are exported. Default false. */
  readonly content?: boolean;
}

interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

const sampledFlag = 1;
/** The trace id is random: samplers may rely on it (level 2). */
const randomFlag = 2;
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const zeros = /^0+$/;
const stateForm = /^[\x20-\x7e]{1,512}$/;
const maxStateMembers = 32;

/** @param newHex returns random hex digits. */
export function beginTrace(
  { ratio, followsParent, content = false }: Sampling,
  newHex: (digits: number) => string,
  headers: { readonly parent: string | undefined; readonly state: string | undefined },
): CallTrace {
  const parent = followsParent ? readParent(headers.parent) : undefined;
  if (parent === undefined) {
    const traceId = newHex(32);
    const flags = randomFlag | (isSampled(traceId, ratio) ? sampledFlag : 0);
    return new TraceOfCall({ traceId, spanId: newHex(16), flags, content, newHex });
  }
  return new TraceOfCall({
    traceId: parent.traceId,
    spanId: newHex(16),
    parentId: parent.spanId,
    state: readState(headers.state),
    flags: parent.flags & (sampledFlag | randomFlag),
    content,
    newHex,
  });
}

/** Undefined for everything that is not a valid header: such a call begins a trace of its own. */
export function readParent(text: string | undefined): Parent | undefined {
  if (text === undefined) return undefined;
  const [, version = 'ff', traceId = '', spanId = '', flags = '', rest] = form.exec(text) ?? [];
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

function readState(text: string | undefined): string | undefined {
  if (text === undefined || !stateForm.test(text)) return undefined;
  return text.split(',').length > maxStateMembers ? undefined : text;
}

/** By the last 56 bits of the id, so that all who take the same share take the same traces. */
function isSampled(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  return Number.parseInt(traceId.slice(18), 16) < ratio * 2 ** 56;
}

interface TraceInput {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly state?: string | undefined;
  readonly flags: number;
  readonly content: boolean;
  readonly newHex: (digits: number) => string;
}

class TraceOfCall implements CallTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly state?: string;
  readonly #flags: number;
  readonly #content: boolean;
  readonly #newHex: (digits: number) => string;

  constructor({ traceId, spanId, parentId, state, flags, content, newHex }: TraceInput) {
    this.traceId = traceId;
    this.spanId = spanId;
    if (parentId !== undefined) this.parentId = parentId;
    if (state !== undefined) this.state = state;
    this.#flags = flags;
    this.#content = content;
    this.#newHex = newHex;
  }

  get sampled(): boolean {
    return (this.#flags & sampledFlag) !== 0;
  }

  get content(): boolean {
    return this.#content && this.sampled;
  }

  newSpanId(): string {
    return this.#newHex(16);
  }

  headers(spanId: string): readonly string[] {
    const flags = this.#flags.toString(16).padStart(2, '0');
    const parent = ['traceparent', `00-${this.traceId}-${spanId}-${flags}`];
    return this.state === undefined ? parent : [...parent, 'tracestate', this.state];
  }
}

// Spans queued for the collector. The queue is bounded: spans that do not fit are dropped and counted, and no
// call waits (F95).

/** Sends spans. Resolves with why they did not arrive; undefined = they did. Never rejects. */
export interface SpanSender {
  send(spans: readonly SpanData[]): Promise<string | undefined>;
  /** Gives up what is on its way. */
  close(): void;
}

export interface SpanQueueDeps {
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
  readonly #deps: SpanQueueDeps;
  readonly #waiting: SpanData[] = [];
  /** Characters of prompts and answers in them. */
  #content = 0;
  #sending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #warnedAt = Number.NEGATIVE_INFINITY;
  #unreportedCount = 0;
  /** Spans of the batch that is on its way. */
  #underWay = 0;
  /** Spans that arrived. */
  sent = 0;
  /** Spans that were not sent: no room, or the end of the gateway. */
  dropped = 0;
  /** Spans that were sent and that the collector did not take. */
  failed = 0;

  constructor(deps: SpanQueueDeps) {
    this.#deps = deps;
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
    else this.#timer ??= setTimeout(() => this.#begin(), this.#deps.sendEveryMs).unref();
  }

  /** Sends the queued spans, for at most `ms`, then drops the rest. */
  async close(ms: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms);
    this.#begin();
    await Promise.race([this.#sending, over.promise]);
    clearTimeout(timer);
    this.#closed = true;
    const left = this.#waiting.splice(0).length + this.#underWay;
    if (left > 0) this.#drop(left, 'the gateway stops');
    this.#deps.sender.close();
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
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#waiting.splice(0, this.#nextBatch());
      this.#underWay = batch.length;
      const problem = await this.#deps.sender.send(batch);
      // They were given up at the end.
      if (this.#closed) return;
      this.#underWay = 0;
      if (problem === undefined) this.sent += batch.length;
      else {
        const count = batch.length;
        this.failed += count;
        this.#miss(count, problem);
      }
    }
    // In the turn that found nothing left: a span that comes later begins the next batch.
    this.#sending = undefined;
  }

  #drop(count: number, reason: string): void {
    this.dropped += count;
    this.#miss(count, reason);
  }

  #miss(count: number, reason: string): void {
    this.#unreportedCount += count;
    const now = this.#deps.now();
    if (now - this.#warnedAt < tellEveryMs) return;
    this.#warnedAt = now;
    this.#tell(reason);
  }

  #tell(reason: string): void {
    if (this.#unreportedCount === 0) return;
    this.#deps.log.warn('spans_dropped', {
      count: this.#unreportedCount,
      reason: reason.slice(0, 300),
    });
    this.#unreportedCount = 0;
  }
}
