/** Many rows and many keys on SQLite, for what is measured with them. */
import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { Price } from '../src/core/money.ts';
import type { KeyRecord } from '../src/store/records.ts';
import { SqliteEngine } from '../src/store/sqlite/engine.ts';
import { callValues } from '../src/store/call-rows.ts';
import { openForWriting } from '../src/store/sqlite/database.ts';
import { valuesOf } from '../src/store/columns.ts';
import { keyColumns, keyTable } from '../src/store/key-rows.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { CallRow } from '../src/store/store.ts';

const batch = 500;
const keys = 500;
const models = 3;
/** Number of days over which the calls are spread evenly. */
export const days = 90;
export const dayMs = 86_400_000;
/** When the last one began. */
export const end = Date.UTC(2026, 10, 21, 13, 37, 12, 345);
export const begin = end - days * dayMs;
export const silent = { debug() {}, info() {}, warn() {}, error() {} };

const prices: readonly Price[] = Array.from({ length: models }, (_, i) => ({
  rates: { input: 1_000_000 + i, output: 4_000_000, cacheRead: 100_000 },
  tiers: [],
  source: `genai-prices 0.1.8 openai/model-${i}`,
}));

/** In the order of time, as the gateway makes them. */
export function callId(n: number): string {
  const mixed = (Math.imul(n + 1, 2_654_435_761) >>> 0).toString(36).padStart(7, '0');
  return `req_${String(n).padStart(9, '0')}${mixed}${mixed}`;
}

/** The nth of `rows` calls. */
export function madeCall(n: number, rows: number): CallRow {
  const startedAt = begin + Math.floor((n / rows) * days * dayMs);
  const key = (n * 7919) % keys;
  const model = (n * 31) % models;
  const price = prices[model];
  const provider = 'openai';
  const counts = { freshInputTokens: 900 + (n % 100), cacheReadTokens: 50, outputTokens: n % 300 };
  const total = counts.freshInputTokens * 1000 + counts.outputTokens * 4000;
  return {
    id: callId(n),
    startedAt,
    keyId: `key${String(key).padStart(5, '0')}`,
    team: `team-${key % 20}`,
    tags: [`project-${key % 50}`],
    endpoint: 'openai-chat',
    model: `openai/model-${model}`,
    provider,
    upstreamModel: `model-${model}`,
    mode: 'relay',
    stream: n % 2 === 0,
    outcome: n % 50 === 0 ? 'failed' : 'ok',
    status: 200,
    attempts: 1,
    attemptRows: [
      {
        provider,
        upstreamModel: `model-${model}`,
        startedAt,
        ms: 812.5,
        status: 200,
        outcome: 'ok',
        reported: counts,
      },
    ],
    reported: counts,
    charged: counts,
    usageSource: 'reported',
    cost: {
      total,
      input: total,
      cacheRead: 0,
      cacheWrite: 0,
      output: 0,
      reasoning: 0,
      call: 0,
    },
    ...(price === undefined ? {} : { price }),
    budgets: [{ counter: `key:${key}:month`, window: '2026-11', endsAt: end + dayMs }],
    reservedNanodollars: total * 2,
    firstEventMs: 120.5,
    totalMs: 815.25,
  };
}

/** Writes `rows` calls into a new ledger. @returns how long a row took, with making it. */
export function fillCalls(path: string, rows: number): number {
  const engine = new SqliteEngine({
    db: openForWriting({ path, mayCreate: true, durability: 'normal' }),
    path,
    now: () => performance.now(),
    wall: Date.now,
  });
  const began = performance.now();
  for (let i = 0; i < rows; i += batch) {
    const values = Array.from({ length: Math.min(batch, rows - i) }, (_, j) =>
      callValues(madeCall(i + j, rows)),
    );
    engine.calls.record(values);
    const written = i + batch;
    if (written % 1_000_000 === 0) process.stderr.write(`${written} rows\n`);
  }
  const us = ((performance.now() - began) * 1000) / rows;
  engine.close();
  return us;
}

const firstKeyAt = Date.UTC(2026, 0, 1);

export function madeKey(n: number): KeyRecord {
  const id = (n + 60_466_176).toString(36).padStart(8, '0');
  return {
    id,
    name: `key ${n}`,
    digest: createHash('sha256').update(id).digest('hex'),
    previous: [],
    owner: `person-${n % 5000}@example.com`,
    models: ['openai/*', 'anthropic/*'],
    endpoints: ['chat', 'messages', 'count_tokens', 'models'],
    cidrs: [],
    team: `team-${n % 500}`,
    tags: [`project-${n % 2000}`],
    policy: {
      limits: [{ kind: 'requests', amount: 60 }],
      budgets: [{ nanodollars: 20_000_000_000, per: 'month', timeZone: 'UTC' }],
    },
    shrink: true,
    createdAt: firstKeyAt + n,
    version: 1,
  };
}

/** Adds a number of keys to a store, which is made where it is missing. */
export async function fillKeys(path: string, count: number): Promise<void> {
  const store = await openSqliteStore({ path, log: silent });
  await store.close();
  const sql = new DatabaseSync(path);
  const columns = ['stamp', 'id', ...keyColumns];
  const marks = columns.map(() => '?').join(', ');
  const add = sql.prepare(`INSERT INTO keys (${columns.join(', ')}) VALUES (${marks})`);
  sql.exec('BEGIN');
  for (let n = 0; n < count; n++) {
    const record = madeKey(n);
    add.run(n + 1, record.id, ...valuesOf(keyTable, record));
  }
  sql.exec('COMMIT');
  sql.close();
}
