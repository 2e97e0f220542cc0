/** What is known of a call when it is over; becomes the ledger row, a log line and metrics. */
import type { FinishReason, Usage } from './generation.ts';
import type { Note } from './notes.ts';
import type { Target } from './provider.ts';
import type { ErrorCode } from './errors.ts';
import type { Part } from './conversation.ts';

export type Mode = 'relay' | 'translate';

/** `reported`: all numbers are the upstream's; `estimated`: at least one had to be guessed. */
export type UsageSource = 'reported' | 'counted' | 'estimated';

/**
 * Ends that no failure of an upstream brought about: the client left (LC), or it read no further and was cut
 * (LP, F76).
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
  readonly reported: Usage | undefined;
  readonly maybeBilled: boolean;
  /** Id of its span; absent where the call is not traced. */
  readonly spanId: string | undefined;
  /** Until the upstream began to answer; absent when it did not. */
  readonly firstEventMs: number | undefined;
  /** Absent where the call is not traced. */
  readonly said: UpstreamWords | undefined;
  /** Why the gateway ended a good answer before the upstream did. */
  readonly cut: CutReason | undefined;
  /** The body of an error status, 64 KiB at most; for the content log only. */
  readonly errorBody?: string | undefined;
}

/** What an upstream reported about its answer, as far as it came. */
export interface UpstreamWords {
  /** Its own id of the answer and the model that it says answered. */
  readonly start: { readonly id: string; readonly model: string } | undefined;
  readonly finish: FinishReason | undefined;
  /** The answer, cut at a limit; absent unless traces have content. */
  readonly output?: { readonly parts: readonly Part[]; readonly cut: boolean } | undefined;
}

/** `limit`: at the end of what was reserved (F63); `stop`: at a stop sequence that the upstream was not told. */
export type CutReason = 'limit' | 'stop';

/** A hedged request that was canceled: its vendor may bill it all the same. */
export interface ChargedTry {
  readonly target: Target;
  readonly charged: Usage;
}

export interface Receipt {
  readonly outcome: 'ok' | 'failed' | 'canceled';
  /** Status that the client saw; undefined when it left before one was sent. */
  readonly status: number | undefined;
  readonly error: ErrorCode | ClientEnd | undefined;
  readonly attempts: readonly AttemptReceipt[];
  readonly target: Target | undefined;
  readonly mode: Mode | undefined;
  readonly reported: Usage | undefined;
  readonly charged: Usage;
  /** Canceled hedged requests, which are paid for. */
  readonly secondary: readonly ChargedTry[];
  readonly usageSource: UsageSource;
  /** The upstream reported what cannot be: it was put right, or left out. */
  readonly suspect: boolean;
  readonly firstEventMs: number | undefined;
  readonly totalMs: number;
  readonly notes: readonly Note[];
  /** Its client left, and the answer was read on to its end. */
  readonly readToEnd?: boolean | undefined;
}

/** What is known of a call that still runs. */
export interface RunningCall extends Pick<
  Receipt,
  'target' | 'mode' | 'reported' | 'charged' | 'secondary' | 'totalMs'
> {
  /** Attempts so far. */
  readonly attempts: number;
}
