/** Q1: what is reserved for two requests at once, and for a target that raises small caps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Price } from '../../../src/core/money.ts';
import { Reservation, type RequestedSize } from '../../../src/access/reservation.ts';

const price: Price = { rates: { input: 1000, output: 10_000 }, tiers: [], source: 'test' };

const size = (hedged: boolean): RequestedSize => ({
  targets: [{ provider: 'p', model: 'm' }],
  maxOutputTokens: 100,
  choices: 1,
  hedged,
  promptAtMost: () => 50,
  promptExactly: async () => undefined,
  cacheWrites: () => 'none',
  images: () => 0,
  searches: () => undefined,
  others: () => undefined,
  raised: () => undefined,
  media: () => false,
  serviceTier: () => undefined,
  expensiveBy: () => undefined,
});

test('Q1 a hedged call reserves both requests, and one once the second is given up', () => {
  const one = new Reservation(size(false), [price]);
  const two = new Reservation(size(true), [price]);
  assert.equal(one.cost(), 1050);
  assert.equal(two.cost(), 2100);
  assert.equal(two.extraCost, 1050);
  assert.equal(two.dropHedge(), true);
  assert.equal(two.cost(), 1050);
  assert.equal(two.extraCost, 0);
  assert.equal(two.dropHedge(), false);
  assert.equal(one.dropHedge(), false);
});

test('Q1 a cap below the least that a target takes reserves what the target may answer', () => {
  const capped = { ...size(false), maxOutputTokens: 5 };
  const raising = [...capped.targets, { provider: 'p', model: 'n', minOutputTokens: 16 }];
  assert.equal(new Reservation(capped, [price]).cost(), 50 + 5 * 10);
  assert.equal(new Reservation({ ...capped, targets: raising }, [price]).cost(), 50 + 16 * 10);
  assert.equal(new Reservation({ ...size(false), targets: raising }, [price]).cost(), 1050);
});
