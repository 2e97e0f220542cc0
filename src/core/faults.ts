/** Whose fault a failure is. Operators see separate counts. */
import { type ErrorCode, GatewayError } from './errors.ts';
import { LimitError } from './policy.ts';

/**
 * A row for each kind: the sums of the store, the counts of the admin API and of `usage` follow. `about` is its text
 * in the admin API.
 */
export const faultKinds = [
  {
    fault: 'limit',
    member: 'failedLimit',
    column: 'failed_limit',
    about: 'Failed calls that a limit or a budget of the gateway refused.',
  },
  {
    fault: 'client',
    member: 'failedClient',
    column: 'failed_client',
    about:
      'Failed calls whose request was at fault, whether the gateway or the provider refused it.',
  },
  {
    fault: 'provider',
    member: 'failedProvider',
    column: 'failed_provider',
    about: 'Failed calls that a provider did not answer well.',
  },
  {
    fault: 'gateway',
    member: 'failedGateway',
    column: 'failed_gateway',
    about: 'Failed calls that the gateway itself could not serve: overload, store, stop, crash.',
  },
] as const;

export type FaultKind = (typeof faultKinds)[number];
export type Fault = FaultKind['fault'];

const faultNames: readonly string[] = faultKinds.map(({ fault }) => fault);

export function isFault(name: string | undefined): name is Fault {
  return name !== undefined && faultNames.includes(name);
}

/** Why a call or an attempt failed, for the operator. */
export interface Failure {
  readonly fault: Fault;
  /** The named reason in the client's answer: `price_unknown`, `content_filter`. */
  readonly reason?: string;
  /** At most 500 characters. No secrets: credentials are masked where the error is made. */
  readonly message: string;
  /** Counter of the limit or budget that refused: `key:a1b2c3d4:requests`, `team:research:month`. */
  readonly limit?: string;
}

/** The failure of a call that ran when its gateway died. */
export const gatewayDied: Failure = {
  fault: 'gateway',
  message: 'The gateway ended while this call ran; what it cost is an estimate.',
};

const ofCode: { readonly [C in ErrorCode]: Fault } = {
  invalid_request: 'client',
  too_large: 'client',
  unsupported_media_type: 'client',
  unauthenticated: 'client',
  forbidden: 'client',
  model_not_found: 'client',
  route_not_found: 'client',
  method_not_allowed: 'client',
  rate_limited: 'provider',
  budget_exhausted: 'limit',
  overloaded: 'gateway',
  upstream_unavailable: 'provider',
  upstream_invalid: 'provider',
  timeout: 'provider',
  upstream_rejected: 'client',
  context_overflow: 'client',
  upstream_auth: 'provider',
  internal: 'gateway',
  idempotency_busy: 'client',
  idempotency_conflict: 'client',
  idempotency_expired: 'client',
  store_unavailable: 'gateway',
  stream_interrupted: 'provider',
  shutting_down: 'gateway',
  request_timeout: 'client',
  canceled: 'client',
};

/** The reason of calls that a budget cannot count. */
const priceUnknown = 'price_unknown';
/** Longer messages are cut. */
const maxMessageLength = 500;

/** Whose fault it is. An answer of the provider shows that it is overloaded or lacks the model. */
export function faultOf(error: GatewayError): Fault {
  if (error instanceof LimitError || error.reason === priceUnknown) return 'limit';
  const { code, upstream } = error;
  const ofProvider =
    upstream !== undefined && (code === 'overloaded' || code === 'model_not_found');
  return ofProvider ? 'provider' : ofCode[code];
}

/** With the message for the client. */
export function failureOf(error: GatewayError): Failure {
  return withMessage(error, error.message);
}

/** The failure with details that only the operator may read: the provider's text, its address. */
export function attemptFailureOf(error: GatewayError): Failure {
  return withMessage(error, error.detail ?? error.message);
}

function withMessage(error: GatewayError, message: string): Failure {
  const { reason } = error;
  const limit = error instanceof LimitError ? error.limit : undefined;
  return {
    fault: faultOf(error),
    message: clipped(message),
    ...(reason === undefined ? {} : { reason }),
    ...(limit === undefined ? {} : { limit }),
  };
}

/** One line of well-formed text: PostgreSQL takes no NUL, and lists show it in a cell. */
function clipped(message: string): string {
  const line = message.slice(0, 2 * maxMessageLength).replaceAll(/[\p{Cc}\s]+/gu, ' ');
  const cut = line.length > maxMessageLength ? `${line.slice(0, maxMessageLength - 1)}…` : line;
  return cut.toWellFormed();
}
