/**
 * Reads the errors of chat-completions servers: HTTP bodies of any shape, error objects inside
 * streams and documents (wire/upstreams.md §6.2, wire/translation.md §10; F10–F20, F24, F43).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../../core/errors.ts';
import { tryParseInner } from '../../core/json-inner.ts';
import { isObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

/** What an upstream said, stripped of its shape. */
interface Complaint {
  /** `''` when there is none. */
  readonly message: string;
  /** `type`, `status` and `code` in lower case, joined by spaces: what kinds are recognised by. */
  readonly words: string;
  /** `code` as it stood, if it is a word. */
  readonly code: string | undefined;
  /** The field that the server complains about, as it spelled it. */
  readonly param: string | undefined;
  /** A status that stands in the body. */
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
}

const maxMessageLength = 2048;
const maxLoggedLength = 8192;
/** No further is an error judged by its words: it may be a frame of megabytes, and patterns look at it (S20, S22). */
const maxJudgedLength = 8192;

/** Phrases by which servers say that the prompt does not fit (F11). */
const overflowPhrases = new RegExp(
  [
    'maximum context length',
    'context[_ ]length[_ ]exceeded',
    'exceeds? the (model.s )?(available |maximum )?context',
    'context window (of|is|exceed)',
    'exceeds? the context window',
    'exceed_context_size',
    'longer than the model.s context',
    'prompt is too long',
    'input is too long',
    'maximum prompt length',
    'input token count.*exceeds the maximum',
    'exceeded model token limit',
    'range of input length',
    'reduce the length of (the|your) (messages|prompt|input)',
    'inputs.? tokens \\+ .?max_new_tokens',
  ].join('|'),
  'i',
);

/** Only codes and types: Gemini says "exceeded your current quota" for an ordinary rate limit. */
const quotaWords =
  /insufficient_quota|billing|insufficient_(balance|credits|funds)|credits_exhausted/;
const quotaPhrases = /insufficient (balance|credits|quota|funds)|out of credits/i;
const affordable = /fewer max_tokens|can only afford/i;
const overloadWords =
  /overload|\bunavailable|service_?unavailable|model_?not_?ready|capacity_exceeded/;
const authWords = /authentication|unauthenticated|permission|api_?key|unauthorized|forbidden/;
const badKeyPhrases = /api[_ ]key[_ ](not[_ ]valid|invalid)|(invalid|incorrect) api[_ ]key/i;
const secrets =
  /\b(sk|rk|gw|gsk|xai|pk|key|AIza)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|Bearer\s+\S+/g;

/** Of what goes on to the client: names and paths; anything else may be a quotation (S14). */
const codeForm = /^(?!\d+$)[\w.:-]{1,64}$/;
const paramForm = /^[\w.:$[\]'"-]{1,200}$/;

/** An HTTP error answer. Never throws. */
export function readError(status: number, body: string): GatewayError {
  const parsed = tryParseInner(body);
  const complaint = readComplaint(parsed);
  const options = { upstream: { status, body: body.slice(0, maxLoggedLength) } };
  return classify(complaint, { status, options, structured: parsed !== undefined });
}

/** An error object that stood in a stream or in a document with status 200 (F24, F43). */
export function readErrorValue(value: Json | undefined): GatewayError {
  const complaint = readComplaint(value);
  const body = JSON.stringify(value ?? null).slice(0, maxLoggedLength);
  const status = complaint.status ?? statusByWords(complaint);
  return classify(complaint, {
    status,
    options: { upstream: { status: 200, body } },
    structured: true,
    inAnswer: true,
  });
}

interface Circumstances {
  readonly status: number;
  readonly options: GatewayErrorOptions;
  /** The body was JSON, so its message is a sentence and no HTML page. */
  readonly structured: boolean;
  /** The complaint stood inside a 200 answer: its own words are the only explanation there is. */
  readonly inAnswer?: boolean;
}

function classify(complaint: Complaint, circumstances: Circumstances): GatewayError {
  const { status } = circumstances;
  const options: GatewayErrorOptions = {
    ...circumstances.options,
    ...(complaint.retryAfterMs === undefined ? {} : { retryAfterMs: complaint.retryAfterMs }),
  };
  const code = saysOverflow(complaint, status)
    ? 'context_overflow'
    : codeByStatus(complaint, status);
  switch (code) {
    case 'upstream_rejected':
      return rejected(complaint, circumstances);
    case 'context_overflow':
      return new GatewayError(code, clientText(complaint) ?? overflowText, options);
    case 'model_not_found':
      return new GatewayError(code, clientText(complaint) ?? unknownModelText, {
        ...options,
        retryable: true,
      });
    default: {
      const told = circumstances.inAnswer === true && code !== 'upstream_auth';
      // OpenRouter's 402: there is too little for so many tokens, and enough for fewer.
      const ofRequest = status === 402 && affordable.test(complaint.message);
      if (ofRequest) return new GatewayError(code, refusedText, { ...options, ofRequest });
      const text = standardTexts[code] ?? `The provider failed with status ${status}.`;
      return new GatewayError(code, (told ? clientText(complaint) : undefined) ?? text, options);
    }
  }
}

function saysOverflow({ message, words }: Complaint, status: number): boolean {
  return status !== 429 && (overflowPhrases.test(message) || overflowPhrases.test(words));
}

const unknownModelText = 'The provider does not have this model.';
const overflowText = "This model's maximum context length is exceeded by the request.";

const refusedText = "The provider refused the gateway's credentials.";
const standardTexts: { readonly [C in ErrorCode]?: string } = {
  upstream_auth: refusedText,
  rate_limited: 'The provider limits the rate of requests; retry later.',
  overloaded: 'The provider is overloaded; retry later.',
  timeout: 'The provider did not answer in time.',
};

/** Statuses that mean the same whatever the body says. */
const plainStatuses: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [401, 'upstream_auth'],
  [402, 'upstream_auth'],
  [403, 'upstream_auth'],
  [408, 'timeout'],
  [498, 'overloaded'],
  [501, 'upstream_rejected'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [524, 'timeout'],
  [529, 'overloaded'],
]);

