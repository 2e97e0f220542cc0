/** What a running call asks for behind its first reservation, and gives back (Q1, Q2, F64). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admission } from '../../../src/access/admission.ts';
import type { CallGrant } from '../../../src/access/call-grant.ts';
import { Overruns } from '../../../src/access/overruns.ts';
import { noPolicies } from '../../../src/access/policies.ts';
import { possiblePrices } from '../../../src/access/cost.ts';
import type { Price } from '../../../src/core/money.ts';
import type {
  Balance,
  Counters,
  ReserveRequest,
  ReserveResult,
  Used,
} from '../../../src/store/counters/counters.ts';
import { MemoryCounters } from '../../../src/store/counters/memory-counters.ts';
import { budgetOf, heldBy, LimitsRig, price, principalOf } from './limits-rig.ts';
import { HeldClock } from './fakes.ts';

const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9, 'ever')] })]);

/** Counters of another process: what is asked for more is answered when the test says so. */
class SlowCounters implements Counters {
  readonly real = new MemoryCounters(new HeldClock());
  readonly answers: (() => void)[] = [];
  readonly told: string[] = [];

  wall(): number {
    return this.real.wall();
  }

  reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult> {
    if (!request.callId.includes('+')) return this.real.reserve(request);
    const { promise, resolve } = Promise.withResolvers<ReserveResult>();
    this.answers.push(() => resolve(this.real.reserve(request)));
    return promise;
  }

  settle(callId: string, used: Used): void {
    this.told.push(callId);
    this.real.settle(callId, used);
  }

  releaseSlots(callId: string): void {
    this.real.releaseSlots(callId);
  }

  balance(counter: string, window: string): Balance {
    return this.real.balance(counter, window);
  }

  healthy(): boolean {
    return true;
  }

  async close(): Promise<void> {}
}

test('Q2 what a call is granted behind its end is given back', async () => {
  const counters = new SlowCounters();
  const book = { find: () => price, otherwise: undefined };
  const admission = new Admission({
    counters,
    clock: new HeldClock(),
    policies: noPolicies,
    prices: () => book,
    random: () => 0,
    overruns: new Overruns(new HeldClock()),
  });
  const asked = new LimitsRig().asked({ id: 'c1', principal, prompt: 10, maxOutputTokens: 10 });
  const grant = await admission.admit(asked);
  assert.ok(grant);
  const after = grant.outputAfter({ freshInputTokens: 500 });
  // The prompt grew once more, and then the client left.
  const further = grant.outputAfter({ freshInputTokens: 900 });
  grant.settle({ tokens: 510, nanodollars: 505_000 });
  assert.deepEqual(counters.told, ['c1']);
  for (const answer of counters.answers) answer();
  await Promise.all([after, further]);
  assert.equal(counters.answers.length, 1, 'a call that is over asks for nothing');
  assert.deepEqual(counters.told, ['c1', 'c1+']);
  assert.deepEqual(counters.balance('key:k1:ever', 'ever'), { settled: 505_000, open: 0 });
});

async function granted(
  rig: LimitsRig,
  more: { readonly webSearches?: number },
): Promise<CallGrant> {
  const asked = rig.asked({ id: 'c1', principal, prompt: 100, maxOutputTokens: 100 });
  const size = {
    ...asked.size,
    searches: () =>
      more.webSearches === undefined ? undefined : { member: 'tools', most: more.webSearches },
  };
  const grant = await rig.admission.admit({ ...asked, size });
  assert.ok(grant);
  return grant;
}

test('Q1 F64 a larger prompt does not take the money of searches that may still come', async () => {
  const rig = new LimitsRig(() => ({ ...price, webSearch: 10_000_000_000 }));
  const grant = await granted(rig, { webSearches: 3 });
  assert.equal(grant.reserved, 30_100 * 1000 + 100 * 2000 + 3 * 10_000_000);
  await grant.outputAfter({ freshInputTokens: 30_150 });
  assert.equal(grant.reserved, 30_150 * 1000 + 100 * 2000 + 3 * 10_000_000);
});

