/**
 * How released clients decide what to do after a failure, taken from their packages at these versions. Each
 * rule is a transcription: the names of files tell where it stands, so that it can be compared when a client
 * is renewed. Only what a failure from a server can reach is here, not what a broken socket does.
 */
import type { JsonObject } from '../../../src/json/value.ts';
import type { ClientDialect } from '../../support/dialects.ts';
import { objectAt } from '../../support/reading.ts';

/** What a client sees of a failure. */
export interface Told {
  readonly dialect: ClientDialect;
  /** HTTP status of the answer; undefined = the last frame of a stream that began with 200. */
  readonly status: number | undefined;
  /** Of the failure, or of the stream: lower case. */
  readonly headers: { readonly [name: string]: string };
  /** The body of the answer, or the data of the frame; of a failed response the response, whose error it holds. */
  readonly body: JsonObject;
  /** The data of the event `error` that comes before `response.failed`. */
  readonly event?: JsonObject;
}

/** `compact`: it shortens the conversation and asks again, because the prompt was too long. */
export type Verdict = 'retry' | 'stop' | 'compact';

export interface ReleasedClient {
  readonly name: string;
  /** Package, version, and the file with the rule. */
  readonly source: string;
  readonly dialects: readonly ClientDialect[];
  /** Whether it asks again after a failure in the middle of a stream; SDKs give it to their caller. */
  readonly streams: boolean;
  readonly decide: (told: Told) => Verdict;
}

const both: readonly ClientDialect[] = ['chat', 'messages'];
const all: readonly ClientDialect[] = [...both, 'responses'];

interface Named {
  readonly type: string;
  readonly message: string;
  readonly code: string;
}

function errorOf({ body }: Told): Named {
  const error = objectAt(body, 'error');
  const text = (name: string): string => {
    const value = error[name];
    return typeof value === 'string' ? value : '';
  };
  return { type: text('type'), message: text('message'), code: text('code') };
}

function verdict(retries: boolean): Verdict {
  return retries ? 'retry' : 'stop';
}

const statusRetries = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500;

/** `shouldRetry` of the SDKs that Stainless makes, which is the same in all four. */
function stainless({ status, headers }: Told): Verdict {
  if (headers['x-should-retry'] === 'true') return 'retry';
  if (headers['x-should-retry'] === 'false') return 'stop';
  return verdict(status !== undefined && statusRetries(status));
}

/** The message of the error that the SDK throws: of openai the error's own, of Anthropic's the whole body. */
function sdkMessage(told: Told): string {
  const text = told.dialect === 'chat' ? errorOf(told).message : JSON.stringify(told.body);
  return told.status === undefined ? text : `${told.status} ${text}`;
}

const piPermanent =
  /GoUsageLimitError|FreeUsageLimitError|Monthly usage limit reached|available balance|insufficient_quota|out of budget|quota exceeded|billing|subscription_sharing_usage_limit_exceeded/i;
const piTransient =
  /overloaded|server_busy|servers are currently busy|currently experiencing high demand|model is at capacity|rate.?limit|too many requests|(?<![a-z0-9])(?:429|500|502|503|504|520|524)(?![a-z0-9])|service.?(?:is.?)?(?:temporarily.?)?unavailable|server.?error|internal.?error|provider.?returned.?(?:an.?)?error|exceeded request buffer limit while retrying upstream|unable to forward upstream|upstream.?request.?failed|upstream_stream_read_error|stream was interrupted|http\/?2 stream failed|network.?error|connection.?error|connection.?refused|connection.?lost|other side closed|fetch failed|getaddrinfo|ENOTFOUND|EAI_AGAIN|upstream.?connect|reset before headers|socket hang up|socket connection was closed|timed? out|timeout|terminated|ended without|retry delay|you can retry your request|try your request again|please retry your request|ResourceExhausted/i;
