/** What is known of a call when it is over; becomes the ledger row, a log line and metrics. */
import type { Usage } from '../core/generation.ts';
import type { Note } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import type { ErrorCode } from '../core/errors.ts';

export type Mode = 'relay' | 'translate';

/** `reported`: all numbers are the upstream's; `estimated`: at least one had to be guessed. */
export type UsageSource = 'reported' | 'counted' | 'estimated';

export interface Receipt {
  readonly outcome: 'ok' | 'failed' | 'canceled';
  /** Status that the client saw; undefined when it left before one was sent. */
  readonly status: number | undefined;
  readonly error: ErrorCode | undefined;
  readonly attempts: number;
  readonly target: Target | undefined;
  readonly mode: Mode | undefined;
  readonly reported: Usage | undefined;
  readonly charged: Usage;
  readonly usageSource: UsageSource;
  readonly firstEventMs: number | undefined;
  readonly totalMs: number;
  readonly notes: readonly Note[];
}
