/** Where a call stands in a trace (W3C Trace Context), and what is told of it when it is over. */

/** The gateway's part of a trace, for one call. */
export interface CallTrace {
  /** 32 hex digits. */
  readonly traceId: string;
  /** Of the span of the call itself, 16 hex digits. */
  readonly spanId: string;
  /** The client's span; absent when the trace begins here. */
  readonly parentId?: string;
  /** The `tracestate` that came with it. */
  readonly state?: string;
  /** Whether its spans are told; the trace id exists all the same. */
  readonly sampled: boolean;
  /** Whether prompt and answer are told as well; only of a call that is sampled. */
  readonly content: boolean;
  /** For one more span of the call. */
  newSpanId(): string;
  /** `traceparent` and `tracestate` for a request whose span has this id, as flat names and values. */
  headers(spanId: string): readonly string[];
}

export interface SpanAttributes {
  readonly [name: string]: string | number | boolean | readonly string[];
}

export interface SpanEvent {
  readonly name: string;
  /** Ms since the epoch. */
  readonly at: number;
  readonly attributes: SpanAttributes;
}

/** A span that is over. Times are ms since the epoch, with fractions. */
export interface SpanData {
  readonly name: string;
  readonly kind: 'server' | 'client';
  readonly trace: CallTrace;
  readonly spanId: string;
  readonly parentId?: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Why it failed; absent when it did not. */
  readonly failure?: string;
  readonly attributes: SpanAttributes;
  /** Characters of prompt and answer in the attributes; absent = none. */
  readonly contentLength?: number;
  readonly events: readonly SpanEvent[];
}

export interface Tracer {
  /**
   * A call begins.
   * @param parent the client's `traceparent`; one that is none begins a trace of its own.
   * @param state the client's `tracestate`.
   */
  begin(parent: string | undefined, state: string | undefined): CallTrace;
  /** Never waits, never throws. */
  record(span: SpanData): void;
}
