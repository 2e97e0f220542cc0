/**
 * What the failures of upstreams of either dialect are called, and which of their words a client may
 * read (F30). Both readers of errors use it, so that the same
 * failure looks alike whichever dialect the upstream speaks.
 */
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../../core/errors.ts';
import { isObject, type Json } from '../../json/value.ts';

const maxMessageLength = 2048;
/** Anything that looks like a key: vendors echo them (S14). */
const secrets =
  /\b(sk|rk|gw|gsk|xai|pk|key|AIza)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|Bearer\s+\S+/g;

/** What an upstream said of its failure, stripped of its shape. */
export interface VendorComplaint {
  /** `type`, `status` and `code` of the error, joined by spaces; `''` = none. */
  readonly words: string;
  /** The sentence; `''` = none. */
  readonly message: string;
}

type Meaning =
  | 'overflow'
  | 'no-money'
  | 'money-for-less'
  | 'overloaded'
  | 'rate-limited'
  | 'timeout'
  | 'rejected'
  | 'not-found'
  | 'no-model'
  | 'unauthorized'
  | 'bad-key';

interface VendorErrorRow {
  readonly means: Meaning;
  readonly match: RegExp;
  /** Where the words are looked for; absent = in both. */
  readonly field?: keyof VendorComplaint;
}

/** How vendors word their failures; `test/unit/dialects/vendor-errors.test.ts` has an error for each row. */
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
  // OpenRouter's 402: the balance is too small for this many tokens, and enough for fewer.
  { means: 'money-for-less', match: /fewer max_tokens|can only afford/i, field: 'message' },
  { means: 'overloaded', match: /overload/i },
  { means: 'overloaded', match: /\bslow_down\b/i, field: 'words' },
  {
    means: 'overloaded',
    match: /\bunavailable|service_?unavailable|model_?not_?ready|capacity_exceeded/i,
    field: 'words',
  },
  {
    means: 'rate-limited',
    match: /rate_?limit|resource_exhausted|too_many_requests|tokens_per/i,
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
  {
    means: 'unauthorized',
    match: /authentication|unauthenticated|permission|api_?key|unauthorized|forbidden/i,
    field: 'words',
  },
  {
    means: 'bad-key',
    match: /api[_ ]key[_ ](not[_ ]valid|invalid)|(invalid|incorrect) api[_ ]key/i,
    field: 'message',
  },
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
  [498, 'overloaded'],
  [499, 'upstream_unavailable'],
  [501, 'upstream_rejected'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [524, 'timeout'],
  [529, 'overloaded'],
]);

/** The code of a status whose body tells nothing more; `undefined` for 400, 404, 413, 422 and 429. */
export function codeOfStatus(status: number): ErrorCode | undefined {
  const plain = plainStatuses.get(status);
  if (plain !== undefined || judgedByWords.has(status)) return plain;
  // Statuses of HTTP end at 599: what comes with another one is not an answer (F30).
  return status >= 500 && status < 600 ? 'upstream_unavailable' : 'upstream_invalid';
}

const judgedByWords: ReadonlySet<number> = new Set([400, 404, 413, 422, 429]);

/** Failures whose own words help the client. Words about the upstream's own trouble do not. */
const told: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_rejected',
  'context_overflow',
  'model_not_found',
  'rate_limited',
]);

interface UpstreamFailure {
  readonly status: number;
  /** What the upstream said; '' when it said nothing that is a sentence. */
  readonly message: string;
  /** It stood inside an answer with status 200: there its own words are the only explanation (E5). */
  readonly inAnswer: boolean;
}

/** The error of a failed upstream, in words that a client may read. */
export function upstreamFailure(
  code: ErrorCode,
  { status, message, inAnswer }: UpstreamFailure,
  options: GatewayErrorOptions,
): GatewayError {
  const words = tellable(message);
  const tells = words !== undefined && (told.has(code) || (inAnswer && code !== 'upstream_auth'));
  return new GatewayError(code, tells ? words : standardText(code, status), {
    ...(tells || words === undefined ? {} : { detail: `The provider said: ${words}` }),
    ...(status >= 600 ? { repeat: 'once' } : {}),
    ...options,
  });
}

/** The upstream's words, safe to show: cut, without anything that looks like a key. */
function tellable(message: string): string | undefined {
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

// Finds what an upstream's error body says, whatever its shape.

const maxDepth = 6;
/** Entries of a list that are told. */
const maxEntries = 10;

/** Members that hold the sentence, the most telling first. */
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
    if (sentence !== '') return placeOf(value['loc']) + sentence;
  }
  return '';
}

/** `body.stop: `, where a FastAPI entry says it. */
function placeOf(location: Json | undefined): string {
  return Array.isArray(location) ? `${location.map(String).join('.')}: ` : '';
}
