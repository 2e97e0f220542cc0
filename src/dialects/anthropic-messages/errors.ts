/** Errors of this dialect, written and read. */
import type { ErrorForm, ErrorTable, WrittenError } from '../../core/dialect.ts';
import { type ErrorCode, GatewayError, streamError } from '../../core/errors.ts';
import { tryParseInner } from '../../json/parse.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  textOf,
  isArray,
} from '../../json/value.ts';
import {
  codeOfStatus,
  errorSentence,
  says,
  upstreamFailure,
  type VendorComplaint,
} from '../shared/vendor-errors.ts';

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
  // Claude Code repeats a 400 of any other type six times, each time with a shorter request (decision 0037).
  upstream_auth: form(400, 'billing_error'),
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

/** The type and status of each error code. The messages dialect has no `code` field. */
export const errorTable: ErrorTable = table;

const threadReason = 'thread_unsupported_request';

/** The error after which the SDK's tool runner sends the whole conversation again. */
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
  return `event: error\ndata: ${JSON.stringify(writeError(streamError(error), requestId).body)}\n\n`;
}

/** A refusal by an upstream retains its status, and gets the type of that status (E14). */
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
  if (error.code === 'context_overflow') {
    // The message in the native service's wording, with the upstream's numbers if there are any.
    if (asAgentsReadIt.test(message)) return message;
    const found = limitWords.exec(message);
    const text = found?.[1] ?? found?.[2];
    const limit = text === undefined ? undefined : toNumber(text);
    const count =
      limit === undefined
        ? undefined
        : [...message.matchAll(numbers)].map((found) => toNumber(found[0])).find((n) => n > limit);
    if (limit === undefined || count === undefined) return `prompt is too long: ${message}`;
    return `prompt is too long: ${count} tokens > ${limit} maximum`;
  }
  if (error.code === 'internal') return `${message} (request ${requestId})`;
  // The path in an upstream's error belongs to the body that the gateway sent, not to the client's.
  if (path === undefined || path.length === 0 || error.code === 'upstream_rejected') return message;
  return `${path.join('.')}: ${message}`;
}

function form(status: number, type: string): ErrorForm {
  return { status, type, code: null };
}

// Reads the errors of messages servers: HTTP bodies of any shape, and error objects inside streams
// and documents.

const maxLoggedLength = 8192;
/** Only this much of an error's text is matched: it may be a frame of megabytes (S20, S22). */
const maxJudgedLength = 8192;

/** An HTTP error answer. Never throws. */
export function readError(status: number, body: string): GatewayError {
  const parsed = tryParseInner(body);
  const upstream = { status, body: body.slice(0, maxLoggedLength) };
  return makeError(readComplaint(parsed), { status, upstream });
}

/** An error object in a stream, or in a document with status 200. */
export function readErrorValue(value: Json | undefined): GatewayError {
  const complaint = readComplaint(value);
  return makeError(complaint, { status: statusByType.get(complaint.words) ?? 500 });
}

interface Circumstances {
  readonly status: number;
  readonly upstream?: { readonly status: number; readonly body: string };
}

function makeError(complaint: VendorComplaint, { status, upstream }: Circumstances): GatewayError {
  const code = codeOf(complaint, status);
  return upstreamFailure(
    code,
    { status, message: complaint.message, inAnswer: upstream === undefined },
    {
      ...(upstream === undefined ? {} : { upstream }),
      ...(code === 'upstream_rejected' ? { status: status >= 500 ? 400 : status } : {}),
    },
  );
}

function codeOf(complaint: VendorComplaint, status: number): ErrorCode {
  const { words: type } = complaint;
  if (status < 500 && status !== 429 && says('overflow', complaint)) return 'context_overflow';
  if ((status === 400 || status === 429) && says('no-money', complaint)) return 'upstream_auth';
  // The type decides if it is more specific than the status: overload also comes as 500.
  if (type === 'overloaded_error') return 'overloaded';
  if (type === 'billing_error') return 'upstream_auth';
  if (type === 'rate_limit_error') return 'rate_limited';
  return codeByStatus(complaint, status);
}

function codeByStatus(complaint: VendorComplaint, status: number): ErrorCode {
  switch (status) {
    case 400:
    case 413:
    case 422:
      return 'upstream_rejected';
    case 404:
      // If the text names no model, the address is wrong, which is not the client's fault.
      return says('no-model', complaint) ? 'model_not_found' : 'upstream_invalid';
    case 429:
      return 'rate_limited';
    default:
      return codeOfStatus(status) ?? 'upstream_invalid';
  }
}

/** The status of each error type. */
const statusByType: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['conflict_error', 409],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

/** Text that is not JSON, such as an HTML page, is not passed on to clients. */
function readComplaint(body: Json | undefined): VendorComplaint {
  if (isArray(body)) return readComplaint(body[0]);
  if (!isObject(body)) return { message: '', words: '' };
  const inner = body['error'];
  const error = isObject(inner) ? inner : body;
  const type = textOf(error['type']) || textOf(error['code']) || textOf(body['type']);
  return {
    message: errorSentence(body).slice(0, maxJudgedLength),
    words: type.slice(0, maxJudgedLength),
  };
}

// The error of a prompt that is too long, in the wording that agents search for. They parse its numbers to decide on
// compaction.

const asAgentsReadIt = /^prompt is too long/i;
const limitWords =
  /(?:maximum|max\.?|limit|context (?:length|size|window)|n_ctx)[^\d]{0,40}(\d[\d,]{0,20})|(?<!\d)(\d[\d,]{0,20})(?: tokens?)? max/i;
const numbers = /\d[\d,]{2,}/g;

function toNumber(text: string): number {
  return Number(text.replaceAll(',', ''));
}
