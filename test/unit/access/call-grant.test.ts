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
