/** The pieces that faulty streams are made of: a legal stream and its parts. */
import type { Json, JsonObject } from '../../src/json/value.ts';
import { chatChunk, chatDone, chatFrame } from '../upstream/chat.ts';
import { blockDelta, messagesFrame, messageStop } from '../upstream/messages.ts';
import { eventMessage, piecesIn } from '../upstream/aws.ts';
import { converseDelta, converseErrorBody, converseFrame } from '../upstream/converse.ts';
import { geminiChunk, geminiErrorBody, geminiFrame } from '../upstream/gemini.ts';
import { answerIn, joined, plainUsage } from '../upstream/reply.ts';
import { responsesFrame } from '../upstream/responses.ts';
import type { Answer, Piece } from '../upstream/scripted.ts';
import type { FaultRow } from './fault-row.ts';
import type { SseUpstream, UpstreamDialect } from '../support/dialects.ts';

export const text = 'Hello, 你好🦀 and good day.';
export const seen = { text, finish: 'stop', usage: plainUsage } as const;
export const usageOfChat = {
  prompt_tokens: 100,
  completion_tokens: 7,
  total_tokens: 107,
  prompt_tokens_details: { cached_tokens: 60 },
} as const;

/** As it stands on the wire: AWS frames are no text. */
export type Bytes = string | Buffer;

/** The frames of a legal stream. */
export function legalFrames(upstream: SseUpstream): readonly string[];
export function legalFrames(upstream: UpstreamDialect): readonly Bytes[];
export function legalFrames(upstream: UpstreamDialect): readonly Bytes[] {
  const all = joined(answerIn(upstream, { text }, true).body);
  return typeof all === 'string' ? all.split(/(?<=\r?\n\r?\n)/) : piecesIn(all);
}

/** The first frame about the ending. */
const firstOfEnding: { readonly [D in UpstreamDialect]: RegExp } = {
  chat: /"finish_reason":"/,
  messages: /^event: content_block_stop/,
  responses: /^event: response\.output_text\.done/,
  gemini: /"finishReason"/,
  converse: /contentBlockStop/,
};

/** How many frames it takes until all content is there and nothing of the ending. */
export function contentCount(upstream: UpstreamDialect): number {
  return legalFrames(upstream).findIndex((each) => firstOfEnding[upstream].test(String(each)));
}

export function begun(upstream: SseUpstream): string;
export function begun(upstream: UpstreamDialect): Bytes;
export function begun(upstream: UpstreamDialect): Bytes {
  return joined(legalFrames(upstream).slice(0, contentCount(upstream)));
}

export function rest(upstream: SseUpstream): string;
export function rest(upstream: UpstreamDialect): Bytes;
export function rest(upstream: UpstreamDialect): Bytes {
  return joined(legalFrames(upstream).slice(contentCount(upstream)));
}

/** The frames of a legal stream of server-sent events, for rows that only such upstreams play. */
export function sseFrames(upstream: UpstreamDialect): readonly string[] {
  return legalFrames(upstream).map(String);
}

export function stream(...pieces: readonly Piece[]): Answer {
  return { body: pieces, framing: 'chunked' };
}

/** The whole legal stream of server-sent events with its text changed. */
export function rewritten(change: (all: string) => string): FaultRow['play'] {
  return (upstream) => stream(change(sseFrames(upstream).join('')));
}

const framers: { readonly [D in UpstreamDialect]: (value: JsonObject) => Bytes } = {
  chat: chatFrame,
  messages: messagesFrame,
  responses: responsesFrame,
  gemini: geminiFrame,
  converse: converseFrame,
};

export function frame(upstream: SseUpstream, value: JsonObject): string;
export function frame(upstream: UpstreamDialect, value: JsonObject): Bytes;
export function frame(upstream: UpstreamDialect, value: JsonObject): Bytes {
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
    converse: converseDelta(delta),
  }[upstream];
}

/** The name of an event with text. */
const textEvents: { readonly [D in UpstreamDialect]: string } = {
  chat: '',
  messages: 'content_block_delta',
  responses: 'response.output_text.delta',
  gemini: '',
  converse: 'contentBlockDelta',
};

/** A frame of an event with text that says something else. */
export function frameOf(upstream: UpstreamDialect, data: Bytes): Bytes {
  const name = textEvents[upstream];
  if (upstream === 'converse') {
    return eventMessage({ ':message-type': 'event', ':event-type': name }, data);
  }
  const event = name === '' ? '' : `event: ${name}\n`;
  return Buffer.concat([Buffer.from(`${event}data: `), Buffer.from(data), Buffer.from('\n\n')]);
}

/** Frames that end the bytes and say nothing about the answer. */
export const endMark: { readonly [D in UpstreamDialect]: string } = {
  chat: chatDone,
  messages: messagesFrame(messageStop),
  responses: chatDone,
  // Nothing tells it but the close.
  gemini: '',
  converse: '',
};

interface ToldError {
  readonly message: string;
  readonly chat: { readonly type: string; readonly code: Json };
  readonly messages: string;
  readonly responses: { readonly type: string; readonly code: string };
  /** The code of Gemini, the type of Converse. */
  readonly status: number;
}

/** Errors of each dialect in an answer that began as a success. */
export const toldErrors = {
  overloaded: {
    message: 'Overloaded',
    chat: { type: 'server_error', code: 503 },
    messages: 'overloaded_error',
    responses: { type: 'service_unavailable_error', code: 'server_is_overloaded' },
    status: 503,
  },
  limited: {
    message: 'Slow down',
    chat: { type: 'rate_limit_error', code: 429 },
    messages: 'rate_limit_error',
    responses: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    status: 429,
  },
  broken: {
    message: 'It broke',
    chat: { type: 'server_error', code: null },
    messages: 'api_error',
    responses: { type: 'server_error', code: 'server_error' },
    status: 500,
  },
} as const satisfies { readonly [name: string]: ToldError };

export function errorBody(upstream: UpstreamDialect, kind: keyof typeof toldErrors): JsonObject {
  const { message, chat, messages, responses, status }: ToldError = toldErrors[kind];
  return {
    chat: { error: { message, param: null, ...chat } },
    messages: { type: 'error', error: { type: messages, message } },
    responses: { type: 'error', error: { message, param: null, ...responses } },
    gemini: geminiErrorBody(message, status),
    converse: converseErrorBody(message, status),
  }[upstream];
}
