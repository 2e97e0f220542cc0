import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it, type TestContext } from 'node:test';
import { noCost } from '../../../src/access/cost.ts';
import { Ledger, type LedgerDeps } from '../../../src/access/ledger.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { altered, memoryStore } from '../../support/memory-store.ts';
import type { CallRow } from '../../../src/store/calls.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { callRow } from '../store/call-rows.ts';
import { HeldClock, silentLog } from './fakes.ts';

const folder = temporaryFolder('ledger');

/** Both are closed behind the test, however it ends: an open store keeps the process alive. */
async function ledgerOn(t: TestContext, name: string, options: Partial<LedgerDeps> = {}) {
  const path = join(folder, name, 'gateway.db');
  const store = await openSqliteStore({ path, log: silentLog });
  const clock = new HeldClock();
  const ledger = new Ledger({ store, clock, log: silentLog, ...options });
  t.after(async () => {
    await ledger.close();
    await store.close();
  });
  return { path, store, clock, ledger };
}

it('F8 10,000 rows go in, 10,000 are there', async (t) => {
  const { store, ledger } = await ledgerOn(t, 'many');
  for (let i = 0; i < 10_000; i++) ledger.record(callRow(`c${i}`));
  assert.equal(ledger.queued, 10_000);
  await ledger.flush();
  assert.equal(ledger.queued, 0);
  assert.equal(ledger.healthy(), true);
  assert.equal((await store.calls.usage({ by: 'key', since: 0 }))[0]?.calls, 10_000);
});

it('writes by itself, without a flush', async () => {
  const seen = new Promise<number>((resolve) => {
    const inner = memoryStore();
    const record: Store['calls']['record'] = async (rows) => {
      await inner.calls.record(rows);
      resolve(rows.length);
    };
    const store = altered(inner, { calls: { record } });
    const ledger = new Ledger({ store, clock: new HeldClock(), log: silentLog });
    ledger.record(callRow('c1'));
    ledger.record(callRow('c2'));
  });
  assert.equal(await seen, 2);
});

it('F84 a held database: unhealthy at 10,000 rows or after 5 s, nothing is lost', async (t) => {
  const held: DatabaseSync[] = [];
  // Before the ledger is closed, which writes what waits.
  t.after(() => {
    for (const each of held) if (each.isOpen) each.close();
  });
  const { path, store, clock, ledger } = await ledgerOn(t, 'held');
  const other = new DatabaseSync(path);
  held.push(other);
  other.exec('BEGIN IMMEDIATE');
  ledger.record(callRow('first'));
  const flushed = ledger.flush();
  assert.equal(ledger.healthy(), true);
  clock.time += 5000;
  assert.equal(ledger.healthy(), false);
  // It hangs without an error.
  assert.equal(ledger.failure, 'no answer for 5 s');
  clock.time -= 1;
  assert.equal(ledger.healthy(), true);
  assert.equal(ledger.failure, undefined);
  for (let i = 1; i < 10_000; i++) ledger.record(callRow(`c${i}`));
  assert.equal(ledger.healthy(), false);
  other.exec('ROLLBACK');
  other.close();
  await flushed;
  await ledger.flush();
  assert.equal(ledger.healthy(), true);
  assert.equal((await store.calls.usage({ by: 'key', since: 0 }))[0]?.calls, 10_000);
});

it('F85 a store that refuses keeps the rows queued and gets them when it returns', async () => {
  let broken = true;
  const inner = memoryStore();
  const record: Store['calls']['record'] = async (rows) => {
    if (broken) throw new Error('disk full');
    await inner.calls.record(rows);
  };
  const store = altered(inner, { calls: { record } });
  const clock = new HeldClock();
  const ledger = new Ledger({ store, clock, log: silentLog });
  ledger.record(callRow('c1'));
  await assert.rejects(ledger.flush(), /disk full/);
  ledger.record(callRow('c2'));
  await assert.rejects(ledger.flush(), /disk full/);
  clock.time += 6000;
  assert.equal(ledger.healthy(), false);
  assert.equal(ledger.queued, 2);
  broken = false;
  await ledger.flush();
  assert.equal(ledger.healthy(), true);
  assert.deepEqual(
    (await store.calls.list({ limit: 5 })).calls.map((row) => row.id),
    ['c2', 'c1'],
  );
  await ledger.close();
});

it('F84 a row that the store refuses for what stands in it is laid aside, and holds up no other', async (t) => {
  const refusedFile = join(folder, 'refused', 'refused-calls.jsonl');
  const lines: unknown[] = [];
  const log: Log = {
    ...silentLog,
    error: (event, fields) => lines.push([event, fields?.['call']]),
  };
  const { store, ledger } = await ledgerOn(t, 'refused', { log, refusedFile });
  for (let i = 0; i < 20; i++) ledger.record(callRow(`c${i}`));
  ledger.record(callRow('poison', { startedAt: Number.NaN }));
  for (let i = 20; i < 40; i++) ledger.record(callRow(`c${i}`));
  await ledger.flush();
  assert.equal(ledger.queued, 0);
  assert.equal(ledger.healthy(), true);
  assert.equal((await store.calls.usage({ by: 'key', since: 0 }))[0]?.calls, 40);
  assert.deepEqual(lines, [['ledger_row_refused', 'poison']]);
  assert.match(readFileSync(refusedFile, 'utf8'), /^\{"schema":\d+,"call":\["poison",.*\]\}\n$/);
  assert.equal(statSync(refusedFile).mode & 0o777, 0o600);
});

