/** The dialects: those that clients may speak, whose endpoints the data plane mounts, and those that upstreams speak. */
import type { DialectId } from '../core/conversation.ts';
import type { ClientDialect, UpstreamDialect } from '../core/dialect.ts';
import { anthropicMessagesClient } from './anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from './anthropic-messages/upstream.ts';
import { bedrockConverseUpstream } from './bedrock-converse/upstream.ts';
import { geminiUpstream } from './gemini/upstream.ts';
import { openaiChatClient } from './openai-chat/client.ts';
import { openaiChatUpstream } from './openai-chat/upstream.ts';
import { openaiResponsesClient } from './openai-responses/client.ts';
import { openaiResponsesUpstream } from './openai-responses/upstream.ts';

/** Errors of requests that no dialect claims are written in the first one. */
export const clientDialects: readonly [ClientDialect, ...ClientDialect[]] = [
  openaiChatClient,
  anthropicMessagesClient,
  openaiResponsesClient,
];

const upstreamDialects: readonly UpstreamDialect[] = [
  openaiChatUpstream,
  anthropicMessagesUpstream,
  openaiResponsesUpstream,
  geminiUpstream,
  bedrockConverseUpstream,
];

/** @throws TypeError for an id that no client dialect has. */
export function clientDialect(id: DialectId): ClientDialect {
  return named(clientDialects, id);
}

/** @throws TypeError for an id that no upstream dialect has. */
export function upstreamDialect(id: DialectId): UpstreamDialect {
  return named(upstreamDialects, id);
}

function named<T extends { readonly id: DialectId }>(dialects: readonly T[], id: DialectId): T {
  const dialect = dialects.find((each) => each.id === id);
  if (dialect === undefined) throw new TypeError(`No dialect is called ${id}.`);
  return dialect;
}
