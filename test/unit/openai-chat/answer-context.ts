/** Contexts, frames and folds that the tests of this dialect share. */
import assert from 'node:assert/strict';
import type { AnswerContext, Frame, StreamReader } from '../../../src/core/dialect.ts';
import type { GatewayError } from '../../../src/core/errors.ts';
import { collect, type Generation, type GenerationEvent } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';

/** A context with fixed time and ids. */
export function answerContext(changes: Partial<AnswerContext> = {}): AnswerContext {
  let count = 0;
  return {
    model: 'my-model',
    requestId: 'req_1',
    createdSeconds: 1_700_000_000,
    nowSeconds: 1_700_000_000,
    wantsUsageFrame: true,
    promptTokensEstimate: 11,
    newId: (prefix) => `${prefix}${++count}`,
    notes: new NoteList(),
    ...changes,
  };
}

/** One frame with the given data, as the wire would give it. */
export function frame(data: unknown): Frame {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  const [only] = framesOf(`data: ${text}\n\n`);
  if (only === undefined) throw new Error('no frame');
  return only;
}

/** All frames of a stream's text. */
export function framesOf(text: string): readonly Frame[] {
  const splitter = new SseSplitter();
  const frames = [...splitter.push(Buffer.from(text))];
  const last = splitter.end();
  return last === undefined ? frames : [...frames, last];
}

/** Everything that a reader yields for these frames and the close behind them. */
export function readAll(
  frames: readonly Frame[],
  reader: StreamReader = openaiChatUpstream.streamReader(chatTraits),
): readonly GenerationEvent[] {
  const events: GenerationEvent[] = [];
  for (const one of frames) events.push(...reader.read(one));
  events.push(...reader.end());
  return events;
}

/** The events of chunks in a row. */
export function readChunks(
  chunks: readonly unknown[],
  traits: UpstreamTraits = chatTraits,
): readonly GenerationEvent[] {
  return readAll(
    chunks.map((chunk) => frame(chunk)),
    openaiChatUpstream.streamReader(traits),
  );
}

/** A chunk with one choice. */
export function chunk(delta: object, finish: string | null = null, more: object = {}): object {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 5,
    model: 'upstream-model',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  };
}

/** The generation of chunks in a row; fails when they have no finish. */
export function collectChunks(
  chunks: readonly unknown[],
  traits: UpstreamTraits = chatTraits,
): Generation {
  const generation = collect(readChunks(chunks, traits));
  if (generation === undefined) throw new Error('no finish');
  return generation;
}

/** The text that the client half writes for these events, terminator included. */
export function writeStream(
  events: readonly GenerationEvent[],
  context: AnswerContext = answerContext(),
): string {
  const writer = openaiChatClient.streamWriter(context);
  return events.map((event) => writer.write(event)).join('') + writer.end();
}

/** The types of events in a row. */
export function types(events: readonly GenerationEvent[]): readonly string[] {
  return events.map((event) => event.type);
}

/** The error that ends these events. */
export function errorOf(events: readonly GenerationEvent[]): GatewayError {
  const last = events.at(-1);
  assert.equal(last?.type, 'error');
  return last.error;
}

/** One entry of `tool_calls` in a delta. */
export function call(
  index: number | undefined,
  id: string | undefined,
  name?: string,
  args?: unknown,
) {
  return {
    ...(index === undefined ? {} : { index }),
    ...(id === undefined ? {} : { id, type: 'function' }),
    function: {
      ...(name === undefined ? {} : { name }),
      ...(args === undefined ? {} : { arguments: args }),
    },
  };
}

/** What the usage chunk reports. */
export const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };
/** A chunk with nothing but usage. */
export const usageChunk = { id: 'chatcmpl-1', choices: [], usage };
/** The first chunk of an answer. */
export const role = chunk({ role: 'assistant', content: '', refusal: null });