function codeByStatus(complaint: Complaint, status: number): ErrorCode {
  const plain = plainStatuses.get(status);
  if (plain !== undefined) return plain;
  const { message, words } = complaint;
  switch (status) {
    case 400:
    case 413:
    case 422:
      return badKeyPhrases.test(message) ? 'upstream_auth' : 'upstream_rejected';
    case 404:
      // Without a word about a model the address is wrong, which is not the client's fault.
      return /model|not_?found/i.test(message + words) ? 'model_not_found' : 'upstream_invalid';
    case 429:
      return quotaWords.test(words) || quotaPhrases.test(message)
        ? 'upstream_auth'
        : 'rate_limited';
    default:
      if (status < 500 && status !== 409 && status !== 499) return 'upstream_invalid';
      return overloadWords.test(words) ? 'overloaded' : 'upstream_unavailable';
  }
}

/** The client's own fault: the upstream's words are what helps. */
function rejected(
  complaint: Complaint,
  { status, options, structured }: Circumstances,
): GatewayError {
  const text = structured ? clientText(complaint) : undefined;
  const reason = complaint.code ?? (status === 413 ? 'request_too_large' : undefined);
  return new GatewayError(
    'upstream_rejected',
    text ?? `The provider refused the request with status ${status}.`,
    {
      ...options,
      status: status >= 500 ? 400 : status,
      ...(reason === undefined ? {} : { reason }),
      ...(complaint.param === undefined ? {} : { path: [complaint.param] }),
    },
  );
}

/** The status that an error object without a numeric code stands for. */
function statusByWords({ words, message }: Complaint): number {
  if (overloadWords.test(words)) return 503;
  if (/rate_?limit|resource_exhausted|too_many_requests|tokens_per/.test(words)) return 429;
  if (quotaWords.test(words)) return 402;
  if (/timeout|deadline/.test(words)) return 504;
  if (/invalid_request|badrequest|invalid_argument|context_length|content_filter/.test(words)) {
    return 400;
  }
  if (/not_?found/.test(words)) return 404;
  if (authWords.test(words)) return 401;
  if (/overloaded/i.test(message)) return 503;
  return 500;
}

/** The upstream's message, safe to show: cut, without anything that looks like a key. */
function clientText({ message }: Complaint): string | undefined {
  if (message === '') return undefined;
  return message.slice(0, maxMessageLength).replace(secrets, '[redacted]');
}

function readComplaint(body: Json | undefined): Complaint {
  if (isArray(body)) return readComplaint(body[0]);
  if (typeof body === 'string') return { ...nothingSaid, message: body.slice(0, maxJudgedLength) };
  if (!isObject(body)) return nothingSaid;
  const inner = body['error'];
  const error = isObject(inner) ? inner : body;
  const code = error['code'] ?? body['code'];
  const words = [error['type'] ?? body['type'], error['status'], code]
    .filter((word) => typeof word === 'string')
    .join(' ')
    .toLowerCase();
  const message =
    readMessage(error) ?? (typeof inner === 'string' ? inner : readMessage(body)) ?? '';
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

const nothingSaid: Complaint = {
  message: '',
  words: '',
  code: undefined,
  param: undefined,
  status: undefined,
  retryAfterMs: undefined,
};

function readMessage(value: JsonObject): string | undefined {
  if (typeof value['message'] === 'string') return value['message'];
  const detail = value['detail'];
  if (typeof detail === 'string') return detail;
  if (!isArray(detail)) return undefined;
  return detail
    .map((item) => {
      if (!isObject(item)) return String(item);
      const where = isArray(item['loc']) ? `${item['loc'].map(String).join('.')}: ` : '';
      return `${where}${String(item['msg'] ?? '')}`;
    })
    .join('; ');
}

function readStatus(error: JsonObject, code: Json | undefined): number | undefined {
  for (const value of [code, error['status_code'], error['status']]) {
    const status = typeof value === 'string' ? Number(value) : value;
    if (typeof status === 'number' && status >= 400 && status < 600) return status;
  }
  return undefined;
}

/** Google's `RetryInfo` among the details: `"retryDelay": "12s"` (F16). */
function readRetryDelay(details: Json | undefined): number | undefined {
  if (!isArray(details)) return undefined;
  for (const detail of details) {
    const delay = isObject(detail) ? detail['retryDelay'] : undefined;
    const seconds = typeof delay === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(delay)?.[1] : undefined;
    if (seconds !== undefined) return Math.round(Number(seconds) * 1000);
  }
  return undefined;
}
