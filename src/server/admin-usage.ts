/** `/api/usage` and `/api/calls`: the ledger, summed and row by row. */
import { z } from 'zod';
import type { KeyRing } from '../access/keys.ts';
import type { JsonObject } from '../core/conversation.ts';
import type { Clock } from '../core/runtime.ts';
import type { CallRow, CountedUsage, Store, UsageGrouping, UsageRow } from '../store/store.ts';
import { readInput, type AdminAnswer, type AdminRoute } from './admin-route.ts';
import { dateHint, dateText, readDate, readSpan, spanHint } from './period.ts';

export interface UsageRouteParts {
  readonly store: Store;
  readonly keys: KeyRing;
  readonly clock: Clock;
  /** Awaited before the ledger is read, so that calls that are over are in it. */
  readonly flushLedger?: () => Promise<void>;
}

const groupings = ['key', 'model', 'provider', 'team', 'day'] as const;

const usageQuery = z.strictObject({
  by: z.enum(groupings, `must be one of ${groupings.join(', ')}`).default('key'),
  since: z.string().default('30d'),
});

const callsQuery = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(50),
});

export function usageRoutes(parts: UsageRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/usage',
      run: ({ query }) => usage(parts, readInput(usageQuery, query)),
    },
    {
      method: 'GET',
      path: '/api/calls',
      run: async ({ query }) => {
        const { limit } = readInput(callsQuery, query);
        await settled(parts);
        const { calls } = await parts.store.listCalls({ limit });
        return { status: 200, body: { calls: calls.map(callJson) } };
      },
    },
  ];
}

async function usage(
  parts: UsageRouteParts,
  wanted: z.output<typeof usageQuery>,
): Promise<AdminAnswer> {
  const { by } = wanted;
  const since = readSince(wanted.since, parts.clock);
  await settled(parts);
  const rows = await parts.store.usage({ by, since });
  const body = {
    by,
    since: dateText(since),
    rows: rows.map((row) => ({ ...groupJson(row, by, parts.keys), ...sumsJson(row) })),
  };
  return { status: 200, body };
}

/** A store that is down must not hide what it has: the query itself tells. */
async function settled({ flushLedger }: UsageRouteParts): Promise<void> {
  await flushLedger?.().catch(() => undefined);
}

function readSince(text: string, clock: Clock): number {
  const span = readSpan(text);
  if (span !== undefined) return clock.wall() - span;
  const valid = z.strictObject({
    since: z.number(`${spanHint}, or ${dateHint}`),
  });
  return readInput(valid, { since: readDate(text) }).since;
}

/** The grouping column; a key's name goes with its id. `null` is "has none". */
function groupJson(row: UsageRow, by: UsageGrouping, keys: KeyRing): JsonObject {
  const group = row.group === '' ? null : row.group;
  if (by !== 'key') return { [by]: group };
  return { key: group, key_name: keys.find(row.group)?.record.name ?? null };
}

/** `input_tokens` holds the cached ones too. The cost is unknown until there are prices, not 0. */
function sumsJson(row: UsageRow): JsonObject {
  return {
    calls: row.calls,
    failed: row.failed,
    input_tokens: row.inputTokens,
    cache_read_tokens: row.cacheReadTokens,
    cache_write_tokens: row.cacheWriteTokens,
    output_tokens: row.outputTokens,
    cost_usd: null,
  };
}

function callJson(row: CallRow): JsonObject {
  return {
    id: row.id,
    started_at: dateText(row.startedAt),
    key: row.keyId,
    team: row.team ?? null,
    endpoint: row.endpoint,
    model: row.model,
    provider: row.provider ?? null,
    upstream_model: row.upstreamModel ?? null,
    mode: row.mode ?? null,
    stream: row.stream,
    outcome: row.outcome,
    status: row.status ?? null,
    error: row.error ?? null,
    attempts: row.attempts,
    reported: row.reported === undefined ? null : countsJson(row.reported),
    charged: countsJson(row.charged),
    usage_source: row.usageSource,
    first_event_ms: row.firstEventMs ?? null,
    total_ms: row.totalMs,
    notes: row.notes ?? null,
  };
}

function countsJson(counts: CountedUsage): JsonObject {
  return {
    fresh_input_tokens: counts.freshInputTokens ?? null,
    cache_read_tokens: counts.cacheReadTokens ?? null,
    cache_write_tokens: counts.cacheWriteTokens ?? null,
    output_tokens: counts.outputTokens ?? null,
    reasoning_tokens: counts.reasoningTokens ?? null,
  };
}