const piOverflow =
  /prompt (?:is )?too long|request_too_large|exceeds the context window|exceeds (?:the )?(?:model'?s )?maximum context length|maximum context length is \d+ tokens|reduce the length of the messages|context[_ ]length[_ ]exceeded|^(?:[\w -]+ API error \(413\):|413(?:\s|:|$))/i;
const oldPiTransient =
  /overloaded|provider.?returned.?error|rate.?limit|too many requests|429|500|502|503|504|service.?unavailable|server.?error|internal.?error|network.?error|connection.?error|connection.?refused|connection.?lost|websocket.?closed|websocket.?error|other side closed|fetch failed|upstream.?connect|reset before headers|socket hang up|ended without|http2 request did not get a response|timed? out|timeout|terminated|retry delay/i;
const notOverflow = /rate limit|too many requests/i;

/**
 * What pi shows of an error: with a status the body stands in the place of openai's own message. On the
 * Responses API the SDK throws at the event `error`, and pi sees the message of that event only.
 */
function piMessage(told: Told): string {
  const { dialect, status, event, body } = told;
  if (event !== undefined) return errorOf({ ...told, body: event }).message;
  if (dialect === 'messages' || status === undefined) return sdkMessage(told);
  const shown = JSON.stringify(objectAt(body, 'error'));
  if (dialect === 'responses') return `model-gateway API error (${status}): ${shown}`;
  return `${status}: ${shown}`;
}

function pi(told: Told): Verdict {
  const message = piMessage(told);
  if (!notOverflow.test(message) && piOverflow.test(message)) return 'compact';
  return verdict(!piPermanent.test(message) && piTransient.test(message));
}

function oldPi(told: Told): Verdict {
  const message = sdkMessage(told);
  if (!notOverflow.test(message) && piOverflow.test(message)) return 'compact';
  return verdict(oldPiTransient.test(message));
}

const opencodeTransient: readonly RegExp[] = [
  /429|500|502|503|504|524/i,
  /rate increased too quickly|rate limit|rate-limit|rate_limit|too many requests/i,
  /overloaded|service unavailable|service_unavailable|service-unavailable|internal error|internal_error|internal server error|server error|server_error|server-error|provider returned error|provider_returned_error|provider-returned-error/i,
  /terminated|fetch failed|failed to fetch|network[-_\s]error|upstream connect|connection error|connection refused|connection lost|socket connection was closed|socket hang up|reset before headers|getaddrinfo|enotfound|eai_again|econnrefused|econnreset|etimedout/i,
  /^timeout$|\b(?:request|response|connection|network|stream|read) (?:timeout|timed out|time out)\b/i,
  /try your request again|retry your request|resource exhausted|resource_exhausted/i,
  /\btry again (?:later|in\b)|\b(?:currently|temporarily) at capacity\b/i,
];
const opencodeOverflow =
  /prompt is too long|request_too_large|exceeds the context window|exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))|maximum context length is \d+ tokens|reduce the length of the messages|exceeds the available context size|context[_ ]length[_ ]exceeded|request entity too large|too many tokens|token limit exceeded/i;

/** The request's id in a body of messages may hold such digits by chance, as it may without a gateway. */
function opencode(told: Told): Verdict {
  const { message, code, type } = errorOf(told);
  const seems = (text: string): boolean => opencodeTransient.some((each) => each.test(text));
  if (told.event !== undefined) {
    // @ai-sdk/openai hands on the whole event, which becomes an unknown error.
    return verdict(seems(JSON.stringify(told.event)));
  }
  if (told.status === undefined) {
    // openai-compatible hands on the message, anthropic the inner object; either becomes an unknown error.
    const text = told.dialect === 'chat' ? message : JSON.stringify({ type, message });
    return verdict(/too_many_requests|exhausted|unavailable/i.test(text) || seems(text));
  }
  const overflows = opencodeOverflow.test(message) && !notOverflow.test(message);
  if (overflows || told.status === 413 || code === 'context_length_exceeded') return 'compact';
  if (statusRetries(told.status)) return 'retry';
  return verdict(seems(message) || seems(JSON.stringify(told.body)));
}

/** The status that @ai-sdk/openai gives an event `error` which comes before any output. */
function statusOfEvent({ type, code }: Named): number {
  const words = `${code} ${type}`.toLowerCase();
  const has = (...each: readonly string[]): boolean => each.some((word) => words.includes(word));
  if (has('insufficient_quota', 'rate_limit')) return 429;
  if (has('authentication')) return 401;
  if (has('permission')) return 403;
  if (has('not_found')) return 404;
  if (has('invalid', 'bad_request', 'context_length')) return 400;
  if (has('overload')) return 503;
  return has('timeout') ? 504 : 500;
}

/** opencode on the Responses API, where a stream that fails before any output is an answer with a status. */
function opencodeAtOnce(told: Told): Verdict {
  const { event } = told;
  if (event === undefined) return opencode(told);
  const status = statusOfEvent(errorOf({ ...told, body: event }));
  return opencode({ dialect: told.dialect, headers: told.headers, status, body: event });
}

