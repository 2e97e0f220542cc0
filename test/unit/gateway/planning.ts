/** What `plan` asks of a call, for tests that have none. */
import type { JsonObject } from '../../../src/json/value.ts';
import type { Route } from '../../../src/core/provider.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { TargetHealth } from '../../../src/gateway/targets/health.ts';
import { type Choosing, type PlanDeps, Routing } from '../../../src/gateway/targets/routing.ts';

export interface CallFacts {
  readonly headers?: { readonly [name: string]: string };
  readonly body?: JsonObject;
  readonly keyId?: string;
  readonly stream?: boolean;
}

export function callOf(route: Route, { headers, body, keyId, stream }: CallFacts = {}): Choosing {
  const value = body ?? { messages: [{ role: 'user', content: 'Hello' }] };
  return {
    route,
    dialect: openaiChatClient,
    head: { stream: stream ?? true },
    caller: { keyId: keyId ?? 'key_1' },
    source: { value, skeleton: value },
    header: (name) => headers?.[name],
  };
}

const quiet = (): void => undefined;
export const quietLog = { debug: quiet, info: quiet, warn: quiet, error: quiet };
export const stillClock = { now: (): number => 0, wall: (): number => 0 };

export function means(
  health = new TargetHealth({ clock: stillClock, log: quietLog }),
  random: () => number = () => 0,
): PlanDeps {
  const routing = new Routing({ clock: stillClock, random, priceOf: () => undefined });
  return { health, random, routing };
}
