/** The pieces that faulty streams are made of: a legal stream and its parts. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';
import { chatFrame } from '../upstream/chat.ts';
import { messagesFrame } from '../upstream/messages.ts';
import { answerIn, plainUsage } from '../upstream/reply.ts';
import type { Answer, Piece } from '../upstream/scripted.ts';
import type { FaultRow } from './fault-row.ts';

export const text = 'Hello, 你好🦀 and good day.';
export const seen = { text, finish: 'stop', usage: plainUsage } as const;
export const usageOfChat = {
  prompt_tokens: 100,
  completion_tokens: 7,
  total_tokens: 107,
  prompt_tokens_details: { cached_tokens: 60 },
} as const;

/** The frames of a legal stream. */
export function legalFrames(upstream: Dialect): readonly string[] {
  const { body } = answerIn(upstream, { text }, true);
  const all = typeof body === 'string' ? body : '';
  return all
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => `${frame}\n\n`);
}

/** How many frames it takes until all content is there and nothing of the ending. */
export function contentCount(upstream: Dialect): number {
  return upstream === 'chat' ? 3 : 5;
}

export function begun(upstream: Dialect): string {
  return legalFrames(upstream).slice(0, contentCount(upstream)).join('');
}

export function rest(upstream: Dialect): string {
  return legalFrames(upstream).slice(contentCount(upstream)).join('');
}

export function stream(...pieces: readonly Piece[]): Answer {
  return { body: pieces, framing: 'chunked' };
}

/** The whole legal stream with its text changed. */
export function rewritten(change: (all: string, upstream: Dialect) => string): FaultRow['play'] {
  return (upstream) => stream(change(legalFrames(upstream).join(''), upstream));
}

export function frame(upstream: Dialect, value: JsonObject): string {
  return upstream === 'chat' ? chatFrame(value) : messagesFrame(value);
}
