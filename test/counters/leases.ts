/** What becomes of calls whose gateway died: nobody renews what they hold (Q2). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaseMs, moneyGraceMs } from '../../src/store/lease.ts';
import { fresh, granted, refused, type Rig } from './rig.ts';

export function leases(name: string, rigOf: () => Rig): void {
  test(`${name}: Q2: a place is free when its lease ends, money once the book had time to settle it`, async () => {
    const rig = rigOf();
    const concurrent = [{ counter: fresh('c'), most: 1 }];
    const budget = { counter: fresh('b'), window: 'ever', endsAt: undefined, nanodollars: 10 };
    const budgets = [{ ...budget, amount: 10 }];
    await granted(rig, { concurrent, budgets });
    await rig.pass(leaseMs - 1);
    await refused(rig, { concurrent });
    await rig.pass(1);
    await granted(rig, { concurrent });
    assert.equal((await refused(rig, { budgets })).kind, 'budget');
    await rig.pass(moneyGraceMs);
    await granted(rig, { budgets });
  });
}
