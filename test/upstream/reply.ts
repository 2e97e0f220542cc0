/** One reply in nobody's dialect, as an upstream of each dialect would send it. */
import type { JsonObject } from '../../src/json/value.ts';
import type { SseUpstream, UpstreamDialect } from '../support/dialects.ts';
import type { Seen, SeenUsage } from '../support/reading.ts';
import { chatAnswer, chatError, halves, type ChatToolCall } from './chat.ts';
import {
  converseAnswer,
  converseError,
  streamOf as converseStreamOf,
  type ConverseAnswer,
} from './converse.ts';
import { geminiAnswer, geminiError, streamOf, type GeminiAnswer } from './gemini.ts';
import { messagesAnswer, messagesError } from './messages.ts';
import { callItem, reasoningItem, responsesAnswer, textItem } from './responses.ts';
import { wantsStream, type Answer, type Scripted } from './scripted.ts';

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
  return responsesAnswer(output, { stream, usage, ...(reply.length === undefined ? {} : cut) });
}

/**
 * What a server of the dialect can tell of a usage: Gemini has no count of what is written to a cache, and Converse none of
 * reasoning.
 */
export function toldUsage(dialect: UpstreamDialect, usage: SeenUsage): SeenUsage {
  if (dialect === 'converse') return { ...usage, reasoning: 0 };
  if (dialect !== 'gemini') return usage;
  return { ...usage, fresh: usage.fresh + usage.cacheWrite, cacheWrite: 0 };
}

function geminiUsageOf(usage: SeenUsage): JsonObject {
  const prompt = usage.fresh + usage.cacheRead + usage.cacheWrite;
  return {
    promptTokenCount: prompt,
    cachedContentTokenCount: usage.cacheRead,
    candidatesTokenCount: usage.output - usage.reasoning,
    thoughtsTokenCount: usage.reasoning,
    totalTokenCount: prompt + usage.output,
  };
}

function geminiReply({ text, reasoning, calls = [], ...reply }: Reply, stream: boolean): Answer {
  const cut = (whole: string | undefined): readonly string[] =>
    stream ? halves(whole) : whole === undefined ? [] : [whole];
  const answer: GeminiAnswer = {
    parts: [
      ...cut(reasoning).map((part) => ({ text: part, thought: true })),
      ...cut(text).map((part) => ({ text: part })),
      ...calls.map(({ id, name, arguments: args }) => ({
        functionCall: { id, name, args: JSON.parse(args) },
      })),
      // Streams tell their finish behind all content.
      ...(stream ? [{ text: '' }] : []),
    ],
    finishReason: reply.length === undefined ? 'STOP' : 'MAX_TOKENS',
    usage: geminiUsageOf(reply.usage ?? plainUsage),
  };
  return stream ? streamOf(answer) : geminiAnswer(answer);
}

function converseUsageOf(usage: SeenUsage): JsonObject {
  const { fresh, cacheRead, cacheWrite, output } = usage;
  return {
    inputTokens: fresh,
    cacheReadInputTokens: cacheRead,
    cacheWriteInputTokens: cacheWrite,
    outputTokens: output,
    totalTokens: fresh + cacheRead + cacheWrite + output,
  };
}

function converseReply({ text, reasoning, calls = [], ...reply }: Reply, stream: boolean): Answer {
  const called = calls.length > 0 ? 'tool_use' : 'end_turn';
  const answer: ConverseAnswer = {
    content: [
      ...(reasoning === undefined
        ? []
        : [{ reasoningContent: { reasoningText: { text: reasoning } } }]),
      ...(text === undefined ? [] : [{ text }]),
      ...calls.map(({ id, name, arguments: args }) => ({
        toolUse: { toolUseId: id, name, input: JSON.parse(args) },
      })),
    ],
    stopReason: reply.length === undefined ? called : 'max_tokens',
    usage: converseUsageOf(reply.usage ?? plainUsage),
  };
  return stream ? { framing: 'chunked', ...converseStreamOf(answer) } : converseAnswer(answer);
}

function chatReply({ text, reasoning, calls, ...reply }: Reply, stream: boolean): Answer {
  const answer = {
    ...(text === undefined ? {} : { text }),
    ...(calls === undefined ? {} : { calls }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(reply.length === undefined ? {} : { finish: 'length' }),
    usage: chatUsageOf(reply.usage ?? plainUsage),
  };
  return chatAnswer(answer, stream);
}

function messagesReply({ text, reasoning, calls, ...reply }: Reply, stream: boolean): Answer {
  const answer = {
    ...(text === undefined ? {} : { text }),
    ...(calls === undefined ? {} : { calls }),
    ...(reasoning === undefined ? {} : { thinking: reasoning }),
    ...(reply.length === undefined ? {} : { stop: 'max_tokens' }),
    usage: messagesUsageOf(reply.usage ?? plainUsage),
  };
  return messagesAnswer(answer, stream);
}

const replies: {
  readonly [D in UpstreamDialect]: (reply: Reply, stream: boolean) => Answer;
} = {
  chat: chatReply,
  messages: messagesReply,
  responses: responsesReply,
  gemini: geminiReply,
  converse: converseReply,
};

/** The reply as one answer, whose body is one piece. */
export function answerIn(dialect: UpstreamDialect, reply: Reply, stream: boolean): Answer {
  const { body, ...answer } = replies[dialect](reply, stream);
  return { ...answer, body: joined(body) };
}

/** What an answer says, as one piece. */
export function joined(body: Answer['body']): string | Buffer {
  if (typeof body === 'string' || Buffer.isBuffer(body)) return body;
  const pieces = body.filter((piece) => typeof piece === 'string' || Buffer.isBuffer(piece));
  return pieces.some((piece) => Buffer.isBuffer(piece))
    ? Buffer.concat(pieces.map((piece) => Buffer.from(piece)))
    : pieces.join('');
}

/** The reply, streamed or whole as the request asks. */
export function replying(dialect: UpstreamDialect, reply: Reply): Scripted {
  return (request) => answerIn(dialect, reply, wantsStream(request));
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
  dialect: UpstreamDialect,
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
  const code = status === 404 ? 'model_not_found' : null;
  if (dialect === 'converse') {
    const error = converseError(message, status);
    return { ...error, headers: { ...error.headers, ...headers } };
  }
  const bodies: { readonly [D in SseUpstream]: string } = {
    chat: chatError(message, chat, code),
    messages: messagesError(message, messages),
    responses: chatError(message, chat, code),
    gemini: geminiError(message, status),
  };
  return { status, headers, body: bodies[dialect] };
}
