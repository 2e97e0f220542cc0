/** Q1: what a name that hedges reserves, and what is given up first where there is less. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Price } from '../../../src/core/money.ts';
import { Reservation, type AskedSize } from '../../../src/access/reservation.ts';

const price: Price = { rates: { input: 1000, output: 10_000 }, tiers: [], source: 'test' };

const size = (hedged: boolean): AskedSize => ({
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
  dearerBy: () => undefined,
});

test('Q1 a hedged call reserves both requests, and one once the second is given up', () => {
  const one = new Reservation(size(false), [price]);
  const two = new Reservation(size(true), [price]);
  assert.equal(one.cost(), 1050);
  assert.equal(two.cost(), 2100);
  assert.equal(two.costBeside, 1050);
  assert.equal(two.dropHedge(), true);
  assert.equal(two.cost(), 1050);
  assert.equal(two.costBeside, 0);
  assert.equal(two.dropHedge(), false);
  assert.equal(one.dropHedge(), false);
});
