/**
 * Reads the errors of servers that speak one of OpenAI's dialects: HTTP bodies of any shape, error objects inside streams
 * and documents (F24, F43). Many servers speak both dialects, and word their failures alike in them.
 */
import type { ErrorCode, GatewayError, GatewayErrorOptions } from '../../core/errors.ts';
import { tryParseInner } from '../../json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { isPresent } from './answers.ts';
import {
  codeOfStatus,
  errorSentence,
  says,
  upstreamFailure,
  type VendorComplaint,
} from './vendor-errors.ts';

/** What an upstream said, stripped of its shape. `words` are in lower case. */
interface Complaint extends VendorComplaint {
  /** `code` as it stood, if it is a word. */
  readonly code: string | undefined;
  /** The field that the server complains about, as it spelled it. */
  readonly param: string | undefined;
  /** A status that stands in the body. */
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
}

const maxLoggedLength = 8192;
/** No further is an error judged by its words: it may be a frame of megabytes, and patterns look at it (S20, S22). */
const maxJudgedLength = 8192;

/** Of what goes on to the client: names and paths; anything else may be a quotation (S14). */
const codeForm = /^(?!\d+$)[\w.:-]{1,64}$/;
const paramForm = /^[\w.:$[\]'"-]{1,200}$/;

/** An HTTP error answer. Never throws. */
export function readError(status: number, body: string): GatewayError {
  const complaint = readComplaint(tryParseInner(body));
  const options = { upstream: { status, body: body.slice(0, maxLoggedLength) } };
  return classify(complaint, { status, options, inAnswer: false });
}

/** An error object that stood in a stream or in a document with status 200 (F24, F43). */
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

/** Error shapes without an `error` member, as they stand in 200 answers. */
export function looksLikeError(body: JsonObject): boolean {
  if (body['object'] === 'error' || body['type'] === 'error') return true;
  return typeof body['message'] === 'string' || isPresent(body['detail']);
}

interface Circumstances {
  readonly status: number;
  readonly options: GatewayErrorOptions;
  /** The complaint stood inside a 200 answer. */
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
    ...(complaint.retryAfterMs === undefined ? {} : { retryAfterMs: complaint.retryAfterMs }),
    ...(code === 'model_not_found' ? { retryable: true } : {}),
    ...(code === 'upstream_rejected' ? rejection(complaint, status) : {}),
    ...(status === 402 && says('money-for-less', complaint) ? { ofRequest: true } : {}),
  });
}

function codeByStatus(complaint: Complaint, status: number): ErrorCode {
  switch (status) {
    case 400:
    case 413:
    case 422:
      return says('bad-key', complaint) ? 'upstream_auth' : 'upstream_rejected';
    case 404:
      // Without a word about a model the address is wrong, which is not the client's fault.
      return says('no-model', complaint) ? 'model_not_found' : 'upstream_invalid';
    case 429:
      return says('no-money', complaint) ? 'upstream_auth' : 'rate_limited';
    default: {
      const code = codeOfStatus(status) ?? 'upstream_invalid';
      const overloaded = says('overloaded', { words: complaint.words, message: '' });
      return code === 'upstream_unavailable' && overloaded ? 'overloaded' : code;
    }
  }
}

/** The client's own fault: what the upstream said of it in names. */
function rejection({ code, param }: Complaint, status: number): GatewayErrorOptions {
  const reason = code ?? (status === 413 ? 'request_too_large' : undefined);
  return {
    status: status >= 500 ? 400 : status,
    ...(reason === undefined ? {} : { reason }),
    ...(param === undefined ? {} : { path: [param] }),
  };
}

/** The statuses that words stand for, in the order of their weight. */
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
  if (typeof body === 'string') return { ...nothingSaid, message: body.slice(0, maxJudgedLength) };
  if (!isObject(body)) return nothingSaid;
  const inner = body['error'];
  const error = isObject(inner) ? inner : body;
  const code = error['code'] ?? body['code'];
  const words = [error['type'] ?? body['type'], error['status'], code]
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

const nothingSaid: Complaint = {
  message: '',
  words: '',
  code: undefined,
  param: undefined,
  status: undefined,
  retryAfterMs: undefined,
};

function readStatus(error: JsonObject, code: Json | undefined): number | undefined {
  for (const value of [code, error['status_code'], error['status']]) {
    const status = typeof value === 'string' ? Number(value) : value;
    if (typeof status === 'number' && status >= 400 && status < 600) return status;
  }
  return undefined;
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