it('L4 close ends in bounded time and reports what it could not write', async () => {
  const lines: (readonly [string, unknown])[] = [];
  const log: Log = {
    ...silentLog,
    error: (event, fields) => lines.push([event, fields?.['rows']]),
  };
  const store = memoryStore();
  const ledger = new Ledger({ store, clock: new HeldClock(), log });
  await store.close();
  ledger.record(callRow('c1'));
  assert.equal(ledger.failure, undefined);
  await assert.rejects(
    ledger.close(),
    /^StoreError: 1 finished call is not in the ledger: [^.]+\. Each is in the log/,
  );
  // For people who see that the gateway is not ready, and ask why.
  assert.match(String(ledger.failure), /closed/);
  ledger.record(callRow('c2'));
  assert.deepEqual(lines, [
    ['ledger_write_failed', 1],
    ['ledger_rows_lost', 1],
    ['ledger_row_lost', undefined],
    ['ledger_rows_lost', 1],
  ]);
});

it('L4 the sums of what close could not write leave a cost out that is not known', async () => {
  const sums: object[] = [];
  const log: Log = {
    ...silentLog,
    error: (event, { tokens, cost_usd, unpriced_calls } = {}) => {
      if (event === 'ledger_rows_lost') sums.push({ tokens, cost_usd, unpriced_calls });
    },
  };
  const charged = { outputTokens: 7 };
  const priced = callRow('c1', { charged, cost: { ...noCost, total: 2_000_000_000 } });
  const { cost: _, ...unpriced } = callRow('c2', { charged });
  for (const rows of [[priced], [priced, unpriced], [unpriced]]) {
    const store = memoryStore();
    const ledger = new Ledger({ store, clock: new HeldClock(), log });
    await store.close();
    for (const row of rows) ledger.record(row);
    await assert.rejects(ledger.close());
  }
  assert.deepEqual(sums, [
    { tokens: 7, cost_usd: 2, unpriced_calls: undefined },
    { tokens: 14, cost_usd: 2, unpriced_calls: 1 },
    { tokens: 7, cost_usd: undefined, unpriced_calls: 1 },
  ]);
});

it('a giant model name is cut before it is kept', async () => {
  const store = memoryStore();
  const ledger = new Ledger({ store, clock: new HeldClock(), log: silentLog });
  ledger.record(callRow('c1', { model: 'm'.repeat(1_000_000) }));
  await ledger.close();
  assert.equal((await store.calls.list({ limit: 1 })).calls[0]?.model.length, 512);
});

it('F81 a call is noted by itself once it runs for 10 ms, and never when it is over by then', async () => {
  const clock = new HeldClock();
  const { promise: noted, resolve } = Promise.withResolvers<readonly string[]>();
  const recorded: string[] = [];
  const inner = memoryStore();
  const store = altered(inner, {
    calls: {
      async record(rows) {
        await inner.calls.record(rows);
        recorded.push(...rows.map(({ id }) => id));
        clock.time += 5;
      },
      open(calls) {
        resolve(calls.map(({ row }) => row.id));
        return inner.calls.open(calls);
      },
    },
  });
  const ledger = new Ledger({ store, clock, log: silentLog });
  ledger.running('old', () => callRow('old'));
  clock.time += 9;
  ledger.running('soon over', () => assert.fail('nobody needs the row'));
  ledger.record(callRow('first'));
  ledger.record(callRow('soon over'));
  ledger.running('young', () => assert.fail('it is too young'));
  assert.deepEqual(await noted, ['old']);
  assert.deepEqual(recorded, ['first', 'soon over']);
  ledger.record(callRow('young'));
  await ledger.close();
});

it('F81 a running call is noted, refreshed, and gone with its final row', async (t) => {
  const { store, clock, ledger } = await ledgerOn(t, 'running');
  const noted = (output: number) => (): CallRow =>
    callRow('c1', {
      outcome: 'failed',
      error: 'interrupted',
      charged: { freshInputTokens: 10, outputTokens: output },
    });
  ledger.running('c1', noted(1));
  ledger.running('c1', noted(2));
  ledger.record(callRow('c2'));
  await ledger.flush();
  ledger.running('c1', noted(3));
  ledger.record(callRow('c3'));
  await ledger.flush();
  clock.time += 1;
  // Over before it was written: it is not noted at all.
  ledger.running('c4', () => assert.fail('nobody needs the row'));
  ledger.record(callRow('c4'));
  await ledger.flush();
  const [orphan, ...others] = await store.calls.settleOrphans(Number.POSITIVE_INFINITY);
  assert.equal(orphan?.id, 'c1');
  assert.equal(orphan.charged.outputTokens, 3);
  assert.deepEqual(others, []);
  // A last word that comes behind the settlement changes nothing.
  ledger.record(callRow('c1'));
  await ledger.close();
  assert.equal((await store.calls.find('c1'))?.error, 'interrupted');
});

