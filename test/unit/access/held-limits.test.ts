/** Policies as reservations use them: one counter a holder and kind, windows that are computed once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldBudget, HeldLimits } from '../../../src/access/held-limits.ts';
import { modelNames } from '../../../src/core/model-names.ts';
import type { RateLimit } from '../../../src/core/policy.ts';
import { budgetOf, heldBy } from './limits-rig.ts';

const march = Date.UTC(2026, 2, 1);
const day = 86_400_000;

const requests = (amount: number, model?: string): RateLimit => ({
  kind: 'requests',
  amount,
  ...(model === undefined ? {} : { model }),
});

test('K6 Q1 of two limits or budgets of one counter the smaller one applies, in either order', () => {
  for (const amounts of [
    [5, 3],
    [3, 5],
  ]) {
    const held = HeldLimits.of([
      heldBy('k1', {
        limits: amounts.map((amount) => requests(amount)),
        budgets: amounts.map((amount) => budgetOf(amount)),
      }),
    ]);
    assert.deepEqual(held.rates, [{ counter: 'key:k1:requests', perMinute: 3 }]);
    assert.deepEqual(
      held.budgets.map(({ budget }) => budget.nanodollars),
      [3],
    );
  }
});

test('K6 Q1 counters differ by holder, kind, model and period', () => {
  const held = HeldLimits.of([
    heldBy('k1', {
      limits: [requests(1), requests(2, 'm'), { kind: 'concurrent', amount: 3 }],
      budgets: [budgetOf(1), budgetOf(2, 'month')],
    }),
    { holder: { kind: 'team', name: 'k1' }, policy: { limits: [requests(4)], budgets: [] } },
  ]);
  assert.deepEqual(held.rates, [
    { counter: 'key:k1:requests', perMinute: 1 },
    { counter: 'key:k1:requests:m', perMinute: 2 },
    { counter: 'team:k1:requests', perMinute: 4 },
  ]);
  assert.deepEqual(held.slots, [{ counter: 'key:k1:concurrent', most: 3 }]);
  assert.deepEqual(
    held.budgets.map(({ counter }) => counter),
    ['key:k1:day', 'key:k1:month'],
  );
});

test('K6 limits of one model are omitted for others, found once per list of names', () => {
  const held = HeldLimits.of([
    heldBy('k1', { limits: [requests(1), requests(2, 'm*')], budgets: [budgetOf(1)] }),
  ]);
  assert.equal(held.sameForAll, false);
  const [m, other] = [modelNames(['mini']), modelNames(['other'])];
  assert.equal(held.of(m).rates.length, 2);
  assert.deepEqual(held.of(other).rates, [{ counter: 'key:k1:requests', perMinute: 1 }]);
  assert.equal(held.of(other).budgets, held.budgets);
  assert.equal(held.of(m), held.of(m));
  const same = HeldLimits.of([heldBy('k1', { limits: [requests(1)] })]);
  assert.equal(same.of(m), same);
});

test('a call is unlimited only where there is neither limit nor budget', () => {
  const of = (policy: Parameters<typeof heldBy>[1]) => HeldLimits.of([heldBy('k1', policy)]);
  const states = (policy: Parameters<typeof heldBy>[1]) => [of(policy).none, of(policy).countless];
  assert.deepEqual(states({}), [true, true]);
  assert.deepEqual(states({ budgets: [budgetOf(1)] }), [false, true]);
  assert.deepEqual(states({ limits: [{ kind: 'tokens', amount: 1 }] }), [false, true]);
  assert.deepEqual(states({ limits: [requests(1)] }), [false, false]);
  assert.deepEqual(states({ limits: [{ kind: 'concurrent', amount: 1 }] }), [false, false]);
});

test('K7 windows are the same list until one of them ends', () => {
  const held = HeldLimits.of([
    heldBy('k1', { budgets: [budgetOf(1, 'ever'), budgetOf(1, 'day'), budgetOf(1, 'month')] }),
  ]);
  const first = held.windows(march);
  assert.deepEqual(
    first.map(({ window }) => window),
    ['ever', '2026-03-01', '2026-03'],
  );
  assert.equal(held.windows(march + day - 1), first);
  const second = held.windows(march + day);
  assert.deepEqual(
    second.map(({ window }) => window),
    ['ever', '2026-03-02', '2026-03'],
  );
  assert.equal(second[0], first[0]);
  assert.equal(held.windows(march + day), second);
});

test('G17 a clock that goes back stays in the window that has begun', () => {
  const budget = new HeldBudget({ kind: 'key', name: 'k1' }, budgetOf(1));
  const window = budget.window(march + day);
  assert.deepEqual(window, {
    counter: 'key:k1:day',
    window: '2026-03-02',
    endsAt: march + 2 * day,
  });
  assert.equal(budget.window(march), window);
  assert.equal(budget.window(march + 2 * day).window, '2026-03-03');
});
