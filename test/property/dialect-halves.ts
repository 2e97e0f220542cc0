/** The halves of each dialect, and what they need to be called. */
import type {
  AnswerContext,
  Ask,
  ClientDialect,
  Frame,
  UpstreamDialect as UpstreamHalf,
} from '../../src/core/dialect.ts';
import type { GatewayError } from '../../src/core/errors.ts';
import type { GenerationEvent } from '../../src/core/generation.ts';
import { NoteList } from '../../src/core/notes.ts';
import {
  chatTraits,
  converseTraits,
  geminiTraits,
  messagesTraits,
  responsesTraits,
  type UpstreamTraits,
} from '../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../src/dialects/anthropic-messages/upstream.ts';
import { bedrockConverseUpstream } from '../../src/dialects/bedrock-converse/upstream.ts';
import { geminiUpstream } from '../../src/dialects/gemini/upstream.ts';
import { openaiChatClient } from '../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../src/dialects/openai-chat/upstream.ts';
import { openaiResponsesClient } from '../../src/dialects/openai-responses/client.ts';
import { openaiResponsesUpstream } from '../../src/dialects/openai-responses/upstream.ts';
import type { UpstreamDialect } from '../support/dialects.ts';
import type { AnyDialect } from '../support/reading.ts';

/** What faces a provider. */
export interface Upstream {
  readonly name: UpstreamDialect;
  readonly upstream: UpstreamHalf;
  readonly traits: UpstreamTraits;
}

export interface Halves extends Upstream {
  readonly name: AnyDialect;
  readonly client: ClientDialect;
}

/** Traits that allow everything: what is lost then is lost by the dialect itself. */
export const halves: { readonly [D in AnyDialect]: Halves } = {
  chat: {
    name: 'chat',
    client: openaiChatClient,
    upstream: openaiChatUpstream,
    traits: { ...chatTraits, topK: true, prefill: true },
  },
  messages: {
    name: 'messages',
    client: anthropicMessagesClient,
    upstream: anthropicMessagesUpstream,
    traits: messagesTraits,
  },
  responses: {
    name: 'responses',
    client: openaiResponsesClient,
    upstream: openaiResponsesUpstream,
    traits: { ...responsesTraits, endUserField: 'safety_identifier' },
  },
};

/** The same of all that upstreams speak. */
export const upstreamHalves: { readonly [D in UpstreamDialect]: Upstream } = {
  ...halves,
  gemini: { name: 'gemini', upstream: geminiUpstream, traits: geminiTraits },
  converse: { name: 'converse', upstream: bedrockConverseUpstream, traits: converseTraits },
};

/** Ids that are new each time and the same in each run. */
export function countingIds(): (prefix: string) => string {
  let count = 0;
  return (prefix) => `${prefix}${String((count += 1)).padStart(24, '0')}`;
}

export function ask({ traits }: Pick<Upstream, 'traits'>): Ask {
  return { model: 'model', stream: false, traits, newId: countingIds() };
}

export function answerContext(model = 'model'): AnswerContext {
  return {
    model,
    requestId: 'req_1',
    createdSeconds: 1_700_000_000,
    nowSeconds: 1_700_000_000,
    wantsUsageFrame: true,
    promptTokensEstimate: 5,
    newId: countingIds(),
    notes: new NoteList(),
  };
}

/** Writes a whole stream; with a failure, what came before it and the frames that tell it. */
export function writeStream(
  { client }: Halves,
  events: readonly GenerationEvent[],
  failure?: GatewayError,
): string {
  const writer = client.streamWriter(answerContext());
  const text = events.map((event) => writer.write(event)).join('');
  if (failure !== undefined) {
    return text + (writer.fail?.(failure, 'req_1') ?? client.writeStreamError(failure, 'req_1'));
  }
  const last = events.findLast((event) => event.type !== 'usage');
  return last?.type === 'finish' ? text + writer.end() : text;
}

/** Reads a whole stream with the upstream half. */
export function readEvents(
  { upstream, traits }: Upstream,
  frames: readonly Frame[],
): readonly GenerationEvent[] {
  const reader = upstream.streamReader(traits);
  const events: GenerationEvent[] = [];
  for (const frame of frames) {
    events.push(...reader.read(frame));
    if (events.at(-1)?.type === 'error') return events;
  }
  return [...events, ...reader.end()];
}
