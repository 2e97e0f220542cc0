import assert from 'node:assert/strict';
import { it } from 'node:test';
import { BudgetWatch } from '../../../src/access/budget-watch.ts';
import { HeldBudget } from '../../../src/access/held-limits.ts';
import type { BudgetWindow } from '../../../src/store/calls.ts';
import { march } from '../store/call-rows.ts';

const dollar = 1_000_000_000;
const day = 86_400_000;

function budgetOf(dollars: number): HeldBudget {
  const budget = { nanodollars: dollars * dollar, per: 'day', timeZone: 'UTC' } as const;
  return new HeldBudget({ kind: 'key', name: 'k1' }, budget);
}

class Told {
  readonly events: (readonly [number, number, string])[] = [];
  readonly watch = new BudgetWatch(({ threshold, budgetNanodollars, window }) =>
    this.events.push([threshold, budgetNanodollars / dollar, window]),
  );

  /** A call of so many dollars that was admitted at that time. */
  spend(held: HeldBudget, dollars: number, at: number): void {
    this.watch.spent(held, { nanodollars: dollars * dollar, at, window: windowOf(held, at) });
  }

  refuse(held: HeldBudget, at: number): void {
    this.watch.refused(held, { at, window: windowOf(held, at) });
  }
}

/** As nobody has asked for it yet. */
function windowOf({ holder, budget }: HeldBudget, at: number): BudgetWindow {
  return new HeldBudget(holder, budget).window(at);
}

const today = new Date(march).toISOString().slice(0, 10);

it('issue 5 a call that ends behind its day reports nothing of the next one', () => {
  const told = new Told();
  const held = budgetOf(10);
  told.spend(held, 1, march + day);
  told.spend(held, 9, march);
  assert.deepEqual(told.events, []);
  assert.deepEqual(
    told.watch.readings(march + day).map(({ spentNanodollars }) => spentNanodollars),
    [dollar],
  );
});

it('issue 5 a budget that is raised is told of again, up to its new end', () => {
  const told = new Told();
  told.spend(budgetOf(10), 9, march);
  told.refuse(budgetOf(10), march + 1);
  const raised = budgetOf(20);
  told.spend(raised, 2, march + 2);
  // It was admitted before the change.
  told.spend(budgetOf(10), 1, march + 1);
  told.spend(raised, 5, march + 3);
  told.refuse(raised, march + 4);
  told.refuse(raised, march + 5);
  assert.deepEqual(told.events, [
    [80, 10, today],
    [100, 10, today],
    [50, 20, today],
    [80, 20, today],
    [100, 20, today],
  ]);
});

it('issue 5 a budget that is lowered below what is spent is told of at its next call', () => {
  const told = new Told();
  told.spend(budgetOf(10), 4, march);
  told.spend(budgetOf(5), 0.1, march + 1);
  told.spend(budgetOf(5), 0.1, march + 2);
  assert.deepEqual(told.events, [[80, 5, today]]);
});

it('issue 5 a late refusal of an older amount ends no events of the present one', () => {
  const told = new Told();
  const before = budgetOf(10);
  const raised = budgetOf(20);
  told.spend(before, 9, march);
  told.spend(raised, 0.5, march + 2);
  told.refuse(before, march + 1);
  told.spend(raised, 7, march + 3);
  told.refuse(raised, march + 4);
  assert.deepEqual(told.events, [
    [80, 10, today],
    [100, 10, today],
    [80, 20, today],
    [100, 20, today],
  ]);
});

it('issue 5 workers that know the old and the new amount by turns tell each threshold once', () => {
  const told = new Told();
  for (let i = 0; i < 5; i++) {
    told.spend(budgetOf(20), 3, march + 2 * i);
    told.refuse(budgetOf(10), march + 2 * i + 1);
  }
  assert.deepEqual(told.events, [
    [100, 10, today],
    [50, 20, today],
  ]);
});

it('issue 5 of many older amounts the first ones are forgotten, never the present one', () => {
  const told = new Told();
  const present = budgetOf(200);
  told.spend(present, 100, march + 1);
  for (let dollars = 100; dollars < 150; dollars++) told.refuse(budgetOf(dollars), march);
  told.events.length = 0;
  told.spend(present, 1, march + 2);
  told.refuse(budgetOf(149), march);
  told.refuse(budgetOf(100), march);
  assert.deepEqual(told.events, [[100, 100, today]]);
});

it('issue 5 what a worker notes counts in the window that paid, whatever time it is here', () => {
  const told = new Told();
  const { holder, budget } = budgetOf(10);
  const window = { counter: 'key:k1:day', window: today, endsAt: march + day };
  told.watch.noted({ holder, budget, at: march + day + 1, window, spent: 9 * dollar });
  told.watch.noted({ holder, budget, at: march + day + 2, window });
  assert.deepEqual(told.events, [
    [80, 10, today],
    [100, 10, today],
  ]);
});

it('issue 5 the ledger of a day that is over takes nothing from what is known of the present one', () => {
  const told = new Told();
  told.spend(budgetOf(10), 6, march + day);
  told.watch.restore([{ counter: 'key:k1:day', window: today, nanodollars: 3 * dollar }]);
  told.spend(budgetOf(10), 1, march + day + 1);
  assert.deepEqual(
    told.watch.readings(march + day).map(({ spentNanodollars }) => spentNanodollars),
    [7 * dollar],
  );
});
