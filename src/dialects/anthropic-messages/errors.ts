/** Errors as this dialect shows them (reliability.md §0, E1–E18 and EM; wire/messages.md §8). */
import type { JsonObject } from '../../core/conversation.ts';
import type { ErrorForm, ErrorTable, WrittenError } from '../../core/dialect.ts';
import { GatewayError, type ErrorCode } from '../../core/errors.ts';
import type { JsonMembers } from './fields.ts';
import { overflowMessage } from './overflow.ts';

const table = {
  invalid_request: form(400, 'invalid_request_error'),
  too_large: form(413, 'request_too_large'),
  unsupported_media_type: form(415, 'invalid_request_error'),
  unauthenticated: form(401, 'authentication_error'),
  forbidden: form(403, 'permission_error'),
  model_not_found: form(404, 'not_found_error'),
  route_not_found: form(404, 'not_found_error'),
  method_not_allowed: form(405, 'not_found_error'),
  rate_limited: form(429, 'rate_limit_error'),
  budget_exhausted: form(402, 'billing_error'),
  overloaded: form(529, 'overloaded_error'),
  upstream_unavailable: form(502, 'api_error'),
  upstream_invalid: form(502, 'api_error'),
  timeout: form(504, 'timeout_error'),
  upstream_rejected: form(400, 'invalid_request_error'),
  context_overflow: form(400, 'invalid_request_error'),
  upstream_auth: form(502, 'api_error'),
  internal: form(500, 'api_error'),
  idempotency_busy: form(409, 'invalid_request_error'),
  idempotency_conflict: form(422, 'invalid_request_error'),
  idempotency_expired: form(409, 'invalid_request_error'),
  store_unavailable: form(529, 'overloaded_error'),
  stream_interrupted: form(502, 'api_error'),
  shutting_down: form(529, 'overloaded_error'),
  request_timeout: form(408, 'invalid_request_error'),
  canceled: form(499, 'api_error'),
} satisfies Record<ErrorCode, ErrorForm>;

/** How the messages dialect shows each error code. It has no `code` field. */
export const errorTable: ErrorTable = table;

const threadReason = 'thread_unsupported_request';

/** What the SDK's tool runner must hear to resend the whole conversation (clients.md §2.1). */
export function threadRefusal(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'Message threads are not supported here; send the whole conversation without `thread`.',
    { path: ['thread'], reason: threadReason },
  );
}

/** Status and body of an error answer. */
export function writeError(error: GatewayError, requestId: string): WrittenError {
  const { status, type } = errorForm(error);
  const written: JsonMembers = { type, message: messageOf(error, requestId) };
  if (error.reason === threadReason) {
    written['details'] = { error_code: threadReason, unsupported: ['thread'] };
  }
  const body: JsonObject = { type: 'error', error: written, request_id: requestId };
  return { status, body };
}

/** The one event that ends a stream in failure; no `message_stop` follows it (EM). */
export function writeStreamError(error: GatewayError, requestId: string): string {
  return `event: error\ndata: ${JSON.stringify(writeError(error, requestId).body)}\n\n`;
}

/** An upstream's refusal keeps its status, and the type that goes with it (E14). */
function errorForm(error: GatewayError): ErrorForm {
  const usual = errorTable[error.code];
  if (error.code !== 'upstream_rejected' || error.status === undefined) return usual;
  switch (error.status) {
    case 404:
      return form(404, 'not_found_error');
    case 413:
      return form(413, 'request_too_large');
    default:
      return form(error.status, usual.type);
  }
}

function messageOf(error: GatewayError, requestId: string): string {
  const { path, message } = error;
  if (error.code === 'context_overflow') return overflowMessage(message);
  if (error.code === 'internal') return `${message} (request ${requestId})`;
  // Where an upstream found the fault is a place in the body that was sent to it.
  if (path === undefined || path.length === 0 || error.code === 'upstream_rejected') return message;
  return `${path.join('.')}: ${message}`;
}

function form(status: number, type: string): ErrorForm {
  return { status, type, code: null };
}
