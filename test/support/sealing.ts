/** A sealer and an upstream for tests of what clients carry. */
import type { Origin } from '../../src/core/conversation.ts';
import type { JsonObject } from '../../src/json/value.ts';
import type { Sealing } from '../../src/core/dialect.ts';
import { createSealer } from '../../src/core/secret.ts';

export const testSealer = createSealer(new Uint8Array(32).fill(7));

/** The provider that answered; `ask.provider` must be the same for it to get its own back. */
export const chatUpstream: Origin = { provider: 'up-chat', dialect: 'openai-chat' };
export const messagesUpstream: Origin = { provider: 'up-messages', dialect: 'anthropic-messages' };

export function sealingFor(upstream: Origin): Sealing {
  return { sealer: testSealer, upstream };
}

/** A record as the gateway seals it for a messages client. */
export function sealed(record: JsonObject, origin: Origin = chatUpstream): string {
  return testSealer.seal({ v: 1, from: origin.dialect, by: origin.provider, ...record });
}
