/**
 * The meanings of upstream failures in all dialects, and the texts of them that a client may
 * read (F30). Both readers of errors use it, so that the same
 * failure looks alike whichever dialect the upstream speaks.
 */
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../../core/errors.ts';
import { tryParseInner } from '../../json/parse.ts';
import { type Json, type JsonObject, isObject } from '../../json/value.ts';
import { isPresent } from './answers.ts';

const maxMessageLength = 2048;
/** Texts that look like a key. Vendors echo them (S14). */
const secrets =
  /\b(sk|rk|gw|gsk|xai|pk|key|AIza)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|Bearer\s+\S+/g;

/** An upstream's error, independent of its JSON form. */
export interface VendorComplaint {
  /** `type`, `status` and `code` of the error, joined by spaces; `''` = none. */
  readonly words: string;
  /** The sentence; `''` = none. */
  readonly message: string;
}

type Meaning =
  | 'overflow'
  | 'no-money'
  | 'day-quota'
  | 'money-for-less'
  | 'overloaded'
  | 'shared-capacity'
  | 'rate-limited'
  | 'timeout'
  | 'rejected'
  | 'not-found'
  | 'no-model'
  | 'other-kind'
  | 'no-address'
  | 'no-address-with-200'
  | 'unauthorized'
  | 'bad-key';

interface VendorErrorRow {
  readonly means: Meaning;
  readonly match: RegExp;
  /** The searched field; absent = both. */
  readonly field?: keyof VendorComplaint;
}

