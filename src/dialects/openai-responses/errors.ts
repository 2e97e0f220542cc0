/** Errors of the Responses API: the envelope of chat completions, and two events at the end of a stream. */
import type { WrittenError } from '../../core/dialect.ts';
import { type ErrorCode, GatewayError, streamError } from '../../core/errors.ts';
import { isObject, type JsonObject, textOf } from '../../json/value.ts';
import { writeError as writeEnvelope } from '../openai-chat/errors.ts';

/** The code in a stream's `response.failed` for each error. Codex decides by it whether to retry. */
const streamCodes = {
  invalid_request: 'invalid_prompt',
  too_large: 'invalid_prompt',
  unsupported_media_type: 'invalid_prompt',
  unauthenticated: 'invalid_prompt',
  forbidden: 'invalid_prompt',
  model_not_found: 'invalid_prompt',
  route_not_found: 'invalid_prompt',
  method_not_allowed: 'invalid_prompt',
  rate_limited: 'rate_limit_exceeded',
  budget_exhausted: 'insufficient_quota',
  overloaded: 'server_is_overloaded',
  upstream_unavailable: 'server_error',
  upstream_invalid: 'server_error',
  timeout: 'server_error',
  upstream_rejected: 'invalid_prompt',
  context_overflow: 'context_length_exceeded',
  // Like the status 400: a retry would be refused for the same credential.
  upstream_auth: 'invalid_prompt',
  internal: 'server_error',
  idempotency_busy: 'server_error',
  idempotency_conflict: 'invalid_prompt',
  idempotency_expired: 'invalid_prompt',
  store_unavailable: 'server_is_overloaded',
  stream_interrupted: 'server_error',
  shutting_down: 'server_is_overloaded',
  request_timeout: 'server_error',
  canceled: 'server_error',
} satisfies Record<ErrorCode, string>;

/** The code of a 404 for an item or response that is not stored. */
export const itemNotFound = 'item_not_found';

/** Status and body of an error answer. */
export function writeError(error: GatewayError, requestId: string): WrittenError {
  const written = writeEnvelope(error, requestId);
  const { status, body } = written;
  const answer = isObject(body['error']) ? body['error'] : {};
  // Other dialects name the whole list `messages`.
  if (answer['param'] === 'messages')
    return { status, body: { error: { ...answer, param: 'input' } } };
  if (error.reason !== itemNotFound) return written;
  return { status: 404, body: { error: { ...answer, code: null } } };
}

/** The two objects of a failure in a stream: that of the `error` event, and that of the failed response. */
export interface StreamFailure {
  readonly event: JsonObject;
  readonly response: JsonObject;
}

export function streamFailure(error: GatewayError, requestId: string): StreamFailure {
  const { body } = writeError(streamError(error), requestId);
  const answer = isObject(body['error']) ? body['error'] : {};
  const message = textOf(answer['message']) || 'The call failed.';
  const code = textOf(answer['code']) || streamCodes[error.code];
  return {
    event: { type: textOf(answer['type']), code, message, param: answer['param'] ?? null },
    response: { code: streamCodes[error.code], message: withWait(message, error) },
  };
}

/** Codex reads the time to wait from this wording. */
function withWait(message: string, { code, retryAfterMs }: GatewayError): string {
  if (code !== 'rate_limited') return message;
  return `${message} Please try again in ${((retryAfterMs ?? 1000) / 1000).toFixed(1)}s.`;
}

/** Why a response is not found, after the service's sentence. */
const gone = 'It was sent with `store: false`, was deleted, has expired, or has not ended yet.';
const off = 'This gateway keeps no responses, whatever `store` says';
const sendWhole = 'Send all items in `input`, without `previous_response_id`.';

/** A 404 for an item that is not stored, in the service's wording. @param keeps whether the gateway stores responses */
export function unknownItem(id: string, keeps: boolean): GatewayError {
  const advice = keeps
    ? 'Try again with `store` set to true, or remove this item from your input.'
    : `${off}: send the item itself instead of its id; clients do so with \`store\` set to false.`;
  return new GatewayError(
    'invalid_request',
    `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. ${advice}`,
    { path: ['input'], reason: itemNotFound },
  );
}

/** A 404 for a response that is not stored. @param keeps whether the gateway stores responses */
export function unknownId(id: string, keeps: boolean): GatewayError {
  const options = { path: ['response_id'], reason: itemNotFound };
  const why = keeps ? gone : `${off}.`;
  return new GatewayError('invalid_request', `Response with id '${id}' not found. ${why}`, options);
}

/**
 * A 400 for a response that is not stored, in the service's wording. @param keeps whether the gateway stores responses
 */
export function unknownResponse(id: string, keeps: boolean): GatewayError {
  const why = `${keeps ? gone : `${off}.`} ${sendWhole}`;
  return previousNotFound(`Previous response with id '${id}' not found. ${why}`);
}

/** The same for a stored response that continues one that is not stored. */
export function brokenChain(id: string, previous: string): GatewayError {
  return previousNotFound(
    `Previous response with id '${previous}' not found: it was deleted, or it has expired. ` +
      `The response '${id}' continues it, so what that response answered is not complete any more. ` +
      sendWhole,
  );
}

function previousNotFound(message: string): GatewayError {
  const path = ['previous_response_id'];
  return new GatewayError('invalid_request', message, {
    path,
    reason: 'previous_response_not_found',
  });
}
