/** A budget whose time zone was changed: the window of the same name ends at another time, and has spent what it had. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { windowAt } from '../../src/access/windows.ts';
import { openCounters } from '../../src/compose/limits.ts';
import type { BudgetPeriod } from '../../src/core/policy.ts';
import { requestOf } from '../counters/rig.ts';
import { memoryStore } from '../support/memory-store.ts';
import { callRow } from '../unit/store/call-rows.ts';
import { costing } from '../store/rows.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const [first, last] = ['Pacific/Kiritimati', 'Etc/GMT+12'];

for (const per of ['day', 'week', 'month'] as const satisfies readonly BudgetPeriod[]) {
  test(`Q1 K7 a start after the time zone was changed counts what the ${per} has spent`, async () => {
    const store = memoryStore();
    const counter = `key:k:${per}`;
    const began = Date.UTC(2026, 10, 30, 9);
    const { name: window, endsAt } = windowAt(per, first, began);
    assert.ok(endsAt !== undefined);
    const budgets = [{ counter, window, endsAt }];
    await store.calls.record([callRow('c1', { ...costing(90), startedAt: began, budgets })]);
    // In the other zone the window of this name goes on for a day and two hours.
    const now = endsAt + 25 * 3_600_000;
    const moved = windowAt(per, last, now);
    assert.equal(moved.name, window);
    const clock = { now: () => 0, wall: () => now };
    const { counters } = await openCounters({ store: store.calls, clock, log });
    const budget = { counter, window, endsAt: moved.endsAt, nanodollars: 100, amount: 11 };
    const refused = await counters.reserve(requestOf({ budgets: [budget] }));
    assert.equal(refused.granted, false);
    const fits = await counters.reserve(requestOf({ budgets: [{ ...budget, amount: 10 }] }));
    assert.equal(fits.granted, true);
    await store.close();
  });
}