/** The wordings of vendors' failures; `test/unit/dialects/vendor-errors.test.ts` has an error for each row. */
export const vendorErrors: readonly VendorErrorRow[] = [
  // The prompt does not fit.
  { means: 'overflow', match: /maximum context length/i },
  {
    means: 'overflow',
    match: /context[_ ](length|size|window|limit)[_ ]?(is |was |of |has been )?exceed/i,
  },
  { means: 'overflow', match: /exceeds? (the |this )?(model.s |available |maximum )*context/i },
  { means: 'overflow', match: /context window (of|is) /i },
  { means: 'overflow', match: /exceed_context_size/i },
  { means: 'overflow', match: /longer than the model.s context/i },
  { means: 'overflow', match: /prompt (is too long|exceeds|is longer than)/i },
  { means: 'overflow', match: /maximum prompt length/i },
  { means: 'overflow', match: /input (length )?(is too long|exceeds)/i },
  { means: 'overflow', match: /input length and `?max_tokens`? exceed/i },
  { means: 'overflow', match: /input token count[ ()\d,]{0,40}exceeds/i },
  { means: 'overflow', match: /too many (input|prompt) tokens/i },
  { means: 'overflow', match: /exceeded model token limit/i },
  { means: 'overflow', match: /range of input length/i },
  { means: 'overflow', match: /reduce the length of (the|your) (messages|prompt|input)/i },
  { means: 'overflow', match: /inputs.? tokens \+ .?max_new_tokens/i },
  // The gateway's account is empty. Gemini says "exceeded your current quota" for an ordinary rate limit.
  { means: 'no-money', match: /insufficient[ _](balance|credits|quota|funds)/i },
  { means: 'no-money', match: /billing|credits_exhausted/i, field: 'words' },
  { means: 'no-money', match: /out of credits|credit balance/i, field: 'message' },
  // Gemini: a model that the account has no quota for at all.
  { means: 'no-money', match: /\blimit: 0\b/i, field: 'message' },
  // Gemini: exhausted until midnight of the Pacific, even if the answer names a shorter wait.
  { means: 'day-quota', match: /perday/i, field: 'words' },
  // OpenRouter's 402: the balance is too small for this many tokens, and enough for fewer.
  { means: 'money-for-less', match: /fewer max_tokens|can only afford/i, field: 'message' },
  { means: 'overloaded', match: /overload/i },
  { means: 'overloaded', match: /\bslow_down\b/i, field: 'words' },
  {
    means: 'overloaded',
    match: /\bunavailable|service_?unavailable|model_?not_?ready|capacity_exceeded/i,
    field: 'words',
  },
  // Azure's 429 of a pool that it shares among customers: no quota of this account.
  { means: 'shared-capacity', match: /experiencing high demand|during peak load/i },
  // Vertex AI: capacity that all customers share.
  {
    means: 'shared-capacity',
    match: /^resource exhausted\. please try again later/i,
    field: 'message',
  },
  {
    means: 'rate-limited',
    match: /rate_?limit|resource_exhausted|too_many_requests|tokens_per|throttling/i,
    field: 'words',
  },
  { means: 'timeout', match: /timeout|deadline/i, field: 'words' },
  {
    means: 'rejected',
    match: /invalid_request|badrequest|invalid_argument|context_length|content_filter/i,
    field: 'words',
  },
  // What the Responses API calls a prompt or a picture that it refuses, in streams.
  { means: 'rejected', match: /invalid_prompt|_policy\b|data_residency/i, field: 'words' },
  { means: 'rejected', match: /image_|_image/i, field: 'words' },
  { means: 'not-found', match: /not_?found/i, field: 'words' },
  { means: 'no-model', match: /model|not_?found/i },
  // Azure: the model of a deployment speaks another API.
  { means: 'other-kind', match: /operationnotsupported|unavailable_model/i, field: 'words' },
  // The server has no such API (404 of web servers, frameworks and gateways).
  { means: 'no-address', match: /^\W*(?:(?:error|404)\W+)?not[ _]?found\W*$/i, field: 'message' },
  {
    means: 'no-address',
    match:
      /^\W*(?:the )?(?:requested )?(?:file|resource|api) (?:was |is |could )?not (?:be )?found(?: on (?:this|the) server)?\W*$/i,
    field: 'message',
  },
  { means: 'no-address', match: /\b(?:url|uri|endpoint|route|page|path)\b/i, field: 'message' },
  { means: 'no-address', match: /\bcannot post\b/i, field: 'message' },
  { means: 'no-address', match: /\bunknown_url\b/i, field: 'words' },
  { means: 'no-address', match: /\/responses\b/i, field: 'message' },
  { means: 'no-address', match: /default backend/i, field: 'message' },
  // LM Studio reports it with status 200.
  { means: 'no-address-with-200', match: /unexpected endpoint/i, field: 'message' },
  {
    means: 'unauthorized',
    match: /authentication|unauthenticated|permission|api_?key|unauthorized|forbidden/i,
    field: 'words',
  },
  {
    means: 'bad-key',
    match: /api[_ ]key[_ ](not[_ ]valid|invalid)|(invalid|incorrect) api[_ ]key/i,
  },
  // Google: a location or an account that is not served.
  { means: 'bad-key', match: /failed_precondition/i, field: 'words' },
  // Another gateway of this kind, whose own upstream refuses it.
  { means: 'bad-key', match: /\bupstream_auth\b/i, field: 'words' },
];

/** Whether the words of a failure have this meaning. */
export function says(meaning: Meaning, { words, message }: VendorComplaint): boolean {
  return vendorErrors.some(
    ({ means, match, field }) =>
      means === meaning &&
      ((field !== 'message' && match.test(words)) || (field !== 'words' && match.test(message))),
  );
}

/** Statuses that mean the same whatever the body says. */
const plainStatuses: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [401, 'upstream_auth'],
  [402, 'upstream_auth'],
  [403, 'upstream_auth'],
  [408, 'timeout'],
  [409, 'upstream_unavailable'],
  [424, 'upstream_unavailable'],
  [498, 'overloaded'],
  [499, 'upstream_unavailable'],
  [501, 'upstream_rejected'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [524, 'timeout'],
  [529, 'overloaded'],
]);

/** The code of a status without a more specific body; `undefined` for 400, 404, 413, 422 and 429. */
export function codeOfStatus(status: number): ErrorCode | undefined {
  const plain = plainStatuses.get(status);
  if (plain !== undefined || judgedByWords.has(status)) return plain;
  // Statuses of HTTP end at 599: what comes with another one is not an answer (F30).
  return status >= 500 && status < 600 ? 'upstream_unavailable' : 'upstream_invalid';
}

const judgedByWords: ReadonlySet<number> = new Set([400, 404, 413, 422, 429]);

