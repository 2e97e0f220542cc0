/** Calls with everything that a call can have. */
import type { Price } from '../../src/core/money.ts';
import type { CallRow } from '../../src/store/store.ts';
import { callRow, march } from '../unit/store/call-rows.ts';

export const price: Price = {
  rates: {
    input: 1_250_000,
    output: 10_000_000,
    cacheRead: 125_000,
    cacheWrite: 1_500_000,
    cacheWriteLong: 2_500_000,
    reasoning: 9_000_000,
  },
  tiers: [{ above: 200_000, rates: { input: 2_500_000, output: 15_000_000 } }],
  call: 1_000_000,
  webSearch: 10_000_000_000,
  perImage: 3_000_000,
  source: 'gateway.yaml:12',
};

/** A cost of this number of nanodollars. */
export function costing(total: number): Pick<CallRow, 'cost' | 'price'> {
  const none = { cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: 0 };
  return { cost: { ...none, total, input: total }, price };
}

export const fullCall: CallRow = callRow('c2', {
  startedAt: march + 1,
  team: 'red',
  tags: ['b', 'a', 'b'],
  user: 'ana',
  metadata: '{"trace":"ü"}',
  provider: 'openai',
  upstreamModel: 'gpt-5-mini',
  mode: 'translate',
  stream: true,
  outcome: 'failed',
  status: 502,
  error: 'upstream_invalid',
  failure: {
    fault: 'provider',
    reason: 'bad_answer',
    message: 'The answer is not whole.',
    limit: 'key:k1:requests',
  },
  attempts: 2,
  attemptRows: [
    {
      provider: 'anthropic',
      upstreamModel: 'claude',
      startedAt: march + 2,
      ms: 12.5,
      outcome: 'failed',
      error: 'timeout',
      failure: { fault: 'provider', message: 'No answer came.' },
      maybeBilled: true,
    },
    {
      provider: 'openai',
      upstreamModel: 'gpt-5-mini',
      startedAt: march + 20,
      ms: 3.25,
      status: 200,
      outcome: 'ok',
      reported: {
        freshInputTokens: 1,
        cacheReadTokens: 2,
        cacheWriteLongTokens: 3,
        imageInputTokens: 4,
      },
    },
  ],
  reported: { freshInputTokens: 1, cacheReadTokens: 2, audioOutputTokens: 0, webSearches: 2 },
  charged: {
    freshInputTokens: 1,
    cacheReadTokens: 2,
    cacheWriteTokens: 3,
    cacheWriteLongTokens: 2,
    outputTokens: 4,
    reasoningTokens: 5,
    audioInputTokens: 6,
    imageInputTokens: 7,
    videoInputTokens: 8,
    audioOutputTokens: 9,
    imageOutputTokens: 10,
    webSearches: 11,
    images: 12,
  },
  usageSource: 'estimated',
  cost: { total: 28, input: 1, cacheRead: 2, cacheWrite: 3, output: 4, reasoning: 5, call: 6 },
  cacheSaved: -7,
  price,
  budgets: [
    { counter: 'key:k1:month', window: '2026-03', endsAt: Date.UTC(2026, 3, 1) },
    { counter: 'team:red:ever', window: 'ever' },
  ],
  reservedNanodollars: 20,
  overrun: true,
  suspect: true,
  firstEventMs: 1.25,
  totalMs: 1000.5,
  notes: 'top_k: dropped',
});