const continueOverflow =
  /input length and max_tokens exceed context limit|decrease input length or max_tokens|maximum context length|reduce the length of the messages|tokens in the prompt exceeds|use a shorter prompt|context_length_exceeded/i;
const continueTransient =
  /premature close|premature end|connection reset|socket hang up|aborted|overloaded/i;

function continueCli(told: Told): Verdict {
  const { type } = errorOf(told);
  const message = sdkMessage(told);
  if (continueOverflow.test(message)) return 'compact';
  if (told.status !== undefined && [429, 502, 503, 504].includes(told.status)) return 'retry';
  // Only the openai SDK puts the type on the error that is looked at.
  const typed = told.dialect === 'chat' && /^(server_error|rate_limit_exceeded)$/.test(type);
  return verdict(typed || continueTransient.test(message));
}

const qwenPermanent =
  /^(?:content[_-]?filter|invalid[_-]?api[_-]?key|arrearage|insufficient[_-]?quota|model[._-]?access[_-]?denied|invalid[_-]?request[_-]?error|authentication[_-]?error|permission[_-]?error|not[_-]?found[_-]?error|billing[_-]?error|invalid[_-]?parameter(?:[_-]?error)?|context[_-]?length[_-]?exceeded|request[_-]?too[_-]?large)$/i;

function qwenCode(told: Told): Verdict {
  const { type, code } = errorOf(told);
  const { status } = told;
  if (status === 400) return 'stop';
  if (status !== undefined) return verdict(status === 429 || (status >= 500 && status < 600));
  if (type === 'rate_limit_error' || type === 'overloaded_error') return 'retry';
  if (qwenPermanent.test(type) || qwenPermanent.test(code)) return 'stop';
  // A failure with a request's id and without a status is one of the upstream.
  return verdict(
    told.headers['x-request-id'] !== undefined || typeof told.body['request_id'] === 'string',
  );
}

const clineStatuses: ReadonlySet<number> = new Set([408, 409, 425, 429, 500, 502, 503, 504, 529]);

/** Before it has any content; behind it Cline never asks again. */
function cline(told: Told): Verdict {
  const { message, code } = errorOf(told);
  if (code === 'context_length_exceeded') return 'compact';
  if (told.status === undefined) return verdict(/provider returned error/i.test(message));
  if (told.status === 401 || told.status === 403) return 'stop';
  const overflows =
    /\bcontext\s*(?:length|window|limit)\b|\bmaximum\s*context\b|\bprompt\s+is\s+too\s+long\b/i;
  if ([400, 413, 422].includes(told.status) && overflows.test(message)) return 'compact';
  return verdict(clineStatuses.has(told.status));
}

/** A 400 or 422 is sent again with less in it, unless its type says that this cannot help. */
function claudeCode(told: Told): Verdict {
  const { type, message } = errorOf(told);
  if (/^prompt is too long/i.test(message)) return 'compact';
  if (type === 'overloaded_error') return 'retry';
  if (told.headers['x-should-retry'] === 'false') {
    return verdict(
      (told.status === 400 || told.status === 422) && /^(api|permission)_error$/.test(type),
    );
  }
  return verdict(told.status !== undefined && statusRetries(told.status));
}

const langchainStops: ReadonlySet<number> = new Set([
  400, 401, 402, 403, 404, 405, 406, 407, 409, 413,
]);

function langchain(told: Told): Verdict {
  const { code, message } = errorOf(told);
  const { status = 0, headers } = told;
  if (langchainStops.has(status) || code === 'insufficient_quota') return 'stop';
  if (status !== 429) return 'retry';
  const spent = /insufficient[_ -]?quota|quota (?:has been )?exhausted|billing|credit balance/i;
  // Without a wait, or with one of more than a minute, it gives the error to its caller.
  const wait = Number(headers['retry-after'] ?? Number.NaN);
  return verdict(!spent.test(message) && wait <= 60);
}

/** LiteLLM makes classes of statuses and texts, and Aider knows which classes to ask again. */
function aider(told: Told): Verdict {
  const { status = 0 } = told;
  const text = JSON.stringify(told.body);
  if (/maximum context length|prompt is too long|context_length_exceeded/i.test(text)) {
    return 'compact';
  }
  if (status === 401 || status === 404) return 'stop';
  if (told.dialect === 'chat' && text.includes('invalid_request_error')) return 'stop';
  return verdict(status !== 400 && status !== 413 && status !== 422 && status !== 403);
}

