/** Step 5, first half: the bytes and headers that go to one target. */
import type { Ask } from '../core/dialect.ts';
import type { Conversation } from '../core/conversation.ts';
import type { Notes } from '../core/notes.ts';
import type { Provider, Target } from '../core/provider.ts';
import type { UpstreamRequest } from '../wire/http-client.ts';
import type { Call } from './call.ts';
import type { Mode } from './receipt.ts';

export interface PreparedRequest {
  readonly request: UpstreamRequest;
  readonly mode: Mode;
  readonly conversation: Conversation | undefined;
}

/**
 * The client's own bytes with the owned members spliced when client and upstream speak the same
 * dialect; else the conversation, read once and rendered in the upstream's dialect.
 * @throws GatewayError `invalid_request` for what this upstream cannot be asked.
 */
export function prepareRequest(
  call: Call,
  target: Target,
  means: { ask: Ask; notes: Notes },
): PreparedRequest {
  const { provider } = target;
  const relay = provider.dialect.id === call.dialect.id;
  let conversation: Conversation | undefined;
  let body: Buffer;
  if (relay) {
    body = provider.dialect.relayRequest(call.source, means.ask);
  } else {
    conversation = call.dialect.readRequest(call.source.value, means.notes);
    const rendered = provider.dialect.writeRequest(conversation, means.ask, means.notes);
    body = Buffer.from(JSON.stringify(rendered));
  }
  return {
    request: {
      endpoint: provider.generate,
      method: 'POST',
      headers: forwardedHeaders(provider, relay ? call : undefined),
      body,
      connectMs: target.timeouts.connectMs,
    },
    mode: relay ? 'relay' : 'translate',
    conversation,
  };
}

/** Upstream headers are built from nothing; only allow-listed client headers go up (S17). */
export function forwardedHeaders(
  provider: Provider,
  client: { header(name: string): string | undefined } | undefined,
): readonly string[] {
  if (provider.forwardedHeaders.length === 0) return [];
  const headers: string[] = [];
  for (const { name, otherwise } of provider.forwardedHeaders) {
    const value = client?.header(name) ?? otherwise;
    if (value !== undefined && value !== '') headers.push(name, value);
  }
  return headers;
}
