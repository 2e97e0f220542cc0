import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetryBudget } from '../../../src/gateway/targets/retries.ts';

function taken(budget: RetryBudget, now: number): number {
  let count = 0;
  while (budget.take('p', now)) count += 1;
  return count;
}

test('G12 three retries are allowed to a provider that nobody called', () => {
  assert.equal(taken(new RetryBudget(), 0), 3);
});

test('G12 a fifth of many calls may be asked again', () => {
  const budget = new RetryBudget();
  for (let call = 0; call < 100; call += 1) budget.called('p', 5);
  assert.equal(taken(budget, 6), 20);
  assert.equal(budget.take('other', 6), true, 'another provider has its own');
});

test('R4 calls and retries are forgotten after a while, one half after the other', () => {
  const budget = new RetryBudget();
  for (let call = 0; call < 100; call += 1) budget.called('p', 0);
  assert.equal(taken(budget, 0), 20);
  assert.equal(taken(budget, 10_000), 0, 'the half before still counts');
  assert.equal(taken(budget, 25_000), 3, 'nothing counts any more');
  assert.equal(taken(budget, 26_000), 0);
});
