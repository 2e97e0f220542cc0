/** Contexts, frames and folds that the tests of this dialect share. */
import type { Conversation, Part } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import type { AnswerContext, Frame } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { collect, type Generation, type GenerationEvent } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { messagesTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';
import { chatUpstream, sealingFor } from '../../support/sealing.ts';

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
    newId: (prefix) => `${prefix}${String(++count).padStart(24, '0')}`,
    notes: new NoteList(),
    ...changes,
  };
}

export const emptyConversation: Conversation = {
  system: [],
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  tools: [],
  sampling: {},
  output: { type: 'text' },
  extras: {},
};

/** The context of a translated call. */
export function translated(changes: Partial<Conversation> = {}): AnswerContext {
  const conversation = { ...emptyConversation, ...changes };
  return answerContext({ conversation, sealing: sealingFor(chatUpstream) });
}

export function conversationWith(changes: Partial<Conversation>): Conversation {
  return { ...emptyConversation, ...changes };
}

export interface Written {
  readonly body: JsonObject;
  readonly notes: NoteList;
}

/** The request that the upstream half writes. */
export function writeWith(
  changes: Partial<Conversation>,
  traits: Partial<UpstreamTraits> = {},
): Written {
  const notes = new NoteList();
  const ask = {
    model: 'claude',
    stream: false,
    traits: { ...messagesTraits, ...traits },
    newId: (prefix: string) => `${prefix}1`,
  };
  const body = anthropicMessagesUpstream.writeRequest(conversationWith(changes), ask, notes);
  return { body, notes };
}

/** The note paths, with what happened. */
export function noted(notes: NoteList): readonly string[] {
  return notes.all.map(({ path, what }) => `${path} ${what}`);
}

/** What is written besides model and messages, and the note paths. */
export function fields(
  changes: Partial<Conversation>,
  traits: Partial<UpstreamTraits> = {},
): JsonObject & { readonly notes: readonly string[] } {
  const { body, notes } = writeWith(changes, traits);
  const { model: _model, messages: _messages, ...rest } = body;
  return { ...rest, notes: noted(notes) };
}

/** The refusal of a call, as `path: message`; fails when there is none. */
export function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return `${error.path?.join('.') ?? ''}: ${error.message}`;
    throw error;
  }
  throw new Error('it was not refused');
}

/** The frame of one event, as the native service sends it. */
export function frameText(event: JsonObject): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** All frames of a stream's text. */
export function framesOf(text: string): readonly Frame[] {
  const splitter = new SseSplitter();
  const frames = [...splitter.push(Buffer.from(text))];
  const last = splitter.end();
  return last === undefined ? frames : [...frames, last];
}

/** What the upstream half reads out of a stream's text, its close included. */
export function readStreamText(text: string): readonly GenerationEvent[] {
  const reader = anthropicMessagesUpstream.streamReader(messagesTraits);
  const events = framesOf(text).flatMap((frame) => [...reader.read(frame)]);
  return [...events, ...reader.end()];
}

export function readEvents(events: readonly JsonObject[]): readonly GenerationEvent[] {
  return readStreamText(events.map(frameText).join(''));
}

/** The stream that the client half writes of these events. */
export function writeStreamText(
  events: readonly GenerationEvent[],
  context: AnswerContext = answerContext(),
): string {
  const writer = anthropicMessagesClient.streamWriter(context);
  const text = events.map((event) => writer.write(event)).join('');
  return text + writer.end();
}

/** What was collected, without the usage as the upstream wrote it. */
export function collected(events: readonly GenerationEvent[]): Generation | undefined {
  const generation = collect(events);
  if (generation?.usage === undefined) return generation;
  const { raw: _raw, ...usage } = generation.usage;
  return { ...generation, usage };
}

export function generationOf(parts: readonly Part[], more: Partial<Generation> = {}): Generation {
  return {
    id: 'msg_1',
    model: 'upstream-model',
    parts,
    finish: { kind: 'stop', raw: 'end_turn' },
    usage: { freshInputTokens: 7, outputTokens: 3 },
    ...more,
  };
}
