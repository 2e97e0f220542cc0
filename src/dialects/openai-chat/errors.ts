/** Errors as this dialect shows them. */
import type { ErrorForm, ErrorTable, WrittenError } from '../../core/dialect.ts';
import { type ErrorCode, type GatewayError, streamError } from '../../core/errors.ts';
import type { JsonObject } from '../../json/value.ts';
import { spellPath } from './fields.ts';

const table = {
  invalid_request: form(400, 'invalid_request_error', null),
  too_large: form(413, 'invalid_request_error', 'request_too_large'),
  unsupported_media_type: form(415, 'invalid_request_error', 'unsupported_media_type'),
  unauthenticated: form(401, 'invalid_request_error', 'invalid_api_key'),
  forbidden: form(403, 'invalid_request_error', 'permission_denied'),
  model_not_found: form(404, 'invalid_request_error', 'model_not_found'),
  route_not_found: form(404, 'invalid_request_error', 'unknown_url'),
  method_not_allowed: form(405, 'invalid_request_error', 'unknown_url'),
  rate_limited: form(429, 'rate_limit_error', 'rate_limit_exceeded'),
  budget_exhausted: form(429, 'insufficient_quota', 'insufficient_quota'),
  overloaded: form(503, 'service_unavailable_error', 'server_is_overloaded'),
  upstream_unavailable: form(502, 'server_error', 'upstream_unavailable'),
  upstream_invalid: form(502, 'server_error', 'upstream_invalid_response'),
  timeout: form(504, 'server_error', 'upstream_timeout'),
  upstream_rejected: form(400, 'invalid_request_error', null),
  context_overflow: form(400, 'invalid_request_error', 'context_length_exceeded'),
  upstream_auth: form(400, 'invalid_request_error', 'upstream_auth'),
  internal: form(500, 'server_error', 'internal_error'),
  idempotency_busy: form(409, 'invalid_request_error', 'idempotency_conflict'),
  idempotency_conflict: form(422, 'invalid_request_error', 'idempotency_conflict'),
  idempotency_expired: form(409, 'invalid_request_error', 'idempotency_expired_body'),
  store_unavailable: form(503, 'service_unavailable_error', 'store_unavailable'),
  stream_interrupted: form(502, 'server_error', 'upstream_stream_interrupted'),
  shutting_down: form(503, 'service_unavailable_error', 'shutting_down'),
  request_timeout: form(408, 'invalid_request_error', 'request_timeout'),
  canceled: form(499, 'invalid_request_error', 'canceled'),
} satisfies Record<ErrorCode, ErrorForm>;

/** How chat completions shows each error code. */
export const errorTable: ErrorTable = table;

function form(status: number, type: string, code: string | null): ErrorForm {
  return { status, type, code };
}

/** Status and body of an error answer; the body has all four keys that clients read. */
export function writeError(error: GatewayError, requestId: string): WrittenError {
  const { type, code, ...usual } = errorTable[error.code];
  const status = error.code === 'upstream_rejected' ? (error.status ?? usual.status) : usual.status;
  const path = error.path ?? (error.code === 'model_not_found' ? ['model'] : undefined);
  return {
    status,
    body: {
      error: {
        message:
          error.code === 'internal' ? `${error.message} (request ${requestId})` : error.message,
        type,
        param: path === undefined || path.length === 0 ? null : spellPath(path),
        code: error.reason ?? (status === 413 ? table.too_large.code : code),
      },
    },
  };
}

/** The one event that ends a stream in failure; no `[DONE]` follows it (EM). */
export function writeStreamError(error: GatewayError, requestId: string): string {
  const body: JsonObject = writeError(streamError(error), requestId).body;
  return `data: ${JSON.stringify(body)}\n\n`;
}
