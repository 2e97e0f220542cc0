/** One reply in nobody's dialect, as an upstream of each dialect would send it. */
import type { JsonObject } from '../../src/json/value.ts';
import type { AnyDialect, Seen, SeenUsage } from '../support/reading.ts';
import { chatAnswer, chatError, type ChatToolCall } from './chat.ts';
import { messagesAnswer, messagesError } from './messages.ts';
import { callItem, reasoningItem, responsesAnswer, textItem } from './responses.ts';
import type { Answer, Scripted } from './scripted.ts';

export interface Reply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly ChatToolCall[];
  readonly length?: true;
  readonly usage?: SeenUsage;
}

export const plainUsage: SeenUsage = {
  fresh: 40,
  cacheRead: 60,
  cacheWrite: 0,
  output: 7,
  reasoning: 0,
};

function chatUsageOf(usage: SeenUsage): JsonObject {
  const prompt = usage.fresh + usage.cacheRead + usage.cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: {
      cached_tokens: usage.cacheRead,
      ...(usage.cacheWrite === 0 ? {} : { cache_write_tokens: usage.cacheWrite }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

function messagesUsageOf(usage: SeenUsage): JsonObject {
  return {
    input_tokens: usage.fresh,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
    output_tokens: usage.output,
    ...(usage.reasoning === 0
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
  };
}

function responsesUsageOf(usage: SeenUsage): JsonObject {
  const input = usage.fresh + usage.cacheRead + usage.cacheWrite;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead,
      cache_write_tokens: usage.cacheWrite,
    },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  };
}

function responsesReply({ text, reasoning, calls = [], ...reply }: Reply, stream: boolean): Answer {
  const output = [
    ...(reasoning === undefined ? [] : [reasoningItem(reasoning, 'blob')]),
    ...(text === undefined ? [] : [textItem(text)]),
    ...calls.map((call) => callItem(call.id, call.name, call.arguments)),
  ];
  const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  const usage = responsesUsageOf(reply.usage ?? plainUsage);
  const { body, ...answer } = responsesAnswer(output, {
    stream,
    usage,
    ...(reply.length === undefined ? {} : cut),
  });
  return { ...answer, body: Array.isArray(body) ? body.join('') : body };
}

/** The reply as one answer. */
export function answerIn(dialect: AnyDialect, reply: Reply, stream: boolean): Answer {
  if (dialect === 'responses') return responsesReply(reply, stream);
  const { text, reasoning, calls, usage = plainUsage } = reply;
  const shared = {
    ...(text === undefined ? {} : { text }),
    ...(calls === undefined ? {} : { calls }),
  };
  return dialect === 'chat'
    ? chatAnswer(
        {
          ...shared,
          ...(reasoning === undefined ? {} : { reasoning }),
          ...(reply.length === undefined ? {} : { finish: 'length' }),
          usage: chatUsageOf(usage),
        },
        stream,
      )
    : messagesAnswer(
        {
          ...shared,
          ...(reasoning === undefined ? {} : { thinking: reasoning }),
          ...(reply.length === undefined ? {} : { stop: 'max_tokens' }),
          usage: messagesUsageOf(usage),
        },
        stream,
      );
}

/** The reply, streamed or whole as the request asks. */
export function replying(dialect: AnyDialect, reply: Reply): Scripted {
  return (request) => answerIn(dialect, reply, request.json['stream'] === true);
}

/** What a client must see of a reply. */
export function seenOf(reply: Reply, model: string): Seen {
  const calls = reply.calls ?? [];
  return {
    model,
    text: reply.text ?? '',
    reasoning: reply.reasoning ?? '',
    calls: calls.map((call) => ({
      id: call.id,
      name: call.name,
      arguments: JSON.parse(call.arguments),
    })),
    finish: reply.length === true ? 'length' : calls.length > 0 ? 'tools' : 'stop',
    usage: reply.usage ?? plainUsage,
  };
}

/** An error answer in the upstream's own words. */
export function errorIn(
  dialect: AnyDialect,
  status: number,
  message: string,
  headers: { readonly [name: string]: string } = {},
): Answer {
  const types: { readonly [status: number]: readonly [chat: string, messages: string] } = {
    400: ['invalid_request_error', 'invalid_request_error'],
    401: ['invalid_request_error', 'authentication_error'],
    403: ['permission_error', 'permission_error'],
    404: ['invalid_request_error', 'not_found_error'],
    413: ['invalid_request_error', 'request_too_large'],
    429: ['rate_limit_error', 'rate_limit_error'],
    503: ['service_unavailable_error', 'overloaded_error'],
    529: ['overloaded_error', 'overloaded_error'],
  };
  const [chat, messages] = types[status] ?? ['server_error', 'api_error'];
  return {
    status,
    headers,
    body:
      dialect !== 'messages'
        ? chatError(message, chat, status === 404 ? 'model_not_found' : null)
        : messagesError(message, messages),
  };
}
