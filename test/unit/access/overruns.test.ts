/** what one call cost beyond its reservation is held for the others of its budget, too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../src/core/errors.ts';
import { budgetOf, heldBy, LimitsRig, principalOf, type CallInput } from './limits-rig.ts';

const budget = heldBy('k1', { budgets: [budgetOf(1_000_000)] });
const other = heldBy('k2', { budgets: [budgetOf(1_000_000)] });
const keyed = principalOf([budget]);
/** Each reserves 10 prompt tokens and 10 of answer: 30,000 nanodollars. */
const input = (id: string): CallInput => ({
  id,
  principal: keyed,
  prompt: 10,
  maxOutputTokens: 10,
});
const reserved = 30_000;
const refused = (error: GatewayError): boolean => error.code === 'budget_exhausted';

test('X-4 Q1 after the first overrun running calls and new ones hold what it cost besides', async () => {
  const rig = new LimitsRig();
  const grants = [];
  for (let i = 0; i < 5; i++) grants.push(await rig.admit(input(`c${i}`)));
  // 10 tokens were reserved, and 100 were billed: 180,000 nanodollars more.
  const bill = rig.settle(grants[0], { freshInputTokens: 10, outputTokens: 100 });
  assert.equal(bill.overrun, true);
  await new Promise((resolve) => setImmediate(resolve));
  // 210,000 spent, 4 times 210,000 would be held: 790,000 are left of it, and all of them are.
  await assert.rejects(rig.admit(input('late')), refused);
  for (const grant of grants.slice(1)) {
    rig.settle(grant, { freshInputTokens: 10, outputTokens: 100 });
  }
  // 5 times 210,000: over by less than one call.
  await assert.rejects(rig.admit(input('later')), refused);
});

test('X-4 what was held besides comes back, and is asked of the next call for an hour', async () => {
  const rig = new LimitsRig();
  const [first, second] = [await rig.admit(input('a')), await rig.admit(input('b'))];
  rig.settle(first, { freshInputTokens: 10, outputTokens: 20 });
  await new Promise((resolve) => setImmediate(resolve));
  rig.settle(second, { freshInputTokens: 10, outputTokens: 10 });
  const third = await rig.admit(input('c'));
  assert.equal(third?.reserved, reserved + 20_000);
  rig.settle(third, { freshInputTokens: 10, outputTokens: 10 });
  rig.clock.time += 3_600_001;
  const fourth = await rig.admit(input('d'));
  assert.equal(fourth?.reserved, reserved);
});

test('X-4 what one key learns costs no other key anything', async () => {
  const rig = new LimitsRig();
  const running = await rig.admit({ ...input('theirs'), principal: principalOf([other]) });
  rig.settle(await rig.admit(input('a')), { freshInputTokens: 10, outputTokens: 400 });
  await new Promise((resolve) => setImmediate(resolve));
  const theirs = await rig.admit({ ...input('new'), principal: principalOf([other]) });
  assert.deepEqual([running?.reserved, theirs?.reserved], [reserved, reserved]);
});
