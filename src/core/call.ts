/** One client request on its way. */
import type { JsonSource } from './client-body.ts';
import type { Part } from './conversation.ts';
import type { ClientDialect, RequestHead } from './dialect.ts';
import type { ErrorCode, GatewayError } from './errors.ts';
import type { FinishReason, Usage } from './generation.ts';
import type { Note } from './notes.ts';
import type { Grant } from './policy.ts';
import type { Route, Target } from './provider.ts';

/** The key behind a call. */
export interface Caller {
  readonly keyId: string;
  readonly team?: string;
  /** Whether the key was revoked since the call began: then it is cut (S6). */
  revoked(): boolean;
}

/** By what costs are attributed. */
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
  /** The key or the route requests cache marks where the client sets none. */
  readonly cache?: 'auto' | undefined;
  /** The key of the call. */
  readonly caller: Caller;
  /** By what its cost is attributed. */
  readonly labels: Labels;
  /** The grant of a limited call; undefined = no limits. */
  readonly grant: Grant | undefined;
  /** Its position in a trace; absent if traces are not configured. */
  readonly trace?: CallTrace | undefined;
  /** Monotonic ms at which the request arrived. */
  readonly startedAt: number;
  /** Wall-clock ms of the same moment. */
  readonly startedWall: number;
  /** A request header of the client by its lower-case name. */
  header(name: string): string | undefined;
}

// The position of a call in a trace (W3C Trace Context), and its spans when it is over.

/** The gateway's part of a trace, for one call. */
export interface CallTrace {
  /** 32 hex digits. */
  readonly traceId: string;
  /** The id of the call's own span, 16 hex digits. */
  readonly spanId: string;
  /** The client's span; absent when the trace begins here. */
  readonly parentId?: string;
  /** The `tracestate` that came with it. */
  readonly state?: string;
  /** Whether its spans are exported; the trace id exists in both cases. */
  readonly sampled: boolean;
  /** Whether prompt and answer are exported as well; only for a sampled call. */
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

// The data of a finished call; becomes the ledger row, a log line and metrics.

export type Mode = 'relay' | 'translate';

/** `reported`: all numbers are the upstream's; `estimated`: at least one had to be guessed. */
export type UsageSource = 'reported' | 'counted' | 'estimated';

/**
 * Ends that no failure of an upstream brought about: the client left (`canceled`), or it read no further and was cut
 * (`interrupted`, F76).
 */
export type ClientEnd = 'canceled' | 'interrupted';

/** One upstream attempt of a call. */
export interface AttemptReceipt {
  readonly target: Target;
  /** Monotonic ms, as the call's own beginning. */
  readonly startedAt: number;
  readonly ms: number;
  /** HTTP status of the upstream. */
  readonly status: number | undefined;
  readonly outcome: Receipt['outcome'];
  readonly error: ErrorCode | ClientEnd | undefined;
  /** The error that `error` is the code of; absent for the client's ends. */
  readonly failure?: GatewayError | undefined;
  readonly reported: Usage | undefined;
  readonly maybeBilled: boolean;
  /** Id of its span; absent where the call is not traced. */
  readonly spanId: string | undefined;
  /** Until the upstream began to answer; absent when it did not. */
  readonly firstEventMs: number | undefined;
  /** Absent where the call is not traced. */
  readonly said: UpstreamStatement | undefined;
  /** Why the gateway ended a good answer before the upstream did. */
  readonly cut: CutReason | undefined;
  /** The body of an error status, 64 KiB at most; for the content log only. */
  readonly errorBody?: string | undefined;
}

/** The upstream's report about its answer, as far as it arrived. */
export interface UpstreamStatement {
  /** Its own id of the answer and the model that it says answered. */
  readonly start: { readonly id: string; readonly model: string } | undefined;
  readonly finish: FinishReason | undefined;
  /** The answer, cut at a limit; absent unless traces have content. */
  readonly output?: { readonly parts: readonly Part[]; readonly cut: boolean } | undefined;
}

/** `limit`: at the end of what was reserved (F63); `stop`: at a stop sequence that was not sent upstream. */
export type CutReason = 'limit' | 'stop';

/** A canceled hedged request, which its vendor may bill nevertheless. */
export interface ChargedTry {
  readonly target: Target;
  readonly charged: Usage;
}

export interface Receipt {
  readonly outcome: 'ok' | 'failed' | 'canceled';
  /** Status that the client saw; undefined when it left before one was sent. */
  readonly status: number | undefined;
  readonly error: ErrorCode | ClientEnd | undefined;
  /** The error that `error` is the code of; absent for the client's ends. */
  readonly failure?: GatewayError | undefined;
  readonly attempts: readonly AttemptReceipt[];
  readonly target: Target | undefined;
  /** The model that the upstream says answered; absent where it says none. */
  readonly answeredModel?: string | undefined;
  readonly mode: Mode | undefined;
  readonly reported: Usage | undefined;
  readonly charged: Usage;
  /** Canceled hedged requests, which are paid for. */
  readonly secondary: readonly ChargedTry[];
  readonly usageSource: UsageSource;
  /** The upstream reported impossible usage: it was corrected or omitted. */
  readonly suspect: boolean;
  readonly firstEventMs: number | undefined;
  readonly totalMs: number;
  readonly notes: readonly Note[];
  /** Its client left, and the answer was read on to its end. */
  readonly readToEnd?: boolean | undefined;
}

/** The data of a running call. */
export interface RunningCall extends Pick<
  Receipt,
  'target' | 'answeredModel' | 'mode' | 'reported' | 'charged' | 'secondary' | 'totalMs'
> {
  /** Attempts so far. */
  readonly attempts: number;
}