const codexAgain: ReadonlySet<number> = new Set([401, 402, 403, 408, 409, 413, 422]);
/** Codes of `response.failed` after which it does not ask again; after any other it does, also where there is none. */
const codexStops: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'insufficient_quota',
  'invalid_prompt',
  'server_is_overloaded',
]);

function codex(told: Told): Verdict {
  const { status } = told;
  const { code } = errorOf(told);
  if (status === undefined) return verdict(!codexStops.has(code));
  if (status !== 429) return verdict(codexAgain.has(status) || status >= 500);
  return verdict(code !== 'insufficient_quota' && told.headers['retry-after'] !== undefined);
}

export const releasedClients: readonly ReleasedClient[] = [
  {
    name: 'openai (Node)',
    source: 'openai@7.57.0 client.mjs shouldRetry',
    dialects: ['chat', 'responses'],
    streams: false,
    decide: stainless,
  },
  {
    name: 'openai (Python)',
    source: 'openai 3.54.0 (PyPI) _base_client.py _should_retry',
    dialects: ['chat', 'responses'],
    streams: false,
    decide: stainless,
  },
  {
    name: 'anthropic (Node)',
    source: '@anthropic-ai/sdk@1.12.0 client.mjs shouldRetry',
    dialects: ['messages'],
    streams: false,
    decide: stainless,
  },
  {
    name: 'anthropic (Python)',
    source: 'anthropic 2.12.0 (PyPI) _base_client.py _should_retry',
    dialects: ['messages'],
    streams: false,
    decide: stainless,
  },
  {
    name: 'AI SDK',
    source: '@ai-sdk/provider@4.0.38 APICallError, ai@7.0.173 retryWithExponentialBackoff…',
    dialects: all,
    streams: false,
    decide: ({ status = 0 }) => verdict(statusRetries(status)),
  },
  {
    name: 'pi',
    source:
      '@earendil-works/pi-ai@1.5.2 utils/retry.js isRetryableAssistantError, utils/overflow.js',
    dialects: all,
    streams: true,
    decide: pi,
  },
  {
    name: 'pi (old)',
    source: '@mariozechner/pi-coding-agent@0.73.1 core/agent-session.js _isRetryableError',
    dialects: both,
    streams: true,
    decide: oldPi,
  },
  {
    name: 'opencode',
    source: 'opencode-ai@1.18.33 session/retry, provider/error (bundle)',
    dialects: all,
    streams: true,
    decide: opencode,
  },
  {
    name: 'opencode (before output)',
    source:
      '@ai-sdk/openai as opencode-ai@1.18.33 bundles it, throwIfOpenAIStreamErrorBeforeOutput',
    dialects: ['responses'],
    streams: true,
    decide: opencodeAtOnce,
  },
  {
    name: 'Continue',
    source: '@continuedev/cli@1.5.47 dist/index.js exponentialBackoff isRetryableError',
    dialects: both,
    streams: true,
    decide: continueCli,
  },
  {
    name: 'Qwen Code',
    source: '@qwen-code/qwen-code@0.24.4 retryErrorClassification, geminiChat shouldRetryOnError',
    dialects: both,
    streams: true,
    decide: qwenCode,
  },
  {
    name: 'Cline',
    source: '@cline/llms@0.0.86 isRetryableProviderError, @cline/agents@0.0.86',
    dialects: both,
    streams: true,
    decide: cline,
  },
  {
    name: 'Claude Code',
    // What it does in the middle of a stream has many stages: test/agents tries it with the program.
    source: '@anthropic-ai/claude-code@2.1.329 (bundle; the 400s as measured)',
    dialects: ['messages'],
    streams: false,
    decide: claudeCode,
  },
  {
    name: 'LangChain (JS)',
    source: '@langchain/core@1.4.0 utils/async_caller.js',
    dialects: all,
    streams: false,
    decide: langchain,
  },
  {
    name: 'Codex',
    source: 'codex 0.169.0, as measured with a scripted server',
    dialects: ['responses'],
    streams: true,
    decide: codex,
  },
  {
    name: 'Aider',
    source: 'litellm 1.109.1 exception_mapping_utils.py, aider-chat 0.86.2 exceptions.py (PyPI)',
    dialects: both,
    streams: false,
    decide: aider,
  },
];
