/** One client request on its way. */
import type { JsonSource } from './client-body.ts';
import type { ClientDialect, RequestHead } from './dialect.ts';
import type { Grant } from './policy.ts';
import type { Route } from './provider.ts';

/** The key behind a call. */
export interface Caller {
  readonly keyId: string;
  readonly team?: string;
  /** Whether the key was revoked since the call began: then it is cut (S6). */
  revoked(): boolean;
}

/** What the cost of a call is told apart by. */
export interface Labels {
  readonly tags: readonly string[];
  /** The client's own name for its user. */
  readonly user?: string;
  /** JSON text. */
  readonly metadata?: string;
}

export interface Call {
  /** The gateway's request id; also the id of the ledger row. */
  readonly id: string;
  readonly dialect: ClientDialect;
  readonly source: JsonSource;
  readonly head: RequestHead;
  readonly route: Route;
  /** Whether the key or the route takes no loss in translation. */
  readonly strict: boolean;
  /** The key or the route asks for cache marks where the client sets none. */
  readonly cache?: 'auto' | undefined;
  /** Whose call it is. */
  readonly caller: Caller;
  /** What its cost is told apart by. */
  readonly labels: Labels;
  /** What it may use; undefined = nothing limits it. */
  readonly grant: Grant | undefined;
  /** Its place in a trace; absent where traces are not configured. */
  readonly trace?: CallTrace | undefined;
  /** Monotonic ms at which the request arrived. */
  readonly startedAt: number;
  /** Wall-clock ms of the same moment. */
  readonly startedWall: number;
  /** A request header of the client by its lower-case name. */
  header(name: string): string | undefined;
}

// Where a call stands in a trace (W3C Trace Context), and what is told of it when it is over.

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
