/**
 * Measures the ledger on SQLite: what a row costs, and how long questions take on many of them.
 * Usage: node bench/ledger.ts [rows, default 1000000] [folder, default a new one that is removed] [--write]
 * `--write` puts the figures into RESULTS.md.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SqliteEngine } from '../src/store/sqlite/engine.ts';
import { openForReading } from '../src/store/sqlite/database.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { CallRow, Store, UsageGrouping } from '../src/store/store.ts';
import { putSection } from './saved-sections.ts';
import { begin, callId, dayMs, days, end, fillCalls, madeCall, silent } from './many-rows.ts';

const { values: flags, positionals } = parseArgs({
  options: { write: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const rows = Number(positionals[0] ?? '1000000');
const given = positionals[1];
const folder = given ?? mkdtempSync(join(tmpdir(), 'gateway-ledger-'));
const path = join(folder, 'gateway.db');
const call = (n: number): CallRow => madeCall(n, rows);
const said: string[] = [];

function say(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(46)} ${value}\n`);
  said.push(`| ${what} | ${value} |`);
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** CPU time of the whole process: making the values, the way to the writer's thread, writing. */
async function measureStore(): Promise<void> {
  const store = await openSqliteStore({ path: join(folder, 'warm', 'gateway.db'), log: silent });
  const one = { keyId: 'one', team: 'red', tags: [], model: 'one', budgets: call(0).budgets };
  let made = 0;
  for (const [groups, change] of [
    ['one key', one],
    ['500 keys', {}],
  ] as const) {
    for (const size of [1, 25, 100, 500]) {
      const count = size === 1 ? 3000 : 30_000;
      const calls = Array.from({ length: count }, () => ({ ...call((made += 1)), ...change }));
      await store.calls.record(calls.splice(0, 500));
      const began = cpuUs();
      for (let i = 0; i < calls.length; i += size)
        await store.calls.record(calls.slice(i, i + size));
      const each = ((cpuUs() - began) / calls.length).toFixed(1);
      say(`CPU of a row, ${groups}, batches of ${size}`, `${each} µs`);
    }
  }
  await store.close();
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
    await time(`usage by ${by}, all`, () => store.calls.usage({ by, since: 0 }));
    await time(`usage by ${by}, 30 days`, () => store.calls.usage({ by, since: end - 30 * dayMs }));
  }
  const until = end - 5 * dayMs;
  await time('usage by hour, 7 days', () =>
    store.calls.usage({ by: 'hour', since: end - 7 * dayMs }),
  );
  await time('usage by key, two ragged ends', () =>
    store.calls.usage({ by: 'key', since: end - 60 * dayMs, until }),
  );
  await time('usage by day of one key', () =>
    store.calls.usage({ by: 'day', since: 0, filter: { key: 'key00007' } }),
  );
  await time('usage by model of one tag', () =>
    store.calls.usage({ by: 'model', since: 0, filter: { tag: 'project-7' } }),
  );
  await time('page of calls', () => store.calls.list({ limit: 50 }));
  await time('page of one key', () => store.calls.list({ limit: 50, key: 'key00007' }));
  await time('page of failed calls', () => store.calls.list({ limit: 50, outcome: 'failed' }));
  await time('page of a filter that nothing matches', () =>
    store.calls.list({ limit: 50, model: 'no such model' }),
  );
  await time('page in the middle', () =>
    store.calls.list({ limit: 50, before: { startedAt: begin + (days / 2) * dayMs, id: '' } }),
  );
  await time('one call', () => store.calls.find(callId(Math.floor(rows / 2))));
  await time('what is spent', () => store.calls.spent(end));
  await time('1,000 rows pruned', () =>
    store.calls.prune({ callsBefore: begin + dayMs, hoursBefore: 0 }, 1000),
  );
}

await measureStore();
if (statSync(path, { throwIfNoEntry: false }) === undefined) {
  say('filled, a row with making it', `${fillCalls(path, rows).toFixed(1)} µs`);
}
say('size of the file', `${(statSync(path).size / 1e6).toFixed(0)} MB`);
const opening = performance.now();
const store = await openSqliteStore({ path, log: silent });
say('opened', `${(performance.now() - opening).toFixed(0)} ms`);
await ask(store);
await store.close();
const reader = new SqliteEngine({ db: openForReading(path), path, now: () => 0, wall: Date.now });
const checking = performance.now();
reader.check();
say('all pages read (quick_check)', `${(performance.now() - checking).toFixed(0)} ms`);
reader.close();
if (given === undefined) rmSync(folder, { recursive: true, force: true });
if (flags.write) {
  const date = new Date().toISOString().slice(0, 10);
  const intro = `Written by \`node bench/ledger.ts ${rows} --write\` on ${date}: calls of ${days} days, 500 keys, 20 teams, 50 tags; each question four times. Budgets: a page of the admin plane in under 300 ms, sums over everything in under a second.`;
  putSection(
    'ledger',
    ['## Ledger', '', intro, '', '| what | measured |', '| --- | --- |', ...said].join('\n'),
  );
}
