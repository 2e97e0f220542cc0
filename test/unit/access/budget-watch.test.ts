import assert from 'node:assert/strict';
import { it } from 'node:test';
import { BudgetWatch } from '../../../src/access/budget-watch.ts';
import { HeldBudget } from '../../../src/access/held-limits.ts';
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
    const { window } = new HeldBudget(held.holder, held.budget).window(at);
    this.watch.spent(held, { nanodollars: dollars * dollar, at, window });
  }
}

const today = new Date(march).toISOString().slice(0, 10);

it('issue 5 a call that ends behind its day tells nothing of the next one', () => {
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
  told.watch.refused(budgetOf(10), march + 1);
  const raised = budgetOf(20);
  told.spend(raised, 2, march + 2);
  // It was admitted before the change.
  told.spend(budgetOf(10), 1, march + 1);
  told.spend(raised, 5, march + 3);
  told.watch.refused(raised, march + 4);
  told.watch.refused(raised, march + 5);
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
