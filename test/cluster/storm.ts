/** Many clients spend one budget on several gateways; what may be spent is counted by who was asked. */
import assert from 'node:assert/strict';
import type { Reply } from '../support/http.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import type { ScriptedUpstream } from '../upstream/scripted.ts';
import type { Instance } from './instance.ts';

/** Input is free; output costs 10 $ a million tokens. */
export const stormPrices = { 'up/*': { input: 0, output: 10 } };
export const nanodollarsOfToken = 10_000;
export const dollar = 1_000_000_000;
const maxTokens = 500;

export interface Spender {
  /** Output tokens of all answers that were begun. */
  readonly tokens: number;
}

/** A model that answers with as many tokens as chance wants, never more than it is asked for. */
export function spender(upstream: ScriptedUpstream): Spender {
  const spent = { tokens: 0 };
  upstream.script('spender', ({ json }) => {
    const cap = Number(json['max_tokens'] ?? json['max_completion_tokens'] ?? Number.NaN);
    assert.ok(cap >= 1 && cap <= maxTokens, `the gateway asks for ${cap} tokens at most`);
    const tokens = 1 + Math.floor(Math.random() * cap);
    spent.tokens += tokens;
    const usage = { prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens };
    return { body: JSON.stringify(chatDocument({ text: 'x', usage })) };
  });
  return spent;
}

export interface Storm {
  readonly instances: readonly Instance[];
  readonly key: string;
  readonly clients: number;
  /** Calls of each client. */
  readonly calls: number;
}

export interface StormCount {
  answered: number;
  /** For want of money, by code. */
  refused: number;
  /** 503: the remaining budget was unknown. */
  unavailable: number;
}

/** Sends all calls; every answer is one that a gateway may give. */
export async function storm({ instances, key, clients, calls }: Storm): Promise<StormCount> {
  const count: StormCount = { answered: 0, refused: 0, unavailable: 0 };
  const client = async (index: number): Promise<void> => {
    const instance = instances[index % instances.length];
    assert.ok(instance !== undefined);
    for (let i = 0; i < calls; i += 1) {
      const body = { model: 'up/spender', max_tokens: maxTokens };
      note(count, await instance.chat(key, body));
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, i) => client(i)));
  return count;
}

function note(count: StormCount, { status, text }: Reply): void {
  if (status === 200) count.answered += 1;
  else if (status === 503) count.unavailable += 1;
  else {
    assert.equal(status, 429, text);
    assert.match(text, /insufficient_quota/);
    count.refused += 1;
  }
}

/**
 * Spends what is left until `isSpent`: half of what was asked for last where that is refused, down to one
 * token. What calls held is given back behind their answers, so that a refusal alone is no end.
 */
export async function spendTheRest(
  { instances, key }: Pick<Storm, 'instances' | 'key'>,
  isSpent: () => Promise<boolean>,
): Promise<void> {
  let turn = 0;
  let most = maxTokens;
  await until(
    async () => {
      const instance = instances[(turn += 1) % instances.length];
      const reply = await instance?.chat(key, { model: 'up/spender', max_tokens: most });
      // 503: where it is counted is being moved.
      if (reply?.status === 200 || reply?.status === 503) return false;
      assert.equal(reply?.status, 429, reply?.text);
      most = most > 1 ? Math.ceil(most / 2) : maxTokens;
      return isSpent();
    },
    'the last cent is spent',
    240_000,
  );
}
