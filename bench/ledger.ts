/**
 * Measures the ledger on SQLite: what a row costs, and how long questions take on many of them.
 * Usage: node bench/ledger.ts [rows, default 1000000] [folder, default a new one that is removed]
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Price } from '../src/core/price.ts';
import { SqliteBook } from '../src/store/sqlite-book.ts';
import { callValues } from '../src/store/sqlite-call-rows.ts';
import { openForReading, openForWriting } from '../src/store/sqlite-file.ts';
import { openSqliteStore } from '../src/store/sqlite.ts';
import type { CallRow, Store, UsageGrouping } from '../src/store/store.ts';

const rows = Number(process.argv[2] ?? '1000000');
const folder = process.argv[3] ?? mkdtempSync(join(tmpdir(), 'gateway-ledger-'));
const path = join(folder, 'gateway.db');
const batch = 500;
const keys = 500;
const models = 3;
const days = 90;
const dayMs = 86_400_000;
const end = Date.UTC(2026, 10, 21, 13, 37, 12, 345);
const begin = end - days * dayMs;

const prices: readonly Price[] = Array.from({ length: models }, (_, i) => ({
  rates: { input: 1_000_000 + i, output: 4_000_000, cacheRead: 100_000 },
  tiers: [],
  source: `genai-prices 0.1.8 openai/model-${i}`,
}));

/** In the order of time, as the gateway makes them. */
function id(n: number): string {
  const mixed = (Math.imul(n + 1, 2_654_435_761) >>> 0).toString(36).padStart(7, '0');
  return `req_${String(n).padStart(9, '0')}${mixed}${mixed}`;
}

function call(n: number): CallRow {
  const startedAt = begin + Math.floor((n / rows) * days * dayMs);
  const key = (n * 7919) % keys;
  const model = (n * 31) % models;
  const price = prices[model];
  const provider = 'openai';
  const counts = { freshInputTokens: 900 + (n % 100), cacheReadTokens: 50, outputTokens: n % 300 };
  const total = counts.freshInputTokens * 1000 + counts.outputTokens * 4000;
  return {
    id: id(n),
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

function say(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(46)} ${value}\n`);
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** CPU time of the whole process: making the values, the way to the writer's thread, writing. */
async function measureStore(): Promise<void> {
  const store = await openSqliteStore({ path: join(folder, 'warm', 'gateway.db'), log });
  const one = { keyId: 'one', team: 'red', tags: [], model: 'one', budgets: call(0).budgets };
  let made = 0;
  for (const [groups, change] of [
    ['one key', one],
    ['500 keys', {}],
  ] as const) {
    for (const size of [1, 25, 100, 500]) {
      const count = size === 1 ? 3000 : 30_000;
      const calls = Array.from({ length: count }, () => ({ ...call((made += 1)), ...change }));
      await store.recordCalls(calls.splice(0, 500));
      const began = cpuUs();
      for (let i = 0; i < calls.length; i += size)
        await store.recordCalls(calls.slice(i, i + size));
      const each = ((cpuUs() - began) / calls.length).toFixed(1);
      say(`CPU of a row, ${groups}, batches of ${size}`, `${each} µs`);
    }
  }
  await store.close();
}

const log = { debug() {}, info() {}, warn() {}, error() {} };

function fill(): void {
  const book = new SqliteBook({
    db: openForWriting({ path, mayCreate: true, durability: 'normal' }),
    path,
    now: () => performance.now(),
  });
  const began = performance.now();
  let last = began;
  for (let i = 0; i < rows; i += batch) {
    const values = Array.from({ length: Math.min(batch, rows - i) }, (_, j) =>
      callValues(call(i + j)),
    );
    book.recordCalls(values);
    if ((i / batch) % 2000 !== 1999) continue;
    const now = performance.now();
    process.stderr.write(`${i + batch} rows, ${((now - last) / batch / 2).toFixed(2)} µs a row\n`);
    last = now;
  }
  say(
    'filled, a row with making it',
    `${(((performance.now() - began) * 1000) / rows).toFixed(1)} µs`,
  );
  book.close();
}

async function time(what: string, work: () => Promise<unknown>): Promise<void> {
  const taken: number[] = [];
  for (let i = 0; i < 4; i++) {
    const began = performance.now();
    await work();
    taken.push(performance.now() - began);
  }
  say(what, `${taken.map((ms) => ms.toFixed(0)).join(', ')} ms`);
}

async function ask(store: Store): Promise<void> {
  const groupings: readonly UsageGrouping[] = ['key', 'model', 'provider', 'team', 'tag', 'day'];
  for (const by of groupings) {
    await time(`usage by ${by}, all`, () => store.usage({ by, since: 0 }));
    await time(`usage by ${by}, 30 days`, () => store.usage({ by, since: end - 30 * dayMs }));
  }
  const until = end - 5 * dayMs;
  await time('usage by hour, 7 days', () => store.usage({ by: 'hour', since: end - 7 * dayMs }));
  await time('usage by key, two ragged ends', () =>
    store.usage({ by: 'key', since: end - 60 * dayMs, until }),
  );
  await time('usage by day of one key', () =>
    store.usage({ by: 'day', since: 0, filter: { key: 'key00007' } }),
  );
  await time('usage by model of one tag', () =>
    store.usage({ by: 'model', since: 0, filter: { tag: 'project-7' } }),
  );
  await time('page of calls', () => store.listCalls({ limit: 50 }));
  await time('page of one key', () => store.listCalls({ limit: 50, key: 'key00007' }));
  await time('page of failed calls', () => store.listCalls({ limit: 50, outcome: 'failed' }));
  await time('page of a filter that nothing matches', () =>
    store.listCalls({ limit: 50, model: 'no such model' }),
  );
  await time('page in the middle', () =>
    store.listCalls({ limit: 50, before: { startedAt: begin + (days / 2) * dayMs, id: '' } }),
  );
  await time('one call', () => store.findCall(id(Math.floor(rows / 2))));
  await time('what is spent', () => store.spent(end));
  await time('1,000 rows pruned', () =>
    store.prune({ callsBefore: begin + dayMs, hoursBefore: 0 }, 1000),
  );
}

await measureStore();
if (process.argv[3] === undefined || statSync(path, { throwIfNoEntry: false }) === undefined)
  fill();
say('size of the file', `${(statSync(path).size / 1e6).toFixed(0)} MB`);
const opening = performance.now();
const store = await openSqliteStore({ path, log });
say('opened', `${(performance.now() - opening).toFixed(0)} ms`);
await ask(store);
await store.close();
const reader = new SqliteBook({ db: openForReading(path), path, now: () => 0 });
const checking = performance.now();
reader.check();
say('all pages read (quick_check)', `${(performance.now() - checking).toFixed(0)} ms`);
reader.close();
if (process.argv[3] === undefined) rmSync(folder, { recursive: true, force: true });
