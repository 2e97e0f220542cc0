/**
 * The one error table. A dialect maps every code to its own status, type and
 * code with `satisfies Record<ErrorCode, …>`, so a new code cannot be forgotten anywhere.
 */

export type ErrorCode =
  | 'invalid_request' // E1
  | 'too_large' // E2
  | 'unsupported_media_type' // E3
  | 'unauthenticated' // E4
  | 'forbidden' // E5
  | 'model_not_found' // E6
  | 'route_not_found' // E7
  | 'method_not_allowed' // E7
  | 'rate_limited' // E8
  | 'budget_exhausted' // E9
  | 'overloaded' // E10
  | 'upstream_unavailable' // E11
  | 'upstream_invalid' // E12
  | 'timeout' // E13
  | 'upstream_rejected' // E14
  | 'context_overflow' // E14
  | 'upstream_auth' // E15
  | 'internal' // E16
  | 'idempotency_busy' // E17: the first sending is being answered
  | 'idempotency_conflict' // E17: another request under the same key
  | 'idempotency_expired' // E17: answered, and the answer is gone
  | 'store_unavailable' // E18
  | 'stream_interrupted' // EM, F40
  | 'shutting_down' // EM, G14
  | 'request_timeout' // the request body did not arrive in time
  | 'canceled'; // the client left; never sent

/** Failures that may pass: the same request may succeed when it is sent again. */
export const transientCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'rate_limited',
  'overloaded',
  'upstream_unavailable',
  'upstream_invalid',
  'timeout',
  'internal',
  'idempotency_busy',
  'store_unavailable',
  'stream_interrupted',
  'shutting_down',
  'request_timeout',
]);

/** A path in the client's body. Each dialect has its own spelling. */
export type FieldPath = readonly (string | number)[];

/** Whether the same target may be tried again: never, once, or as often as the retry budget allows. */
export type Repeat = 'never' | 'once' | 'may';

export interface GatewayErrorOptions {
  /** The path of the client's field, e.g. `['messages', 3, 'content']`. */
  readonly path?: FieldPath;
  /** A named reason for the chat `code` field, e.g. `unsupported_parameter`. */
  readonly reason?: string;
  /** The client's status where the code alone does not decide it (upstream_rejected). */
  readonly status?: number;
  /** How long the caller should wait, in ms. */
  readonly retryAfterMs?: number;
  /** Details for the operator that no client may read, such as addresses. For the log only. */
  readonly detail?: string;
  /** The upstream's answer; for the log only. */
  readonly upstream?: { readonly status: number; readonly body: string };
  /** Target of a redirect, which is not followed; for the log only. */
  readonly location?: string;
  /** Whether another try (same or other target) may succeed; default by code. */
  readonly retryable?: boolean;
  /** Whether the same target may be tried again, where code and status alone do not decide (R2). */
  readonly repeat?: Repeat;
  readonly ofRequest?: boolean;
  readonly cause?: unknown;
}

const retryableByDefault: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'rate_limited',
  'overloaded',
  'upstream_unavailable',
  'upstream_invalid',
  'timeout',
  'upstream_auth',
  'stream_interrupted',
]);

/** Every failure that a caller may see. `message` is safe to show; secrets are never in it. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly path: FieldPath | undefined;
  readonly reason: string | undefined;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly detail: string | undefined;
  readonly upstream: { readonly status: number; readonly body: string } | undefined;
  /** Where a redirect pointed; never shown to a client. */
  readonly location: string | undefined;
  /** Whether another target may be tried before anything was sent to the client (R2, R3). */
  readonly retryable: boolean;
  readonly repeat: Repeat | undefined;
  /** Only this request was refused; others with the same credential may be served. */
  readonly ofRequest: boolean;

  constructor(code: ErrorCode, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.path = options.path;
    this.reason = options.reason;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.detail = options.detail;
    this.upstream = options.upstream;
    this.location = options.location;
    this.retryable = options.retryable ?? retryableByDefault.has(code);
    this.repeat = options.repeat;
    this.ofRequest = options.ofRequest === true;
  }
}

