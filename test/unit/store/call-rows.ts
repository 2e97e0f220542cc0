import { noPolicy } from '../../../src/core/policy.ts';
import type { CallRow, KeyRecord } from '../../../src/store/store.ts';

export const day = 24 * 60 * 60 * 1000;
/** 2026-03-01T00:00:00Z */
export const march = Date.UTC(2026, 2, 1);

export function keyRecord(id: string, change: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id,
    name: `key ${id}`,
    digest: id.padEnd(64, '0'),
    models: ['*'],
    endpoints: ['chat', 'messages'],
    previous: [],
    cidrs: [],
    tags: [],
    policy: noPolicy,
    shrink: true,
    version: 1,
    createdAt: march,
    ...change,
  };
}

export function callRow(id: string, change: Partial<CallRow> = {}): CallRow {
  return {
    id,
    startedAt: march,
    keyId: 'k1',
    endpoint: 'openai-chat',
    model: 'local/tiny',
    stream: false,
    outcome: 'ok',
    attempts: 1,
    attemptRows: [],
    tags: [],
    budgets: [],
    charged: { freshInputTokens: 10, outputTokens: 5 },
    usageSource: 'reported',
    totalMs: 12.5,
    ...change,
  };
}