/** Failures whose text helps the client. Texts about the upstream's own trouble do not. */
const relayedCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_rejected',
  'context_overflow',
  'model_not_found',
  'rate_limited',
]);

interface UpstreamFailure {
  readonly status: number;
  /** The upstream's sentence; '' if it sent none. */
  readonly message: string;
  /** Whether it was in an answer with status 200, where its text is the only explanation. */
  readonly inAnswer: boolean;
}

/** The error of a failed upstream, with a text that a client may read. */
export function upstreamFailure(
  code: ErrorCode,
  { status, message, inAnswer }: UpstreamFailure,
  options: GatewayErrorOptions,
): GatewayError {
  const words = shownMessage(message);
  const isRelayed =
    words !== undefined && (relayedCodes.has(code) || (inAnswer && code !== 'upstream_auth'));
  return new GatewayError(code, isRelayed ? words : standardText(code, status), {
    ...(isRelayed || words === undefined ? {} : { detail: `The provider said: ${words}` }),
    ...(status >= 600 ? { repeat: 'once' } : {}),
    ...options,
  });
}

/** The upstream's text, safe to show: cut, and without anything that looks like a key. */
function shownMessage(message: string): string | undefined {
  if (message === '') return undefined;
  return message.slice(0, maxMessageLength).replace(secrets, '[redacted]');
}

function standardText(code: ErrorCode, status: number): string {
  switch (code) {
    case 'upstream_auth':
      // The upstream's text would name the gateway's own credential or account (E15).
      return "The provider refused the gateway's own credentials or account. Only the operator of the gateway can fix this; sending the request again does not help.";
    case 'upstream_rejected':
      return `The provider refused the request with status ${status}.`;
    case 'rate_limited':
      return 'The provider limits the rate of requests; retry later.';
    case 'overloaded':
      return 'The provider is overloaded; retry later.';
    case 'timeout':
      return 'The provider did not answer in time: the request timed out there.';
    case 'model_not_found':
      return 'The provider does not have this model.';
    case 'context_overflow':
      return "This model's maximum context length is exceeded by the request.";
    case 'upstream_invalid':
      return `The provider answered with the unexpected status ${status}.`;
    default:
      return `The provider failed with status ${status}.`;
  }
}

// Finds the sentence of an upstream's error body, in any form.

const maxDepth = 6;
/** Entries of a list that are shown. */
const maxEntries = 10;

/** Members that have the sentence, the most specific first. */
const sentenceKeys = [
  'message',
  'error_message',
  'msg',
  'detail',
  'errors',
  'error',
  'description',
];

/**
 * The sentence of an error body: `{error: {message}}`, `{error}`, `{message}`, `{detail}`, FastAPI's list as
 * `loc: msg; …`, and each of them inside another (Mistral: `{message: {detail: […]}}`). `''` when there is none.
 */
export function errorSentence(value: Json | undefined, depth = 0): string {
  if (typeof value === 'string') return value;
  if (depth > maxDepth) return '';
  if (Array.isArray(value)) {
    const entries = value
      .slice(0, maxEntries)
      .map((entry: Json) => errorSentence(entry, depth + 1));
    return entries.filter((entry) => entry !== '').join('; ');
  }
  if (!isObject(value)) return '';
  if (isObject(value['error'])) {
    const inner = errorSentence(value['error'], depth + 1);
    if (inner !== '') return inner;
  }
  for (const key of sentenceKeys) {
    const sentence = errorSentence(value[key], depth + 1);
    if (sentence !== '') return locationText(value['loc']) + sentence;
  }
  return '';
}

/** `body.stop: `, where a FastAPI entry says it. */
function locationText(location: Json | undefined): string {
  return Array.isArray(location) ? `${location.map(String).join('.')}: ` : '';
}

// Reads the errors of servers that speak one of OpenAI's dialects: HTTP bodies of any shape, error objects inside streams
// and documents (F24, F43). Many servers speak both dialects, and word their failures alike in them.

/** An upstream's error, independent of its JSON form. `words` are in lower case. */
interface Complaint extends VendorComplaint {
  /** `code` unchanged, if it is a word. */
  readonly code: string | undefined;
  /** The field that the server complains about, as it spelled it. */
  readonly param: string | undefined;
  /** A status that is in the body. */
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
}