test('Q1 F64 a prompt that is no longer, but more expensive than reserved, is paid for', async () => {
  const rig = new LimitsRig(() => ({
    ...price,
    rates: { ...price.rates, cacheWrite: 2_000_000, cacheWriteLong: 4_000_000 },
  }));
  const grant = await granted(rig, {});
  assert.equal(grant.reserved, 100 * 1000 + 100 * 2000);
  const written = { freshInputTokens: 0, cacheWriteTokens: 100, cacheWriteLongTokens: 100 };
  await grant.outputAfter(written);
  assert.equal(grant.reserved, 100 * 4000 + 100 * 2000);
});

test('Q1 a call that names no tier may be charged at any that its account can be set to', () => {
  const tier = (output: number): Price => ({ ...price, rates: { ...price.rates, output } });
  const [standard, flex, priority, scale, fast] = [2, 1, 4, 6, 12].map((n) => tier(n * 1_000_000));
  assert.ok(standard && flex && priority && scale && fast);
  const service = new Map(Object.entries({ standard, flex, priority, scale, fast }));
  const whole: Price = { ...standard, service };
  for (const asked of [undefined, 'auto']) {
    assert.deepEqual(
      new Set(possiblePrices(whole, asked)),
      new Set([standard, flex, priority, scale]),
    );
  }
  assert.deepEqual(possiblePrices(whole, 'fast'), [standard, fast]);
  assert.deepEqual(possiblePrices(whole, 'default'), [standard]);
});

test('Q1 F64 before a further request of a paused turn, what it reads again is paid for', async () => {
  const rig = new LimitsRig();
  const poor = principalOf([heldBy('k1', { budgets: [budgetOf(400_000)] })]);
  const asked = rig.asked({ id: 'c1', principal: poor, prompt: 100, maxOutputTokens: 100 });
  const grant = await rig.admission.admit(asked);
  assert.equal(await grant?.outputOfRound({ freshInputTokens: 90 }), undefined);
  assert.equal(grant?.reserved, 300_000, 'less than what was reserved');
  assert.equal(await grant.outputOfRound({ freshInputTokens: 150 }), undefined);
  assert.equal(grant.reserved, 350_000);
  // 50,000 are left, 100,000 are missing: 350,000 pay for 250 tokens of prompt and 50 of answer.
  assert.equal(await grant.outputOfRound({ freshInputTokens: 250 }), 50);
  assert.equal(grant.reserved, 350_000);
});

test('Q1 F64 a further request may search as well: what it may find is paid for before', async () => {
  const rig = new LimitsRig(() => ({ ...price, webSearch: 10_000_000_000 }));
  const grant = await granted(rig, { webSearches: 1 });
  const first = 10_100 * 1000 + 100 * 2000 + 10_000_000;
  assert.equal(grant.reserved, first);
  await grant.outputOfRound({ freshInputTokens: 5000, webSearches: 1 });
  // 5,000 tokens and the 10,000 of another search.
  assert.equal(grant.reserved, 15_000 * 1000 + 100 * 2000 + 10_000_000);
});

test('Q1 R5 what is reserved for a hedged request pays for no larger prompt', async () => {
  const rig = new LimitsRig();
  const asked = rig.asked({ id: 'c1', principal, prompt: 10, maxOutputTokens: 10 });
  const grant = await rig.admission.admit({ ...asked, size: { ...asked.size, hedged: true } });
  assert.deepEqual([grant?.reserved, grant?.mayHedge], [60_000, true]);
  await grant?.outputAfter({ freshInputTokens: 20 });
  assert.equal(grant?.reserved, 70_000);
});

test('Q1 R5 where the budget pays for one request only, none is hedged', async () => {
  const rig = new LimitsRig();
  const poor = principalOf([heldBy('k1', { budgets: [budgetOf(59_999)] })]);
  const asked = rig.asked({ id: 'c1', principal: poor, prompt: 10, maxOutputTokens: 10 });
  const grant = await rig.admission.admit({ ...asked, size: { ...asked.size, hedged: true } });
  assert.deepEqual([grant?.reserved, grant?.mayHedge], [30_000, false]);
  const limited = principalOf([heldBy('k1', { limits: [{ kind: 'requests', amount: 9 }] })]);
  const unpaid = await rig.admit({ id: 'c2', principal: limited });
  assert.equal(unpaid?.mayHedge, true, 'a rate does not forbid it');
});

