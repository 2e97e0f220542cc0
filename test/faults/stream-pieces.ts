/** The pieces that faulty streams are made of: a legal stream and its parts. */
import type { Json, JsonObject } from '../../src/json/value.ts';
import { chatChunk, chatDone, chatFrame } from '../upstream/chat.ts';
import { blockDelta, messagesFrame, messageStop } from '../upstream/messages.ts';
import { geminiChunk, geminiErrorBody, geminiFrame } from '../upstream/gemini.ts';
import { answerIn, plainUsage } from '../upstream/reply.ts';
import { responsesFrame } from '../upstream/responses.ts';
import type { Answer, Piece } from '../upstream/scripted.ts';
import type { FaultRow } from './fault-row.ts';
import type { UpstreamDialect } from '../support/dialects.ts';

export const text = 'Hello, 你好🦀 and good day.';
export const seen = { text, finish: 'stop', usage: plainUsage } as const;
export const usageOfChat = {
  prompt_tokens: 100,
  completion_tokens: 7,
  total_tokens: 107,
  prompt_tokens_details: { cached_tokens: 60 },
} as const;

/** The frames of a legal stream. */
export function legalFrames(upstream: UpstreamDialect): readonly string[] {
  const { body } = answerIn(upstream, { text }, true);
  const all = typeof body === 'string' ? body : '';
  return all.split(/(?<=\r?\n\r?\n)/);
}

/** The first frame that tells something of the ending. */
const firstOfEnding: { readonly [D in UpstreamDialect]: RegExp } = {
  chat: /"finish_reason":"/,
  messages: /^event: content_block_stop/,
  responses: /^event: response\.output_text\.done/,
  gemini: /"finishReason"/,
};

/** How many frames it takes until all content is there and nothing of the ending. */
export function contentCount(upstream: UpstreamDialect): number {
  return legalFrames(upstream).findIndex((each) => firstOfEnding[upstream].test(each));
}

export function begun(upstream: UpstreamDialect): string {
  return legalFrames(upstream).slice(0, contentCount(upstream)).join('');
}

export function rest(upstream: UpstreamDialect): string {
  return legalFrames(upstream).slice(contentCount(upstream)).join('');
}

export function stream(...pieces: readonly Piece[]): Answer {
  return { body: pieces, framing: 'chunked' };
}

/** The whole legal stream with its text changed. */
export function rewritten(
  change: (all: string, upstream: UpstreamDialect) => string,
): FaultRow['play'] {
  return (upstream) => stream(change(legalFrames(upstream).join(''), upstream));
}

const framers: { readonly [D in UpstreamDialect]: (value: JsonObject) => string } = {
  chat: chatFrame,
  messages: messagesFrame,
  responses: responsesFrame,
  gemini: geminiFrame,
};

export function frame(upstream: UpstreamDialect, value: JsonObject): string {
  return framers[upstream](value);
}

/** A piece of text behind those of the legal stream. */
export function textPiece(upstream: UpstreamDialect, delta: string): JsonObject {
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  return {
    chat: chatChunk({ content: delta }),
    messages: blockDelta(0, { type: 'text_delta', text: delta }),
    responses: { type: 'response.output_text.delta', ...place, delta },
    gemini: geminiChunk([{ text: delta }]),
  }[upstream];
}

/** The name of an event with text, as a line of its frame. */
export const textEvent: { readonly [D in UpstreamDialect]: string } = {
  chat: '',
  messages: 'event: content_block_delta\n',
  responses: 'event: response.output_text.delta\n',
  gemini: '',
};

/** What tells the end of the bytes and nothing of the answer. */
export const endMark: { readonly [D in UpstreamDialect]: string } = {
  chat: chatDone,
  messages: messagesFrame(messageStop),
  responses: chatDone,
  // Nothing tells it but the close.
  gemini: '',
};

interface ToldError {
  readonly message: string;
  readonly chat: { readonly type: string; readonly code: Json };
  readonly messages: string;
  readonly responses: { readonly type: string; readonly code: string };
  /** The code, which names the status. */
  readonly gemini: number;
}

/** Errors as each dialect tells them in an answer that began as a success. */
export const toldErrors = {
  overloaded: {
    message: 'Overloaded',
    chat: { type: 'server_error', code: 503 },
    messages: 'overloaded_error',
    responses: { type: 'service_unavailable_error', code: 'server_is_overloaded' },
    gemini: 503,
  },
  limited: {
    message: 'Slow down',
    chat: { type: 'rate_limit_error', code: 429 },
    messages: 'rate_limit_error',
    responses: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    gemini: 429,
  },
  broken: {
    message: 'It broke',
    chat: { type: 'server_error', code: null },
    messages: 'api_error',
    responses: { type: 'server_error', code: 'server_error' },
    gemini: 500,
  },
} as const satisfies { readonly [name: string]: ToldError };

export function errorBody(upstream: UpstreamDialect, kind: keyof typeof toldErrors): JsonObject {
  const { message, chat, messages, responses, gemini }: ToldError = toldErrors[kind];
  return {
    chat: { error: { message, param: null, ...chat } },
    messages: { type: 'error', error: { type: messages, message } },
    responses: { type: 'error', error: { message, param: null, ...responses } },
    gemini: geminiErrorBody(message, gemini),
  }[upstream];
}
