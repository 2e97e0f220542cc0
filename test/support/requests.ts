/** Legal requests of both dialects, and where they go. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from './reading.ts';

export const endpointOf: { readonly [D in Dialect]: string } = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
};

/** A minimal legal request of a dialect. */
export function requestBody(
  dialect: Dialect,
  { model, stream, more = {} }: { model: string; stream: boolean; more?: JsonObject },
): JsonObject {
  return {
    model,
    messages: [{ role: 'user', content: 'Hello' }],
    ...(dialect === 'messages' ? { max_tokens: 100 } : {}),
    ...(stream ? { stream: true } : {}),
    ...(stream && dialect === 'chat' ? { stream_options: { include_usage: true } } : {}),
    ...more,
  };
}
