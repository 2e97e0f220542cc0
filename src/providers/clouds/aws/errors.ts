/** Errors of AWS: a type and a sentence. Over HTTP the type is in a header, in streams in the frame. */
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '../../../core/errors.ts';
import type { Provider } from '../../../core/provider.ts';
import {
  codeOfStatus,
  dayQuotaMs,
  errorSentence,
  upstreamFailure,
} from '../../../dialects/shared/vendor-errors.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import type { Json, JsonObject } from '../../../json/value.ts';

export interface AwsFailure {
  /** 200 for a failure in a stream. */
  readonly status: number;
  /** `ThrottlingException`, with or without what follows a colon; absent = the body says it. */
  readonly type?: string | undefined;
  readonly body: string;
}

type Read = (status: number, body: string) => GatewayError;

const maxLoggedLength = 8192;
/** The maximum length of a sentence to which another is added. */
const maxSentence = 1000;

/** Types whose meaning does not depend on the sentence; in lower case. */
const codes: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['servicequotaexceededexception', 'rate_limited'],
  ['throttlingexception', 'rate_limited'],
  ['toomanyrequestsexception', 'rate_limited'],
  ['conflictexception', 'upstream_unavailable'],
  ['internalserverexception', 'upstream_unavailable'],
  ['internalfailure', 'upstream_unavailable'],
  ['serviceunavailableexception', 'overloaded'],
  ['serviceunavailable', 'overloaded'],
  ['modelnotreadyexception', 'overloaded'],
  ['modeltimeoutexception', 'timeout'],
  ['resourcenotfoundexception', 'model_not_found'],
  ['accessdeniedexception', 'upstream_auth'],
  ['unrecognizedclientexception', 'upstream_auth'],
  ['expiredtokenexception', 'upstream_auth'],
  ['invalidsignatureexception', 'upstream_auth'],
  ['incompletesignatureexception', 'upstream_auth'],
  ['missingauthenticationtokenexception', 'upstream_auth'],
]);
/** They contain the status of the model's server behind the service. */
const ofModels: ReadonlySet<string> = new Set(['modelerrorexception', 'modelstreamerrorexception']);

/** `Too many tokens per day, please wait before trying again.`: no wait is named. */
const dayQuota = /\bper day\b/i;

/** The model cannot be called under this name; another target may have it. */
const notCallable =
  /on-demand throughput isn.t supported|provided model identifier is invalid|model identifier is invalid/i;
const cure =
  'Call it by an inference profile: its name with us., eu., apac. or global. in front, or the ARN of a profile.';

/** An account that forces a guardrail on calls whose body it does not know. */
const guarded = /^guardrail was enabled but input is in incorrect format/i;
const guardedCure = 'The operator can have the model asked by Converse (door: converse).';

/** @param otherwise the dialect's own reader, for errors about the request */
export function readAwsError(failure: AwsFailure, otherwise: Read): GatewayError {
  const { status, body } = failure;
  const parsed = tryParseInnerObject(body) ?? {};
  const type = typeOf(failure, parsed);
  const message = errorSentence(parsed) || textOf(parsed['Message']);
  const upstream = { status, body: withType(body, parsed, type) };
  const failed = (code: ErrorCode, options: GatewayErrorOptions = {}): GatewayError =>
    upstreamFailure(code, { status, message, inAnswer: false }, { upstream, ...options });
  if (notCallable.test(message)) {
    const words = `${message.slice(0, maxSentence)} ${cure}`;
    return new GatewayError('model_not_found', words, { upstream, retryable: true });
  }
  if (guarded.test(message)) {
    const words = `${message.slice(0, maxSentence)} ${guardedCure}`;
    return new GatewayError('upstream_rejected', words, { upstream, status: 400 });
  }
  const known = type.toLowerCase();
  const code = codes.get(known);
  if (code !== undefined) {
    if (code === 'model_not_found') return failed(code, { retryable: true });
    const isOfDay = code === 'rate_limited' && dayQuota.test(message);
    return failed(code, isOfDay ? { retryAfterMs: dayQuotaMs } : {});
  }
  if (ofModels.has(known)) return ofModel(parsed, failed);
  // A stream has no status. An error about the request counts as a 400.
  const ofStream = known === 'validationexception' ? 400 : 500;
  return otherwise(status === 200 ? ofStream : status, body);
}

/** Reads errors over HTTP, whose type is in a header. @param otherwise the dialect's own reader */
export function awsErrorReader(otherwise: Read): NonNullable<Provider['readError']> {
  return (status, headers, body) => {
    const named = headers['x-amzn-errortype'];
    const type = typeof named === 'string' ? named : undefined;
    return readAwsError({ status, type, body }, otherwise);
  };
}

function ofModel(
  { originalStatusCode: original }: JsonObject,
  failed: (code: ErrorCode, options?: GatewayErrorOptions) => GatewayError,
): GatewayError {
  if (original === 429) return failed('rate_limited');
  if (typeof original !== 'number' || original >= 500 || original < 400) {
    return failed('upstream_unavailable');
  }
  return failed(codeOfStatus(original) ?? 'upstream_rejected', { status: original });
}

/** `com.amazon.coral.service#ThrottlingException`, `ThrottlingException:http://…` without what is around the name. */
function typeOf({ type }: AwsFailure, parsed: JsonObject): string {
  const [named = ''] = (type ?? textOf(parsed['__type'])).split(':');
  return named.slice(named.lastIndexOf('#') + 1);
}

/** Adds the type for readers of the body only: the log, and the credential, which checks whether it was refused. */
function withType(body: string, parsed: JsonObject, type: string): string {
  const hasType = type === '' || Object.keys(parsed).length === 0 || parsed['__type'] !== undefined;
  return (hasType ? body : JSON.stringify({ __type: type, ...parsed })).slice(0, maxLoggedLength);
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
