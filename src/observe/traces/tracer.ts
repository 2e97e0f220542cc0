/** What calls tell their spans to, where traces are configured. */
import { randomFillSync } from 'node:crypto';
import type { CallTrace, SpanData, Tracer } from '../../core/trace.ts';
import { beginTrace, type Sampling } from './context.ts';
import { SpanQueue, type SpanQueueParts } from './queue.ts';

const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

/** So many random hex digits, an even number; all zeros mean "none" in a trace and are never made. */
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

/** What became of spans since the start. */
export interface SpanCounts {
  readonly waiting: number;
  /** The collector took them. */
  readonly sent: number;
  /** Given up before they were sent. */
  readonly dropped: number;
  /** Sent, and not taken. */
  readonly failed: number;
}

export interface SpanTracerParts extends SpanQueueParts {
  readonly sampling: Sampling;
}

export class SpanTracer implements Tracer {
  readonly #sampling: Sampling;
  readonly #queue: SpanQueue;

  constructor(parts: SpanTracerParts) {
    this.#sampling = parts.sampling;
    this.#queue = new SpanQueue(parts);
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

  /** Sends what is there, for so many ms at most. */
  close(ms: number): Promise<void> {
    return this.#queue.close(ms);
  }
}
