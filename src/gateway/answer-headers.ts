/** What the client learns about the call in headers, on both endpoints alike (architecture.md). */
import type { GatewayError } from '../core/errors.ts';
import type { NoteList } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import { longestRetryAfterMs } from '../wire/retry-after.ts';
import type { Mode, UsageSource } from './receipt.ts';

export interface AnswerFacts {
  readonly requestId: string;
  readonly target: Target | undefined;
  readonly mode: Mode | undefined;
  readonly attempts: number;
  readonly usage: UsageSource | undefined;
  readonly notes: NoteList;
}

/** Flat headers of an answer; the caller adds its content headers. */
export function answerHeaders(facts: AnswerFacts): string[] {
  const headers = ['x-request-id', facts.requestId, 'request-id', facts.requestId];
  if (facts.target !== undefined) {
    headers.push(
      'x-gateway-target',
      headerSafe(`${facts.target.provider.id}/${facts.target.model}`),
    );
  }
  if (facts.mode !== undefined) headers.push('x-gateway-mode', facts.mode);
  headers.push('x-gateway-attempts', String(facts.attempts));
  if (facts.usage !== undefined) headers.push('x-gateway-usage', facts.usage);
  const notes = facts.notes.header();
  if (notes !== '') headers.push('x-gateway-notes', notes);
  return headers;
}

/** Headers of a stream: nothing between here and the client may hold it back (E2). */
export const streamHeaders: readonly string[] = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache, no-transform',
  'x-accel-buffering',
  'no',
];

/** Failures that no retry can cure; the SDKs are told so (H4, E9). */
const hopeless: ReadonlySet<string> = new Set([
  'invalid_request',
  'too_large',
  'model_not_found',
  'upstream_rejected',
  'context_overflow',
  'budget_exhausted',
  'forbidden',
  'idempotency_conflict',
  'idempotency_expired',
]);

/**
 * `retry-after`, `retry-after-ms` and `x-should-retry` of an error. An upstream's own wait is passed
 * on; a wait beyond 60 s becomes "do not retry", since both SDKs would sleep through it.
 */
export function retryHeaders(error: GatewayError, random: () => number): readonly string[] {
  if (error.code === 'unauthenticated') return ['www-authenticate', 'Bearer'];
  if (hopeless.has(error.code)) return ['x-should-retry', 'false'];
  if (
    error.code !== 'rate_limited' &&
    error.code !== 'overloaded' &&
    error.code !== 'store_unavailable' &&
    error.retryAfterMs === undefined
  ) {
    return [];
  }
  const wait = error.retryAfterMs ?? 1000 + Math.floor(random() * 4000);
  if (wait > longestRetryAfterMs) return ['x-should-retry', 'false'];
  return ['retry-after', String(Math.ceil(wait / 1000)), 'retry-after-ms', String(Math.ceil(wait))];
}

/** Header values are latin-1 without control characters; anything else becomes `?`. */
function headerSafe(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '?');
}
