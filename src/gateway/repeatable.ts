/** Which failures may be tried again, and where (reliability.md R2, R3). */
import type { ErrorCode, GatewayError, Repeat } from '../core/errors.ts';
import type { RetryRules } from '../core/provider.ts';

/** Circumstances of a failed try that its error does not tell. */
export interface FailedTry {
  /** HTTP status of the upstream; 0 when none came. */
  readonly status: number;
  /** A stream was asked for. */
  readonly streamed: boolean;
  /** It was sent, and nothing came that tells whether it was worked on (R5). */
  readonly maybeBilled: boolean;
}

/** Whether another target may be tried after this failure (R3). */
export function mayFallBack(error: GatewayError, rules: RetryRules = {}): boolean {
  if (error.code === 'context_overflow') return rules.contextOverflow === true;
  return error.retryable || error.code === 'model_not_found';
}

const transient: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'rate_limited',
  'overloaded',
  'upstream_unavailable',
  'timeout',
]);

/** Statuses that R2 names, and the 409 of F14. */
const repeated: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504, 529]);

/** Whether the same target may be asked once more (R2). */
export function repeatOf(
  error: GatewayError,
  { status, streamed }: Pick<FailedTry, 'status' | 'streamed'>,
): Repeat {
  if (error.repeat !== undefined) return error.repeat;
  if (!error.retryable || !transient.has(error.code)) return 'never';
  const told = error.upstream?.status ?? 0;
  if (told >= 400) return repeatOfStatus(told);
  if (error.cause !== undefined) return repeatOfConnection(error, status);
  // What an upstream says inside a 200 is taken as what it says (F24). Silence is borne once more,
  // where a stream was asked for: a document had all its time.
  if (error.code !== 'timeout' || told !== 0) return 'may';
  return streamed ? 'once' : 'never';
}

function repeatOfStatus(status: number): Repeat {
  if (repeated.has(status)) return 'may';
  // No status of HTTP at all (F30).
  return status >= 600 ? 'once' : 'never';
}

function repeatOfConnection(error: GatewayError, status: number): Repeat {
  // One that was not made in time will not be made now either (F2); one that broke behind the headers
  // was a stream that began, and another target is the better bet (R1).
  if (error.code === 'timeout' || status !== 0) return 'never';
  return isUntrusted(error) ? 'never' : 'may';
}

/** No TLS, or none that is to be trusted: asking again would not change it, the operator has to (F4). */
export function isUntrusted({ cause }: GatewayError): boolean {
  const code =
    typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
  return /^(CERT_|ERR_TLS_|ERR_SSL_|EPROTO|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}
