/** What a refused caller is told: which limit, whose, how much is left, and when to come again (E8, E9, H5). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HeldPolicy } from '../../../src/access/policies.ts';
import { LimitError, type HolderKind, type RateLimit } from '../../../src/core/policy.ts';
import { budgetOf, heldBy, LimitsRig, principalOf, type CallInput } from './limits-rig.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

async function refusalOf(rig: LimitsRig, input: CallInput): Promise<LimitError> {
  const error: unknown = await rig.admit(input).then(
    () => assert.fail('the call was admitted'),
    (refused: unknown) => refused,
  );
  assert.ok(error instanceof LimitError);
  return error;
}

const keyWith = (...limits: readonly RateLimit[]) => principalOf([heldBy('k1', { limits })]);

function holderOf(kind: HolderKind, name: string, policy: HeldPolicy['policy']): HeldPolicy {
  return { holder: { kind, name }, policy };
}

describe('E8 H5 a rate limit', () => {
  test('of calls at a time says that one must end, since no wait is known', async () => {
    const rig = new LimitsRig();
    const one = keyWith({ kind: 'concurrent', amount: 1 });
    await rig.admit({ id: 'a', principal: one });
    const refusal = await refusalOf(rig, { id: 'b', principal: one });
    assert.equal(
      refusal.message,
      'Limit of this key (k1): 1 call at a time, and it is running. Try again when it is over.',
    );
    assert.deepEqual([refusal.limit, refusal.retryAfterMs], ['key:k1:concurrent', undefined]);
    assert.deepEqual(rig.refusals, ['key concurrent']);
    const two = principalOf([
      holderOf('team', 'red', { limits: [{ kind: 'concurrent', amount: 2 }], budgets: [] }),
    ]);
    for (const id of ['c', 'd']) await rig.admit({ id, principal: two });
    assert.equal(
      (await refusalOf(rig, { id: 'e', principal: two })).message,
      'Limit of team red: 2 calls at a time, all of them running. Try again when one is over.',
    );
  });

  test('of tokens names what the call takes, and the wait', async () => {
    const rig = new LimitsRig();
    const principal = keyWith({ kind: 'tokens', amount: 1000 });
    await rig.admit({ id: 'a', principal, prompt: 500, maxOutputTokens: 200 });
    const refusal = await refusalOf(rig, {
      id: 'b',
      principal,
      prompt: 100,
      maxOutputTokens: 150,
      choices: 2,
    });
    assert.equal(
      refusal.message,
      'Rate limit of this key (k1): 1000 tokens per minute, 300 left; about 100 prompt tokens and up to 150 times 2 ' +
        'output tokens. Try again in 6 s.',
    );
    assert.equal(refusal.retryAfterMs, 6000);
    assert.equal(refusal.standings.tokens?.remaining, 300);
    assert.deepEqual(rig.refusals, ['key tokens']);
  });

  test('of one request a minute waits a minute; jitter alone makes no wait longer than that', async () => {
    const rig = new LimitsRig();
    rig.random = 0.999;
    const once = keyWith({ kind: 'requests', amount: 1 });
    await rig.admit({ id: 'a', principal: once });
    const whole = await refusalOf(rig, { id: 'b', principal: once });
    assert.equal(
      whole.message,
      'Rate limit of this key (k1): 1 request per minute, 0 left. Try again in 1 min.',
    );
    assert.equal(whole.retryAfterMs, minute);
    rig.clock.time += 1000;
    assert.equal((await refusalOf(rig, { id: 'c', principal: once })).retryAfterMs, 59_500);
    rig.random = 0;
    assert.equal((await refusalOf(rig, { id: 'd', principal: once })).retryAfterMs, 59_000);
  });

  test('in debt may take longer than a minute, and then jitter is added', async () => {
    const rig = new LimitsRig();
    const principal = keyWith({ kind: 'tokens', amount: 1000 });
    const grant = await rig.admit({ id: 'a', principal, prompt: 500, maxOutputTokens: 100 });
    rig.settle(grant, { freshInputTokens: 500, outputTokens: 1500 });
    rig.random = 0.5;
    // 1,000 below empty, and 100 more.
    const late = await refusalOf(rig, { id: 'b', principal, prompt: 50, maxOutputTokens: 50 });
    assert.equal(late.retryAfterMs, 66_000 + 250);
    assert.match(late.message, /Try again in 1 min 6 s\.$/);
  });

  test('that the prompt alone exceeds is refused for good', async () => {
    const rig = new LimitsRig();
    const principal = keyWith({ kind: 'requests', amount: 5 }, { kind: 'tokens', amount: 1000 });
    const refusal = await refusalOf(rig, { id: 'a', principal, prompt: 2500 });
    assert.equal(
      refusal.message,
      'Rate limit of this key (k1): 1000 tokens per minute; the prompt alone has about 2500, so this call can never fit. ' +
        'Send a shorter prompt.',
    );
    assert.deepEqual([refusal.retryAfterMs, refusal.limit], [Infinity, 'key:k1:tokens']);
    assert.deepEqual(
      [refusal.standings.requests?.remaining, refusal.standings.tokens?.remaining],
      [5, 1000],
      'nothing was taken',
    );
    assert.equal(rig.counted, 0, 'no count can make it fit');
  });

  test('reports where it stands itself, and where the tightest limit of the other kind does', async () => {
    const rig = new LimitsRig();
    const principal = keyWith(
      { kind: 'requests', amount: 2, model: 'm' },
      { kind: 'requests', amount: 1, model: 'other' },
      { kind: 'requests', amount: 3 },
      { kind: 'tokens', amount: 1000 },
    );
    const input = { principal, prompt: 5, maxOutputTokens: 5 };
    for (const id of ['a', 'b']) await rig.admit({ ...input, id });
    const { standings, limit } = await refusalOf(rig, { ...input, id: 'c' });
    assert.equal(limit, 'key:k1:requests:m');
    assert.deepEqual([standings.requests?.limit, standings.requests?.remaining], [2, 0]);
    assert.deepEqual([standings.tokens?.limit, standings.tokens?.remaining], [1000, 980]);
  });
});

describe('E9 H5 a budget', () => {
  test('says what is left, what running calls hold, and what this call may cost', async () => {
    const rig = new LimitsRig();
    const principal = principalOf(
      [holderOf('tag', 'nightly', { limits: [], budgets: [budgetOf(1_000_000, 'ever')] })],
      { shrink: false },
    );
    const input = { principal, prompt: 100, maxOutputTokens: 150 };
    const running = await rig.admit({ ...input, id: 'a' });
    const spent = await rig.admit({ ...input, id: 'b' });
    const refusal = await refusalOf(rig, { ...input, id: 'c' });
    assert.equal(refusal.code, 'budget_exhausted');
    assert.equal(
      refusal.message,
      'The budget of tag nightly has no room for this call: $0.001 in total, $0.0002 left, $0.0008 reserved by ' +
        'running calls; the call may cost up to $0.0004 (about 100 prompt tokens and up to 150 output tokens). ' +
        'It does not reset.',
    );
    assert.deepEqual([refusal.limit, rig.refusals], ['tag:nightly:ever', ['tag budget']]);
    rig.settle(running, { freshInputTokens: 100, outputTokens: 450 });
    rig.settle(spent, {});
    assert.match(
      (await refusalOf(rig, { ...input, id: 'd' })).message,
      /\$0\.001 in total, nothing left; the call may cost/,
    );
  });

  for (const [left, text] of [
    [1, '0.1 s'],
    [9901, '10 s'],
    [10_000, '10 s'],
    [59_001, '1 min'],
    [61_000, '1 min 1 s'],
    [hour, '1 h'],
    [hour + minute + 1000, '1 h 1 min'],
    [hour + 1000, '1 h'],
    [2 * day + 3 * hour + minute, '2 d 3 h'],
    [30 * day, '30 d'],
  ] as const) {
    test(`resets in ${text}: ${left} ms before the end of the month`, async () => {
      const rig = new LimitsRig();
      rig.clock.time = 31 * day - left;
      const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1, 'month')] })]);
      const { message } = await refusalOf(rig, { id: 'a', principal });
      assert.ok(message.endsWith(` It resets at 2026-04-01T00:00Z, in ${text}.`), message);
    });
  }

  test('names its period', async () => {
    const rig = new LimitsRig();
    for (const [per, text] of [
      ['day', '$0.000001 a day,'],
      ['week', '$0.000001 a week,'],
      ['month', '$0.000001 a month,'],
      ['ever', '$0.000001 in total,'],
    ] as const) {
      const principal = principalOf([heldBy(per, { budgets: [budgetOf(1000, per)] })]);
      const { message } = await refusalOf(rig, { id: per, principal });
      assert.ok(message.includes(text), message);
    }
  });

  test('lowers no answer below the least of use, nor that of a key that forbids it', async () => {
    const rig = new LimitsRig();
    const ask = (budget: number, shrink = true) => {
      const own = principalOf([heldBy(`k${budget}`, { budgets: [budgetOf(budget)] })], { shrink });
      return rig.admit({ id: `c${budget}`, principal: own, prompt: 10, maxOutputTokens: 1000 });
    };
    const least = 10 * 1000 + 256 * 2000;
    assert.equal((await ask(least))?.outputCap, 256);
    await assert.rejects(ask(least - 1), { code: 'budget_exhausted' });
    await assert.rejects(ask(least + 1, false), { code: 'budget_exhausted' });
    const grant = await ask(least + 10_000);
    assert.equal(grant?.capNote, 'lowered to 261: the budget does not allow more');
  });
});

test('K6 a count of tokens takes a request and a slot, no tokens and no money', async () => {
  const rig = new LimitsRig();
  const limits = [
    { kind: 'requests', amount: 2 },
    { kind: 'concurrent', amount: 1 },
    { kind: 'tokens', amount: 1 },
  ] as const;
  const principal = principalOf([heldBy('k1', { limits, budgets: [budgetOf(0)] })]);
  const count = async (id: string) => {
    const { size: _size, ...unsized } = rig.asked({ id, principal });
    return rig.admission.admit(unsized);
  };
  const first = await count('a');
  assert.deepEqual([first?.standings.requests?.remaining, first?.standings.tokens], [1, undefined]);
  assert.deepEqual([first?.paid, first?.reserved, first?.outputCap], [false, undefined, undefined]);
  await assert.rejects(count('b'), { code: 'rate_limited' });
  rig.settle(first, {});
  rig.settle(await count('c'), {});
  await assert.rejects(count('d'), { code: 'rate_limited' });
  const budgetOnly = principalOf([heldBy('k2', { budgets: [budgetOf(0)] })]);
  const { size: _size, ...unsized } = rig.asked({ id: 'e', principal: budgetOnly });
  assert.equal(await rig.admission.admit(unsized), undefined);
});
