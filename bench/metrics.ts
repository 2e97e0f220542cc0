/**
 * What counting costs: microseconds of a call in `CallMetrics`, and of a scrape. `node bench/metrics.ts`.
 * Nothing of it depends on a network, so that one process measures itself.
 */
import { CallMetrics } from '../src/observe/metrics/call-metrics.ts';
import { familyText } from '../src/observe/metrics/metrics.ts';
import type { CallRow } from '../src/store/calls.ts';

const rounds = 5;
const calls = 1_000_000;
const models = 50;
const keys = 150;

const rows = Array.from({ length: models * keys }, (_, i): CallRow => {
  const upstreamModel = `model-${i % models}`;
  const startedAt = 1_795_000_000_000 + i;
  const provider = `provider-${i % 5}`;
  return {
    id: `req_${String(i).padStart(24, '0')}`,
    startedAt,
    keyId: `key_${i % keys}`,
    team: `team-${i % 10}`,
    tags: [],
    endpoint: i % 2 === 0 ? 'openai-chat' : 'anthropic-messages',
    model: `${provider}/${upstreamModel}`,
    provider,
    upstreamModel,
    mode: 'relay',
    stream: i % 3 === 0,
    outcome: 'ok',
    status: 200,
    attempts: 1,
    attemptRows: [{ provider, upstreamModel, startedAt, ms: 100, status: 200, outcome: 'ok' }],
    charged: { freshInputTokens: 1000, outputTokens: 100 },
    usageSource: 'reported',
    cost: { total: 9, input: 4, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0, call: 0 },
    budgets: [],
    firstEventMs: 20,
    totalMs: 100,
  };
});

const metrics = new CallMetrics({ isDeclared: () => false });

function counted(): number {
  const began = process.cpuUsage();
  for (let i = 0; i < calls; i += 1) {
    const row = rows[i % rows.length];
    if (row !== undefined) metrics.called(row);
  }
  const { user, system } = process.cpuUsage(began);
  return (user + system) / calls;
}

function scraped(): { readonly ms: number; readonly longest: number; readonly lines: number } {
  const began = performance.now();
  let longest = 0;
  let lines = 0;
  for (const family of metrics.families()) {
    const turn = performance.now();
    lines += familyText(family, 'openmetrics').split('\n').length;
    longest = Math.max(longest, performance.now() - turn);
  }
  return { ms: performance.now() - began, longest, lines };
}

const costs = Array.from({ length: rounds }, counted).sort((a, b) => a - b);
const scrapes = Array.from({ length: rounds }, scraped).sort((a, b) => a.ms - b.ms);
const middle = Math.floor(rounds / 2);
const scrape = scrapes[middle];
console.log(`a call: ${(costs[middle] ?? 0).toFixed(3)} us of CPU (median of ${rounds})`);
console.log(
  `a scrape: ${scrape?.ms.toFixed(1)} ms for ${scrape?.lines} lines, its longest turn ${scrape?.longest.toFixed(1)} ms`,
);