const maxLoggedLength = 8192;
/** Only this much of an error's text is matched: it may be a frame of megabytes (S20, S22). */
const maxJudgedLength = 8192;

/** Of the text that is passed on to the client: names and paths; anything else may be a quotation (S14). */
const codeForm = /^(?!\d+$)[\w.:-]{1,64}$/;
const paramForm = /^[\w.:$[\]'"-]{1,200}$/;

/** An HTTP error answer. Never throws. */
export function readError(status: number, body: string): GatewayError {
  const complaint = readComplaint(tryParseInner(body));
  const options = { upstream: { status, body: body.slice(0, maxLoggedLength) } };
  return classify(complaint, { status, options, inAnswer: false });
}

/** An error object in a stream, or in a document with status 200 (F24, F43). */
export function readErrorValue(value: Json | undefined): GatewayError {
  const complaint = readComplaint(value);
  const body = JSON.stringify(value ?? null).slice(0, maxLoggedLength);
  const status = complaint.status ?? statusByWords(complaint);
  return classify(complaint, {
    status,
    options: { upstream: { status: 200, body } },
    inAnswer: true,
  });
}

/** Error shapes without an `error` member, as they are in 200 answers. */
export function looksLikeError(body: JsonObject): boolean {
  if (body['object'] === 'error' || body['type'] === 'error') return true;
  return typeof body['message'] === 'string' || isPresent(body['detail']);
}

/** Statuses of a server without the requested address. */
const missingStatuses: ReadonlySet<number> = new Set([200, 404, 405, 501]);

/** Names in a request that a server with the API may not know. */
const namesObject = /\b(?:models?|deployments?|engine)\b|model_|with id\b/i;

/**
 * Whether a failure shows that the server lacks the API by which it was called, and not only the
 * model, or an id that the request refers to.
 */
export function isMissingApi({ upstream }: GatewayError): boolean {
  if (upstream === undefined || !missingStatuses.has(upstream.status)) return false;
  const { status, body } = upstream;
  const parsed = tryParseInner(body);
  if (status === 200) {
    return says('no-address-with-200', { words: '', message: errorSentence(parsed) });
  }
  const page = body.trimStart().startsWith('<');
  if (page) return true;
  const complaint = readComplaint(parsed ?? body.trim());
  const { words, message, param } = complaint;
  if (param !== undefined || namesObject.test(message) || namesObject.test(words)) return false;
  return status !== 404 || message === '' || says('no-address', complaint);
}

interface Circumstances {
  readonly status: number;
  readonly options: GatewayErrorOptions;
  /** The complaint was in an answer with status 200. */
  readonly inAnswer: boolean;
}

function classify(
  complaint: Complaint,
  { status, options, inAnswer }: Circumstances,
): GatewayError {
  const overflows = status !== 429 && says('overflow', complaint);
  const code = overflows ? 'context_overflow' : codeByStatus(complaint, status);
  const failure = { status, message: complaint.message, inAnswer };
  return upstreamFailure(code, failure, {
    ...options,
    ...waitOf(complaint, code),
    ...(code === 'model_not_found' ? { retryable: true } : {}),
    ...(code === 'upstream_rejected' ? rejection(complaint, status) : {}),
    ...(status === 402 && says('money-for-less', complaint) ? { ofRequest: true } : {}),
  });
}

/** The pause of a credential whose daily quota is used up, before it is tried again. */
export const dayQuotaMs = 600_000;

function waitOf(complaint: Complaint, code: ErrorCode): { readonly retryAfterMs?: number } {
  const stated = complaint.retryAfterMs;
  const ofDay = code === 'rate_limited' && says('day-quota', complaint);
  const wait = ofDay ? Math.max(stated ?? 0, dayQuotaMs) : stated;
  return wait === undefined ? {} : { retryAfterMs: wait };
}

function codeByStatus(complaint: Complaint, status: number): ErrorCode {
  switch (status) {
    case 400:
    case 413:
    case 422:
      if (says('other-kind', complaint)) return 'model_not_found';
      return says('bad-key', complaint) ? 'upstream_auth' : 'upstream_rejected';
    case 404:
      // If the text names no model, the address is wrong, which is not the client's fault.
      return says('no-model', complaint) ? 'model_not_found' : 'upstream_invalid';
    case 429:
      if (says('shared-capacity', complaint)) return 'overloaded';
      return says('no-money', complaint) ? 'upstream_auth' : 'rate_limited';
    default: {
      const code = codeOfStatus(status) ?? 'upstream_invalid';
      const overloaded = says('overloaded', { words: complaint.words, message: '' });
      return code === 'upstream_unavailable' && overloaded ? 'overloaded' : code;
    }
  }
}

/** A fault of the client, with the member and code that the upstream named. */
function rejection({ code, param }: Complaint, status: number): GatewayErrorOptions {
  const reason = code ?? (status === 413 ? 'request_too_large' : undefined);
  return {
    status: status >= 500 ? 400 : status,
    ...(reason === undefined ? {} : { reason }),
    ...(param === undefined ? {} : { path: [param] }),
  };
}

/** The statuses of meanings, in the order of precedence. */
const statusOfMeaning = [
  ['overloaded', 503],
  ['rate-limited', 429],
  ['no-money', 402],
  ['timeout', 504],
  ['rejected', 400],
  ['not-found', 404],
  ['unauthorized', 401],
] as const;

/** The status that an error object without a numeric code stands for. */
function statusByWords({ words, message }: Complaint): number {
  const ofCode = { words, message: '' };
  const found = statusOfMeaning.find(([meaning]) => says(meaning, ofCode));
  if (found !== undefined) return found[1];
  return says('overloaded', { words: '', message }) ? 503 : 500;
}

function readComplaint(body: Json | undefined): Complaint {
  if (Array.isArray(body)) return readComplaint(body[0]);
  if (typeof body === 'string') return { ...emptyFailure, message: body.slice(0, maxJudgedLength) };
  if (!isObject(body)) return emptyFailure;
  const inner = body['error'];
  const error = isObject(inner) ? inner : body;
  const code = error['code'] ?? body['code'];
  const reasons = detailWords(error['details']);
  const words = [error['type'] ?? body['type'] ?? body['__type'], error['status'], code, ...reasons]
    .filter((word) => typeof word === 'string')
    .join(' ')
    .toLowerCase();
  const message = errorSentence(body);
  return {
    message: message.slice(0, maxJudgedLength),
    words: words.slice(0, maxJudgedLength),
    code: matching(code, codeForm),
    param: matching(error['param'], paramForm),
    status: readStatus(error, code),
    retryAfterMs: readRetryDelay(error['details']),
  };
}

function matching(value: Json | undefined, form: RegExp): string | undefined {
  return typeof value === 'string' && form.test(value) ? value : undefined;
}

const emptyFailure: Complaint = {
  message: '',
  words: '',
  code: undefined,
  param: undefined,
  status: undefined,
  retryAfterMs: undefined,
};

function readStatus(error: JsonObject, code: Json | undefined): number | undefined {
  for (const value of [code, error['status_code'], error['statusCode'], error['status']]) {
    const status = typeof value === 'string' ? Number(value) : value;
    if (typeof status === 'number' && status >= 400 && status < 600) return status;
  }
  return undefined;
}

/** What Google's details call the failure: the reason of an `ErrorInfo`, the quotas of a `QuotaFailure`. */
function detailWords(details: Json | undefined): readonly Json[] {
  if (!Array.isArray(details)) return [];
  return details.filter(isObject).flatMap(({ reason, violations }) => {
    const quotas = Array.isArray(violations) ? violations.filter(isObject) : [];
    return [reason, ...quotas.map(({ quotaId }) => quotaId)].filter((word) => word !== undefined);
  });
}

/** Google's `RetryInfo` among the details: `"retryDelay": "12s"` (F16). */
function readRetryDelay(details: Json | undefined): number | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const detail of details) {
    const delay = isObject(detail) ? detail['retryDelay'] : undefined;
    const seconds = typeof delay === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(delay)?.[1] : undefined;
    if (seconds !== undefined) return Math.round(Number(seconds) * 1000);
  }
  return undefined;
}
