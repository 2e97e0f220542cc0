/** What becomes of calls whose gateway died: nobody renews what they hold (Q2). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallRow } from '../../src/store/calls.ts';
import { leaseMs, moneyGraceMs } from '../../src/store/lease.ts';
import { fresh, granted, refused, settle, type Rig } from './rig.ts';

/** Puts the rows into the ledger, and tells the counters. */
export type BookLost = (rows: readonly CallRow[]) => Promise<void>;

/** Long after everything that a dead gateway could have told. */
const longMs = 10 * moneyGraceMs;

/** @param bookReal the same for rows by those who served the calls */
export function leases(
  name: string,
  rigOf: () => Rig,
  { book, bookReal }: { readonly book: BookLost; readonly bookReal: BookLost },
): void {
  const lost = async (rig: Rig, ids: readonly string[]): Promise<readonly CallRow[]> => {
    const rows = (await rig.counters.abandoned?.()) ?? [];
    return rows.filter(({ id }) => ids.includes(id));
  };
  const about = {
    keyId: 'k1',
    team: 'red',
    tags: ['a'],
    endpoint: 'openai-chat',
    model: 'm',
    startedAt: 1_700_000_000_000,
  };
  const budgetOf = (nanodollars: number) => ({
    counter: fresh('key:b'),
    window: 'ever',
    endsAt: undefined,
    nanodollars,
  });

  test(`${name}: Q1 Q2: a place is free when its lease ends; money is spent once it is booked`, async () => {
    const rig = rigOf();
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    const budget = budgetOf(10);
    const budgets = [{ ...budget, amount: 10 }];
    const { callId } = await granted(rig, { concurrent, budgets, about });
    await rig.pass(leaseMs - 1);
    await refused(rig, { concurrent });
    await rig.pass(1);
    await granted(rig, { concurrent });
    assert.deepEqual(await lost(rig, [callId]), [], 'the book has time to settle it');
    await rig.pass(moneyGraceMs + 1);
    assert.equal((await refused(rig, { budgets })).kind, 'budget');
    const [row] = await lost(rig, [callId]);
    assert.ok(row);
    const { keyId, team, tags, endpoint, model, startedAt } = row;
    assert.deepEqual({ keyId, team, tags, endpoint, model, startedAt }, about);
    assert.equal(row.cost?.total, 10);
    assert.deepEqual(row.budgets, [{ counter: budget.counter, window: 'ever' }]);
    await book([row]);
    await book([row]);
    const balance = await rig.counters.balance(budget.counter, 'ever');
    assert.deepEqual(balance, { settled: 10, open: 0 });
    await rig.pass(longMs);
    assert.deepEqual(await lost(rig, [callId]), []);
    assert.equal((await refused(rig, { budgets })).kind, 'budget');
  });

  test(`${name}: Q1: what a call held under further names is booked with it`, async () => {
    const rig = rigOf();
    const budget = budgetOf(100);
    const endsAt = Math.floor(rig.counters.wall()) + 10 * longMs;
    const draw = (callId: string, amount: number) => ({
      callId,
      budgets: [{ ...budget, window: '2026-11', endsAt, amount }],
      about,
    });
    const { callId } = await granted(rig, draw(fresh('call_'), 10));
    for (const more of ['+', '+2', '+3']) await granted(rig, draw(callId + more, 5));
    await rig.pass(leaseMs + moneyGraceMs + 1);
    const rows = await lost(rig, [callId, `${callId}+`, `${callId}+2`, `${callId}+3`]);
    assert.deepEqual(
      rows.map(({ id, cost }) => [id, cost?.total]),
      [[callId, 25]],
    );
    assert.deepEqual(rows[0]?.budgets, [{ counter: budget.counter, window: '2026-11', endsAt }]);
    await book(rows);
    const balance = await rig.counters.balance(budget.counter, '2026-11');
    assert.deepEqual(balance, { settled: 25, open: 0 });
  });

  test(`${name}: Q1: a call that ended and has no row is booked with what it spent`, async () => {
    const rig = rigOf();
    const budget = budgetOf(100);
    const budgets = [{ ...budget, amount: 10 }];
    const { callId } = await granted(rig, { budgets, about });
    const free = await granted(rig, { budgets, about });
    await settle(rig, callId, { nanodollars: 7 });
    await settle(rig, free.callId, { nanodollars: 0 });
    const settled = { settled: 7, open: 0 };
    assert.deepEqual(await rig.counters.balance(budget.counter, 'ever'), settled);
    await rig.pass(longMs);
    const rows = await lost(rig, [callId, free.callId]);
    assert.deepEqual(
      rows.map(({ id, cost }) => [id, cost?.total]),
      [[callId, 7]],
    );
    await book(rows);
    assert.deepEqual(await rig.counters.balance(budget.counter, 'ever'), settled);
    assert.deepEqual(await lost(rig, [callId]), []);
  });

  test(`${name}: Q1 Q2: the real row of a call that was booked as held takes its place at once`, async () => {
    const rig = rigOf();
    const budget = budgetOf(100);
    const budgets = [{ ...budget, amount: 60 }];
    const { callId } = await granted(rig, { budgets, about });
    await rig.pass(leaseMs + moneyGraceMs + 1);
    const [lostRow] = await lost(rig, [callId]);
    assert.ok(lostRow?.cost);
    await book([lostRow]);
    assert.equal((await refused(rig, { budgets })).kind, 'budget');
    const { usageSource: _source, error: _error, ...rest } = lostRow;
    const real: CallRow = {
      ...rest,
      outcome: 'ok',
      usageSource: 'reported',
      cost: { ...lostRow.cost, total: 25 },
    };
    await bookReal([real]);
    const expected = { settled: 25, open: 0 };
    assert.deepEqual(await rig.counters.balance(budget.counter, 'ever'), expected);
    // Told twice, and once more by whoever only guessed.
    await bookReal([real, lostRow]);
    await bookReal([lostRow]);
    assert.deepEqual(await rig.counters.balance(budget.counter, 'ever'), expected);
    await granted(rig, { budgets, about });
  });

  test(`${name}: Q1: a call that others ended with less counts as what its own row says`, async () => {
    const rig = rigOf();
    const budget = budgetOf(100);
    const { callId } = await granted(rig, { budgets: [{ ...budget, amount: 60 }], about });
    await settle(rig, callId, { nanodollars: 5 });
    await rig.pass(longMs);
    const [row] = await lost(rig, [callId]);
    assert.ok(row?.cost);
    await book([row]);
    await bookReal([
      { ...row, outcome: 'ok', usageSource: 'reported', cost: { ...row.cost, total: 40 } },
    ]);
    const balance = await rig.counters.balance(budget.counter, 'ever');
    assert.deepEqual(balance, { settled: 40, open: 0 });
  });
}
