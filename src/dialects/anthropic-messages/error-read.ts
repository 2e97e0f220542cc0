/**
 * Reads the errors of messages servers: HTTP bodies of any shape, and error objects inside streams
 * and documents (wire/upstreams.md §6.2, wire/translation.md §10.1; F10–F20, F24, F43).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../../core/errors.ts';
import { tryParseInner } from '../../core/json-inner.ts';
import { isObject } from '../../core/json.ts';
import { isArray, textOf } from './fields.ts';
import { saysOverflow } from './overflow.ts';

/** What an upstream said, stripped of its shape. */
interface Complaint {
  /** `''` when there is none. */
  readonly message: string;
  /** `error.type` or what stands in its place; `''` when there is none. */
  readonly type: string;
}

const maxMessageLength = 2048;
const maxLoggedLength = 8192;
/** No further is an error judged by its words: it may be a frame of megabytes, and patterns look at it (S20, S22). */
const maxJudgedLength = 8192;
const quota = /credit balance|insufficient_quota|insufficient (balance|credits|funds|quota)/i;
/** Anything that looks like a key: vendors echo them (S14). */
const secrets = /\b(sk|rk|gw|gsk|xai|pk|key)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|Bearer\s+\S+/g;

/** An HTTP error answer. Never throws. */
export function readError(status: number, body: string): GatewayError {
  const parsed = tryParseInner(body);
  const upstream = { status, body: body.slice(0, maxLoggedLength) };
  return makeError(readComplaint(parsed), { status, upstream });
}

/** An error object that stood in a stream or in a document with status 200 (F24, F43). */
export function readErrorValue(value: Json | undefined): GatewayError {
  const complaint = readComplaint(value);
  return makeError(complaint, { status: statusByType.get(complaint.type) ?? 500 });
}

interface Circumstances {
  readonly status: number;
  readonly upstream?: { readonly status: number; readonly body: string };
}

function makeError(complaint: Complaint, { status, upstream }: Circumstances): GatewayError {
  const options: GatewayErrorOptions = upstream === undefined ? {} : { upstream };
  const code = codeOf(complaint, status);
  const told = tellable(complaint.message);
  switch (code) {
    case 'upstream_auth':
      // The text would name the gateway's own credential or account.
      return new GatewayError(code, "The provider refused the gateway's credentials.", options);
    case 'upstream_rejected':
      return new GatewayError(
        code,
        told ?? `The provider refused the request with status ${status}.`,
        { ...options, status: status >= 500 ? 400 : status },
      );
    default:
      return new GatewayError(code, told ?? standardText(code, status), options);
  }
}

function codeOf(complaint: Complaint, status: number): ErrorCode {
  const { type, message } = complaint;
  if (status < 500 && status !== 429 && saysOverflow(`${type} ${message}`)) {
    return 'context_overflow';
  }
  if ((status === 400 || status === 429) && (quota.test(type) || quota.test(message))) {
    return 'upstream_auth';
  }
  // The type decides where it is more telling than the status: overload also comes as 500 (H3).
  if (type === 'overloaded_error') return 'overloaded';
  if (type === 'billing_error') return 'upstream_auth';
  if (type === 'rate_limit_error') return 'rate_limited';
  return codeByStatus(complaint, status);
}

function codeByStatus({ message, type }: Complaint, status: number): ErrorCode {
  const plain = plainStatuses.get(status);
  if (plain !== undefined) return plain;
  if (status === 404) {
    // Without a word about a model the address is wrong, which is not the client's fault.
    return /model|not_found/i.test(type + message) ? 'model_not_found' : 'upstream_invalid';
  }
  return status < 500 ? 'upstream_invalid' : 'upstream_unavailable';
}

/** Statuses that mean the same whatever the body says. */
const plainStatuses: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [400, 'upstream_rejected'],
  [401, 'upstream_auth'],
  [402, 'upstream_auth'],
  [403, 'upstream_auth'],
  [408, 'timeout'],
  [409, 'upstream_unavailable'],
  [413, 'upstream_rejected'],
  [422, 'upstream_rejected'],
  [429, 'rate_limited'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [524, 'timeout'],
  [529, 'overloaded'],
]);

/** The status that an error type stands for (wire/messages.md §8). */
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

function standardText(code: ErrorCode, status: number): string {
  switch (code) {
    case 'rate_limited':
      return 'The provider limits the rate of requests; retry later.';
    case 'overloaded':
      return 'The provider is overloaded; retry later.';
    case 'timeout':
      return 'The provider did not answer in time.';
    case 'model_not_found':
      return 'The provider does not have this model.';
    case 'context_overflow':
      return 'prompt is too long';
    default:
      return `The provider failed with status ${status}.`;
  }
}

/** The upstream's words, safe to show: cut, without anything that looks like a key. */
function tellable(message: string): string | undefined {
  if (message === '') return undefined;
  return message.slice(0, maxMessageLength).replace(secrets, '[redacted]');
}

/** Text that is not JSON, a page of HTML above all, is no complaint that a client could use. */
function readComplaint(body: Json | undefined): Complaint {
  if (isArray(body)) return readComplaint(body[0]);
  if (!isObject(body)) return { message: '', type: '' };
  const inner = body['error'];
  const error = isObject(inner) ? inner : body;
  const type = textOf(error['type']) || textOf(error['code']) || textOf(body['type']);
  return {
    message: readMessage(error, body).slice(0, maxJudgedLength),
    type: type.slice(0, maxJudgedLength),
  };
}

function readMessage(error: JsonObject, body: JsonObject): string {
  return (
    textOf(error['message']) ||
    textOf(body['error']) ||
    textOf(body['message']) ||
    readDetail(body['detail'])
  );
}

/** `detail`: a text, or FastAPI's list of what is wrong where. */
function readDetail(detail: Json | undefined): string {
  if (!isArray(detail)) return textOf(detail);
  return detail
    .filter(isObject)
    .map((item) => {
      const where = isArray(item['loc']) ? `${item['loc'].map(String).join('.')}: ` : '';
      return `${where}${textOf(item['msg'])}`;
    })
    .join('; ');
}