/**
 * An error that comes by the thousand and is not a fault: without a stack, which would be a fifth of what
 * its refusal costs.
 */
export function expectedError(
  code: ErrorCode,
  message: string,
  options: GatewayErrorOptions = {},
): GatewayError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new GatewayError(code, message, options);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** A 400 that names the field (E1). `reason` becomes the chat `code`. */
export function invalidRequest(message: string, path?: FieldPath, reason?: string): GatewayError {
  return new GatewayError('invalid_request', message, {
    ...(path === undefined ? {} : { path }),
    ...(reason === undefined ? {} : { reason }),
  });
}

/** A 400 for a field that the chosen model cannot honour. */
export function unsupported(path: FieldPath, why: string): GatewayError {
  return invalidRequest(why, path, 'unsupported_parameter');
}

/** Any thrown value as a GatewayError; what is not one becomes `internal` without its text. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return new GatewayError(
    'internal',
    'Internal server error: the gateway failed to handle this call, which was aborted.',
    { cause: thrown },
  );
}

/** The same error with what the upstream's headers said about waiting. */
export function withRetryAfter(
  error: GatewayError,
  retryAfterMs: number | undefined,
): GatewayError {
  if (retryAfterMs === undefined || error.retryAfterMs !== undefined) return error;
  return new GatewayError(error.code, error.message, { ...optionsOf(error), retryAfterMs });
}

/** The same error with another path. */
export function atPath(error: GatewayError, path: FieldPath): GatewayError {
  return new GatewayError(error.code, error.message, { ...optionsOf(error), path });
}

/** The same error with another text for the operator. */
export function withDetail(error: GatewayError, detail: string): GatewayError {
  return new GatewayError(error.code, error.message, { ...optionsOf(error), detail });
}

/** The same error with each text that a client or the operator sees in other words: message, detail, reason and path. */
export function withWords(error: GatewayError, reword: (text: string) => string): GatewayError {
  const { reason, path } = error;
  const message = reword(error.message);
  const detail = error.detail === undefined ? undefined : reword(error.detail);
  const code = reason === undefined ? undefined : reword(reason);
  const place = path?.map((part) => (typeof part === 'string' ? reword(part) : part));
  const same = message === error.message && detail === error.detail && code === reason;
  if (same && (place ?? []).every((part, i) => part === path?.[i])) return error;
  return new GatewayError(error.code, message, {
    ...optionsOf(error),
    ...(detail === undefined ? {} : { detail }),
    ...(code === undefined ? {} : { reason: code }),
    ...(place === undefined ? {} : { path: place }),
  });
}

/**
 * Words that each released client takes for a failure that may pass. A frame of a stream has no status,
 * so that clients decide by its text (decision 0037; test/unit/clients holds their rules).
 */
const retryWords = 'Connection lost: provider returned error (premature close of the stream).';

/** The error as the last frame of a stream states it. */
export function streamError(error: GatewayError): GatewayError {
  if (!transientCodes.has(error.code)) return error;
  return new GatewayError(error.code, `${retryWords} ${error.message}`, optionsOf(error));
}

function optionsOf(error: GatewayError): GatewayErrorOptions {
  return {
    ...(error.path === undefined ? {} : { path: error.path }),
    ...(error.reason === undefined ? {} : { reason: error.reason }),
    ...(error.status === undefined ? {} : { status: error.status }),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(error.upstream === undefined ? {} : { upstream: error.upstream }),
    ...(error.location === undefined ? {} : { location: error.location }),
    ...(error.repeat === undefined ? {} : { repeat: error.repeat }),
    ...(error.ofRequest ? { ofRequest: true } : {}),
    retryable: error.retryable,
    cause: error.cause,
  };
}
