/**
 * C2 C3: what released clients do with every failure that the gateway can tell them of, by their own rules
 * (retry-rules.ts). Exceptions are listed with their reason; one that is no longer needed fails as well.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { asGatewayError, GatewayError, type ErrorCode } from '../../../src/core/errors.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { openaiResponsesClient } from '../../../src/dialects/openai-responses/client.ts';
import { openaiResponsesUpstream } from '../../../src/dialects/openai-responses/upstream.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { retryHeaders } from '../../../src/gateway/answer/client-answer.ts';
import { clientDialects, type ClientDialect } from '../../support/dialects.ts';
import { objectAt } from '../../support/reading.ts';
import { releasedClients, type ReleasedClient, type Told, type Verdict } from './retry-rules.ts';

const writers = {
  chat: openaiChatClient,
  messages: anthropicMessagesClient,
  responses: openaiResponsesClient,
} as const;
/** As the gateway makes them, without digits in which a client could see a status. */
const requestId = 'req_AbCdEfGh';

interface Row {
  readonly wanted: Verdict;
  /** It can be told behind the status line of a stream as well. */
  readonly streamed?: true;
}

/**
 * What a client should do with each failure. Not here: `canceled`, which is never sent, what answers requests
 * that no released client makes (another method or media type), and the codes of `Idempotency-Key`, which only
 * the SDKs send; those obey `x-should-retry`.
 */
const rows = {
  invalid_request: { wanted: 'stop' },
  too_large: { wanted: 'compact' },
  unauthenticated: { wanted: 'stop' },
  forbidden: { wanted: 'stop' },
  model_not_found: { wanted: 'stop', streamed: true },
  route_not_found: { wanted: 'stop' },
  rate_limited: { wanted: 'retry', streamed: true },
  budget_exhausted: { wanted: 'stop', streamed: true },
  overloaded: { wanted: 'retry', streamed: true },
  upstream_unavailable: { wanted: 'retry', streamed: true },
  upstream_invalid: { wanted: 'retry', streamed: true },
  timeout: { wanted: 'retry', streamed: true },
  upstream_rejected: { wanted: 'stop', streamed: true },
  context_overflow: { wanted: 'compact', streamed: true },
  upstream_auth: { wanted: 'stop', streamed: true },
  internal: { wanted: 'retry', streamed: true },
  store_unavailable: { wanted: 'retry', streamed: true },
  stream_interrupted: { wanted: 'retry', streamed: true },
  shutting_down: { wanted: 'retry', streamed: true },
  request_timeout: { wanted: 'retry' },
} as const satisfies { readonly [C in ErrorCode]?: Row };
type Judged = keyof typeof rows;

/** The words of each as the code words them; where an upstream's words are told, such words. */
const texts: { readonly [C in ErrorCode]?: readonly string[] } = {
  rate_limited: [
    'Rate limit reached for model-x in organization org-1 on tokens per min.',
    'slow down',
    'The provider limits the rate of requests; retry later.',
  ],
  overloaded: ['The provider is overloaded; retry later.', 'Loading model'],
  upstream_unavailable: [
    'The provider failed with status 500.',
    'The connection to the provider failed.',
    'GPU 7 fell off the bus',
  ],
  upstream_invalid: [
    'The upstream sent an event that is not JSON.',
    'The upstream sent an empty stream.',
  ],
  timeout: [
    'The model stopped answering for more than 60000 ms.',
    'The model did not answer within 60000 ms.',
    'The call took longer than 600000 ms.',
  ],
  stream_interrupted: [
    'The upstream closed the stream before its end.',
    'The upstream ended the stream without saying why the answer ended.',
  ],
  shutting_down: ['The gateway is shutting down.'],
  context_overflow: [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    'prompt is too long: 250000 tokens > 200000 maximum',
  ],
  model_not_found: ['The model "x" does not exist or this key may not use it.'],
  upstream_rejected: ['temperature: must be at most 2'],
  internal: [asGatewayError(new Error('x')).message],
  request_timeout: ['The request timed out: its body did not arrive in time.'],
  budget_exhausted: ['The budget "team" of 10 $ a month is spent; it begins anew on 1 December.'],
};

const said: { readonly [D in ClientDialect]: (status: number) => GatewayError } = {
  chat: (status) => openaiChatUpstream.readError(status, '{"error":{"message":"Bad key"}}'),
  messages: (status) =>
    anthropicMessagesUpstream.readError(status, '{"error":{"type":"x","message":"Bad key"}}'),
  responses: (status) =>
    openaiResponsesUpstream.readError(status, '{"error":{"message":"Bad key"}}'),
};

function errorsOf(code: ErrorCode): readonly GatewayError[] {
  if (code === 'upstream_auth') {
    return clientDialects.flatMap((upstream) =>
      [401, 402, 403].map((status) => said[upstream](status)),
    );
  }
  return (texts[code] ?? ['What happened.']).map((text) => new GatewayError(code, text));
}

function headersOf(error: GatewayError): Told['headers'] {
  const flat = retryHeaders(error, () => 0);
  const headers: { [name: string]: string } = { 'x-request-id': requestId };
  for (let i = 0; i + 1 < flat.length; i += 2) headers[flat[i] ?? ''] = flat[i + 1] ?? '';
  return headers;
}

