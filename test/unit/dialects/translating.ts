/** A request of one dialect as the upstream of the other gets it, and the answer on its way back. */
import type { Conversation } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import type { AnswerContext, ClientDialect, UpstreamDialect } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { replay, type Generation } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits, messagesTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { framesOf } from '../../support/reading.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';

export type From = 'chat' | 'messages';

interface Pair {
  readonly client: ClientDialect;
  readonly upstream: UpstreamDialect;
  readonly traits: UpstreamTraits;
}

const pairs: { readonly [F in From]: Pair } = {
  chat: { client: openaiChatClient, upstream: anthropicMessagesUpstream, traits: messagesTraits },
  messages: { client: anthropicMessagesClient, upstream: openaiChatUpstream, traits: chatTraits },
};

export interface Translated {
  readonly body: JsonObject;
  readonly conversation: Conversation;
  /** `lost path` or `changed path`. */
  readonly notes: readonly string[];
}

/** @throws GatewayError for what is refused. */
export function translate(
  from: From,
  request: JsonObject,
  traits: Partial<UpstreamTraits> = {},
): Translated {
  const { client, upstream, traits: base } = pairs[from];
  const body = { model: 'm', ...(from === 'messages' ? { max_tokens: 100 } : {}), ...request };
  const notes = new NoteList();
  client.readHead(body);
  const conversation = client.readRequest(body, notes);
  const newId = (prefix: string): string => `${prefix}1`;
  const ask = { model: 'up', stream: false, traits: { ...base, ...traits }, newId };
  const written = upstream.writeRequest(conversation, ask, notes);
  return {
    body: JSON.parse(JSON.stringify(written)),
    conversation,
    notes: notes.all.map(({ path, what }) => `${what} ${path}`),
  };
}

/** The path of the refusal, in dots. */
export function refusedAt(
  from: From,
  request: JsonObject,
  traits: Partial<UpstreamTraits> = {},
): string {
  try {
    translate(from, request, traits);
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'invalid_request') {
      return (error.path ?? []).join('.');
    }
    throw error;
  }
  throw new Error('it was not refused');
}

export function answerContext(conversation: Conversation, notes = new NoteList()): AnswerContext {
  let ids = 0;
  return {
    model: 'm',
    requestId: 'r',
    createdSeconds: 1,
    nowSeconds: 1,
    wantsUsageFrame: true,
    promptTokensEstimate: 3,
    newId: (prefix) => `${prefix}${++ids}`,
    notes,
    conversation,
  };
}

/** The document that the client gets for the upstream's. */
export function answered(
  from: From,
  { conversation }: Translated,
  document: JsonObject,
  traits: Partial<UpstreamTraits> = {},
): JsonObject {
  const { client, upstream, traits: base } = pairs[from];
  const generation = upstream.readResponse(document, { ...base, ...traits });
  return client.writeResponse(generation, answerContext(conversation));
}

/** The stream that the client gets for the upstream's frames. */
export function streamed(
  from: From,
  { conversation }: Translated,
  frames: readonly JsonObject[],
  traits: Partial<UpstreamTraits> = {},
): string {
  const { client, upstream, traits: base } = pairs[from];
  const reader = upstream.streamReader({ ...base, ...traits });
  const writer = client.streamWriter(answerContext(conversation));
  const text = frames
    .map((frame) =>
      'type' in frame
        ? `event: ${String(frame['type'])}\ndata: ${JSON.stringify(frame)}\n\n`
        : `data: ${JSON.stringify(frame)}\n\n`,
    )
    .join('');
  let out = '';
  const splitter = new SseSplitter();
  for (const frame of splitter.push(
    Buffer.from(text + (from === 'messages' ? 'data: [DONE]\n\n' : '')),
  )) {
    for (const event of reader.read(frame)) out += writer.write(event);
  }
  for (const event of reader.end()) out += writer.write(event);
  return out + writer.end();
}

/** The stream of a whole generation. */
export function replayed(from: From, { conversation }: Translated, generation: Generation): string {
  const writer = pairs[from].client.streamWriter(answerContext(conversation));
  return (
    replay(generation)
      .map((event) => writer.write(event))
      .join('') + writer.end()
  );
}

/** The events of a stream as objects, `[DONE]` left out. */
export function eventsOf(text: string): readonly JsonObject[] {
  return framesOf(text)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data));
}
