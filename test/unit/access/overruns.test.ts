/** what one call cost beyond its reservation is held for the others of its budget, too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldBudget } from '../../../src/access/held-limits.ts';
import { Overruns } from '../../../src/access/overruns.ts';
import type { GatewayError } from '../../../src/core/errors.ts';
import { HeldClock } from './fakes.ts';
import {
  budgetOf,
  heldBy,
  LimitsRig,
  price,
  principalOf,
  targetOf,
  type CallInput,
} from './limits-rig.ts';

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
  rig.clock.time += 3_599_999;
  const fourth = await rig.admit(input('d'));
  assert.equal(fourth?.reserved, reserved + 20_000);
  rig.settle(fourth, { freshInputTokens: 10, outputTokens: 10 });
  rig.clock.time += 1;
  const fifth = await rig.admit(input('e'));
  assert.equal(fifth?.reserved, reserved);
});

test('X-4 what one key learns costs no other key anything', async () => {
  const rig = new LimitsRig();
  const running = await rig.admit({ ...input('theirs'), principal: principalOf([other]) });
  rig.settle(await rig.admit(input('a')), { freshInputTokens: 10, outputTokens: 400 });
  await new Promise((resolve) => setImmediate(resolve));
  const theirs = await rig.admit({ ...input('new'), principal: principalOf([other]) });
  assert.deepEqual([running?.reserved, theirs?.reserved], [reserved, reserved]);
});

/** What is held for running calls, after the reservations that settlements asked for. */
async function open(rig: LimitsRig): Promise<number> {
  await new Promise((resolve) => setImmediate(resolve));
  const window = new Date(rig.clock.wall()).toISOString().slice(0, 10);
  return (await rig.counters.balance('key:k1:day', window)).open;
}

test('X-4 Q1 a smaller overrun adds nothing to what running calls hold already', async () => {
  const rig = new LimitsRig();
  const [a, b, c] = [
    await rig.admit(input('a')),
    await rig.admit(input('b')),
    await rig.admit(input('c')),
  ];
  rig.settle(a, { freshInputTokens: 10, outputTokens: 20 });
  assert.equal(await open(rig), 2 * (reserved + 20_000));
  rig.settle(b, { freshInputTokens: 10, outputTokens: 15 });
  assert.equal(await open(rig), reserved + 20_000);
  rig.settle(c, { freshInputTokens: 10, outputTokens: 10 });
  assert.equal(await open(rig), 0);
  const next = await rig.admit(input('d'));
  assert.equal(next?.reserved, reserved + 20_000, 'the larger one is remembered');
});

test('X-4 Q1 a larger overrun adds the rest, and a call counts from what it reserved', async () => {
  const rig = new LimitsRig();
  rig.settle(await rig.admit(input('a')), { freshInputTokens: 10, outputTokens: 20 });
  const [b, c] = [await rig.admit(input('b')), await rig.admit(input('c'))];
  assert.deepEqual([b?.reserved, c?.reserved], [reserved + 20_000, reserved + 20_000]);
  // 60,000: 10,000 more than was reserved, 30,000 more than without what was learned.
  const row = rig.settle(b, { freshInputTokens: 10, outputTokens: 25 });
  assert.equal(row.overrun, true);
  assert.equal(await open(rig), reserved + 30_000);
  assert.equal((await rig.admit(input('d')))?.reserved, reserved + 30_000);
});

test('X-4 calls that cannot ask the target, or that cost nothing, hold nothing in addition', async () => {
  let large = price;
  const rig = new LimitsRig((model) => (model === 'large' ? large : price));
  const ofTargets = async (id: string, ...models: readonly string[]) => {
    const asked = rig.asked(input(id));
    const targets = models.map((model) => ({ provider: 'p', model }));
    return rig.admission.admit({ ...asked, size: { ...asked.size, targets } });
  };
  large = { ...price, rates: { input: 0, output: 0 } };
  const free = await ofTargets('free', 'large');
  large = price;
  const small = await ofTargets('small', 'm');
  const either = await ofTargets('either', 'm', 'large');
  const late = await ofTargets('late', 'large');
  assert.equal(await open(rig), 3 * reserved);
  rig.settle(late, { freshInputTokens: 10, outputTokens: 20 }, { target: targetOf('large') });
  assert.equal(await open(rig), reserved + reserved + 20_000, 'small as before, either more');
  for (const grant of [free, small, either]) rig.settle(grant, {});
  assert.equal(await open(rig), 0);
  assert.equal((await ofTargets('after', 'm'))?.reserved, reserved);
  assert.equal((await ofTargets('again', 'm', 'large'))?.reserved, reserved + 20_000);
});

test('X-4 a call without a budget, or within its reservation, teaches nothing', async () => {
  const rig = new LimitsRig();
  const exact = rig.settle(await rig.admit(input('a')), { freshInputTokens: 10, outputTokens: 10 });
  assert.equal('overrun' in exact, false);
  const limited = principalOf([heldBy('k1', { limits: [{ kind: 'requests', amount: 9 }] })]);
  const unpaid = await rig.admit({ ...input('b'), principal: limited });
  assert.equal('overrun' in rig.settle(unpaid, { freshInputTokens: 10, outputTokens: 99 }), false);
  assert.equal((await rig.admit(input('c')))?.reserved, reserved);
});

test('X-4 an explained call is told what was learned, and is not among the running ones', async () => {
  const rig = new LimitsRig();
  rig.settle(await rig.admit(input('a')), { freshInputTokens: 10, outputTokens: 20 });
  const { grant, limits } = await rig.admission.preview(rig.asked(input('b')));
  assert.equal(grant?.reserved, reserved + 20_000);
  assert.deepEqual(
    limits.map(({ takes }) => takes),
    [reserved + 20_000],
  );
  assert.equal(await open(rig), 0);
});

test('X-4 of a thousand overruns and more the oldest is forgotten', () => {
  const overruns = new Overruns(new HeldClock());
  const held = [new HeldBudget({ kind: 'key', name: 'k1' }, budgetOf(1_000_000))];
  const target = (i: number) => ({ provider: 'p', model: `m${i}` });
  const extra = (i: number): number => overruns.extraFor(held, [target(i)]);
  for (let i = 0; i < 1000; i++) overruns.learn({ held }, target(i), 7);
  assert.equal(extra(0), 7);
  overruns.learn({ held }, target(0), 9);
  overruns.learn({ held }, target(1000), 7);
  assert.deepEqual([extra(0), extra(1), extra(2), extra(1000)], [9, 0, 7, 7]);
});