/** A store whose writes fail until they are allowed, and a ledger on timers that the test advances. */
function failingLedger(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const inner = memoryStore();
  const batches: number[] = [];
  const state = { broken: true, tries: 0 };
  const record: Store['calls']['record'] = async (rows) => {
    state.tries += 1;
    if (state.broken) throw new Error('disk full');
    batches.push(rows.length);
    await inner.calls.record(rows);
  };
  const store = altered(inner, { calls: { record } });
  const clock = new HeldClock();
  const ledger = new Ledger({ store, clock, log: silentLog });
  const advance = async (ms: number): Promise<void> => {
    clock.time += ms;
    t.mock.timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ledger, state, batches, advance };
}

it('F85 a failed write is tried again after 100 ms, then after twice as long, at most after a second', async (t) => {
  const { ledger, state, batches, advance } = failingLedger(t);
  ledger.record(callRow('c1'));
  await advance(19);
  assert.equal(state.tries, 0);
  await advance(1);
  assert.equal(state.tries, 1);
  for (const [i, wait] of [100, 200, 400, 800, 1000, 1000].entries()) {
    await advance(wait - 1);
    assert.equal(state.tries, i + 1, `${wait} ms are not over`);
    await advance(1);
    assert.equal(state.tries, i + 2, `after ${wait} ms`);
  }
  assert.deepEqual([ledger.waitMs, ledger.queued], [3500, 1]);
  assert.deepEqual(ledger.counts, { saved: 0, failures: 7, refused: 0 });
  state.broken = false;
  await advance(1000);
  assert.deepEqual([ledger.waitMs, ledger.queued, batches], [0, 0, [1]]);
  assert.deepEqual(ledger.counts, { saved: 1, failures: 7, refused: 0 });
  // The next row waits as usual, and the next failure begins again.
  ledger.record(callRow('c2'));
  await advance(20);
  assert.deepEqual(batches, [1, 1]);
  state.broken = true;
  ledger.record(callRow('c3'));
  await advance(20);
  state.broken = false;
  await advance(99);
  assert.equal(ledger.queued, 1);
  await advance(1);
  assert.equal(ledger.queued, 0);
});

it('F8 rows are written 500 at a time, and without a pause where more are waiting', async (t) => {
  const { ledger, state, batches, advance } = failingLedger(t);
  state.broken = false;
  for (let i = 0; i < 1001; i++) ledger.record(callRow(`c${i}`));
  await advance(20);
  await advance(0);
  assert.deepEqual(batches, [500, 500]);
  await advance(19);
  assert.equal(ledger.queued, 1);
  await advance(1);
  assert.deepEqual([batches, ledger.queued], [[500, 500, 1], 0]);
});

it('F84 without a file for rows that the store refuses they stay, and calls are refused', async () => {
  const clock = new HeldClock();
  const ledger = new Ledger({ store: memoryStore(), clock, log: silentLog });
  ledger.record(callRow('poison', { startedAt: Number.NaN }));
  await assert.rejects(ledger.flush(), { name: 'StoreError' });
  clock.time += 4999;
  assert.deepEqual([ledger.queued, ledger.healthy()], [1, true]);
  clock.time += 1;
  assert.equal(ledger.healthy(), false);
  await assert.rejects(ledger.close(), /1 finished call is not in the ledger/);
});

it('F81 Q3 a call that another gateway has settled is reported, so that it is cut', async () => {
  const inner = memoryStore();
  const store = altered(inner, { calls: { open: async () => ['taken'] } });
  const ledger = new Ledger({ store, clock: new HeldClock(), log: silentLog });
  const settled: (readonly string[])[] = [];
  ledger.onSettled((ids) => settled.push([...ids]));
  ledger.running('taken', () => callRow('taken'));
  ledger.running('other', () => callRow('other'));
  ledger.record(callRow('c1'));
  await ledger.flush();
  assert.deepEqual(settled, [['taken']]);
  await ledger.close();
});

it('F8 long notes are cut, short ones are not', async () => {
  const store = memoryStore();
  const ledger = new Ledger({ store, clock: new HeldClock(), log: silentLog });
  ledger.record(callRow('long', { notes: 'n'.repeat(5000) }));
  ledger.record(callRow('short', { notes: 'n'.repeat(2048), model: 'm'.repeat(512) }));
  ledger.record(callRow('model', { model: 'm'.repeat(513) }));
  await ledger.close();
  const notes = async (id: string) => (await store.calls.find(id))?.notes;
  assert.deepEqual(
    [(await notes('long'))?.length, (await notes('short'))?.length, await notes('model')],
    [2048, 2048, undefined],
  );
  assert.equal((await store.calls.find('model'))?.model.length, 512);
});