function asAnswer(dialect: ClientDialect, error: GatewayError): Told {
  const { status, body } = writers[dialect].writeError(error, requestId);
  return { dialect, status, headers: headersOf(error), body };
}

function asFrame(dialect: ClientDialect, error: GatewayError): Told {
  const frame = writers[dialect].writeStreamError(error, requestId);
  const events = [...frame.matchAll(/^data: ([^\n]*)$/gm)].map(([, data = '']) =>
    tryParseObject(data),
  );
  const last = events.at(-1);
  assert.ok(last !== undefined, frame);
  const told = { dialect, status: undefined, headers: { 'x-request-id': requestId } };
  if (dialect !== 'responses') return { ...told, body: last };
  const event = events.find((each) => each?.['type'] === 'error');
  assert.ok(event !== undefined, frame);
  // Of a failed response its error is what a client goes by.
  return { ...told, body: objectAt(last, 'response'), event };
}

const openaiQuota =
  'The chat format has 429 insufficient_quota for this, and SDKs know it by its code; those that look at the status only do the same with OpenAI itself.';
const sixTimes =
  'It asks six times after this status, whatever it is told: refusals of keys and bodies cost little for that.';
const capacity =
  'It shows at once that the model is at capacity: the gateway has tried before it says so.';
const ownUpload =
  'The client was too slow to send its own request; it does not take 408 for something that passes.';

/** Where a client does otherwise whatever it is told, or two clients contradict each other (decision 0037). */
const exceptions: { readonly [key: string]: string } = {
  'AI SDK, chat answer: budget_exhausted': openaiQuota,
  'pi (old), chat answer: budget_exhausted': openaiQuota,
  'opencode, chat answer: budget_exhausted': openaiQuota,
  'Continue, chat answer: budget_exhausted': openaiQuota,
  'Qwen Code, chat answer: budget_exhausted': openaiQuota,
  'Cline, chat answer: budget_exhausted': openaiQuota,
  'Aider, chat answer: budget_exhausted': openaiQuota,
  'Aider, messages answer: budget_exhausted':
    'LiteLLM has no class for 402, and Aider asks again for what has none.',
  'AI SDK, responses answer: budget_exhausted': openaiQuota,
  'opencode, responses answer: budget_exhausted': openaiQuota,
  'opencode (before output), responses answer: budget_exhausted': openaiQuota,
  'opencode (before output), responses stream: budget_exhausted': openaiQuota,
  'Codex, responses answer: unauthenticated': sixTimes,
  'Codex, responses answer: forbidden': sixTimes,
  'Codex, responses answer: too_large': sixTimes,
  'Codex, responses stream: overloaded': capacity,
  'Codex, responses stream: store_unavailable': capacity,
  'Codex, responses stream: shutting_down': capacity,
  'Continue, chat answer: request_timeout': ownUpload,
  'Continue, messages answer: request_timeout': ownUpload,
  'Qwen Code, chat answer: request_timeout': ownUpload,
  'Qwen Code, messages answer: request_timeout': ownUpload,
  'Aider, chat answer: request_timeout': ownUpload,
  'opencode, chat stream: context_overflow':
    'It looks for the digits of statuses anywhere, and 250000 has some.',
  'opencode, responses stream: context_overflow':
    'It looks for the digits of statuses anywhere, and 250000 has some.',
  'opencode, messages stream: context_overflow':
    'It looks for the digits of statuses anywhere, and 250000 has some.',
};

const used = new Set<string>();

function assertVerdict(client: ReleasedClient, code: Judged, told: Told): void {
  const { wanted } = rows[code];
  const is = client.decide(told);
  // A client that does not compact at least does not ask the same again.
  if (is === wanted || (wanted === 'compact' && is === 'stop')) return;
  const form = told.status === undefined ? 'stream' : 'answer';
  const key = `${client.name}, ${told.dialect} ${form}: ${code}`;
  used.add(key);
  assert.ok(
    exceptions[key] !== undefined,
    `${key} → ${is} for ${told.status} ${JSON.stringify(told.body)}`,
  );
}

for (const client of releasedClients) {
  for (const dialect of client.dialects) {
    describe(`C2 C3 ${client.name}, ${dialect} (${client.source})`, () => {
      for (const [code, row] of Object.entries(rows) as [Judged, Row][]) {
        test(`${code}: ${row.wanted}`, () => {
          for (const error of errorsOf(code)) {
            assertVerdict(client, code, asAnswer(dialect, error));
            if (!client.streams || row.streamed !== true) continue;
            assertVerdict(client, code, asFrame(dialect, error));
          }
        });
      }
    });
  }
}

test('C2 C3 every exception is still one', () => {
  assert.deepEqual(
    Object.keys(exceptions).filter((key) => !used.has(key)),
    [],
  );
});

test('C3 E15 a refused credential of the gateway is a 400 that is not to be sent again', () => {
  for (const dialect of clientDialects) {
    for (const error of errorsOf('upstream_auth')) {
      const { status = 0, headers } = asAnswer(dialect, error);
      assert.equal(status, 400);
      assert.equal(headers['x-should-retry'], 'false');
    }
  }
});