test('H5 the standings of a call are those of the limits that it has, the tightest of each kind', async () => {
  const rig = new LimitsRig();
  const at = rig.clock.wall();
  const tokens = { limit: 1000, remaining: 980, fullAt: at + 1200 };
  const requests = { limit: 3, remaining: 2, fullAt: at + 20_000 };
  for (const [name, limits, standings] of [
    ['tokens', [{ kind: 'tokens', amount: 1000 }], { tokens }],
    ['requests', [{ kind: 'requests', amount: 3 }], { requests }],
    ['calls', [{ kind: 'concurrent', amount: 3 }], {}],
    [
      'all',
      [
        { kind: 'requests', amount: 10, model: 'm' },
        { kind: 'requests', amount: 3 },
        { kind: 'requests', amount: 20, model: 'm*' },
        { kind: 'tokens', amount: 1000 },
        { kind: 'tokens', amount: 2000, model: 'm' },
      ],
      { requests, tokens },
    ],
  ] as const) {
    const limited = principalOf([heldBy(name, { limits })]);
    const grant = await rig.admit({ id: name, principal: limited, maxOutputTokens: 10 });
    assert.deepEqual(grant?.standings, standings, name);
  }
});

test('F63 an answer is cut at its cap where the cap was reserved, and nowhere else', async () => {
  const rig = new LimitsRig();
  const limited = (kind: 'tokens' | 'requests') =>
    principalOf([heldBy(kind, { limits: [{ kind, amount: 100_000 }] })]);
  const capOf = async (id: string, by: 'tokens' | 'requests', maxOutputTokens?: number) => {
    const own = maxOutputTokens === undefined ? {} : { maxOutputTokens };
    const grant = await rig.admit({ id, principal: limited(by), ...own });
    return [grant?.outputCap, grant?.sendsCap, grant?.paid];
  };
  assert.deepEqual(await capOf('a', 'tokens', 50), [50, false, false]);
  assert.deepEqual(await capOf('b', 'tokens'), [undefined, false, false]);
  assert.deepEqual(await capOf('c', 'requests', 50), [undefined, false, false]);
});

test('F72 a call whose client has left frees its slot at once, and only once', async () => {
  const rig = new LimitsRig();
  const one = principalOf([heldBy('k1', { limits: [{ kind: 'concurrent', amount: 1 }] })]);
  const call = (id: string) => rig.admit({ id, principal: one });
  const first = await call('a');
  await assert.rejects(call('b'), { code: 'rate_limited' });
  first?.releaseSlots();
  const second = await call('c');
  rig.settle(first, {});
  await assert.rejects(call('d'), { code: 'rate_limited' }, 'the slot of c is taken');
  rig.settle(second, {});
  assert.ok(await call('e'));
});

test('Q1 the windows of a call name the lease that pays, one list for all calls of a key', async () => {
  const rig = new LimitsRig();
  const reserve = rig.counters.reserve.bind(rig.counters);
  let lease = 'gateway-1';
  rig.counters.reserve = async (request) => {
    const result = await reserve(request);
    return result.granted ? { ...result, lease } : result;
  };
  const first = (await rig.admit({ id: 'a', principal, maxOutputTokens: 10 }))?.budgets;
  const second = (await rig.admit({ id: 'b', principal, maxOutputTokens: 10 }))?.budgets;
  assert.deepEqual(first, [{ counter: 'key:k1:ever', window: 'ever', lease }]);
  assert.equal(second, first);
  lease = 'gateway-2';
  const third = (await rig.admit({ id: 'c', principal, maxOutputTokens: 10 }))?.budgets;
  assert.equal(third?.[0]?.lease, 'gateway-2');
});
