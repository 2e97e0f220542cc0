import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Admission } from '../../../src/access/admission.ts';
import type { CallGrant } from '../../../src/access/call-grant.ts';
import { HeldBudget } from '../../../src/access/held-limits.ts';
import { Overruns } from '../../../src/access/overruns.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { LimitError } from '../../../src/core/policy.ts';
import type { Usage } from '../../../src/core/generation.ts';
import type { Price } from '../../../src/core/money.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { checkAsync } from '../../support/checking.ts';
import {
  billedRow,
  budgetOf,
  heldBy,
  LimitsRig,
  price,
  principalOf,
  type CallInput,
} from './limits-rig.ts';

async function refusalOf(rig: LimitsRig, input: CallInput): Promise<GatewayError> {
  try {
    await rig.admit(input);
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
  return assert.fail('the call was admitted');
}

test('a key without limits and budgets takes nothing and is not looked at', async () => {
  const rig = new LimitsRig();
  const asked = rig.asked({ id: 'c1', principal: principalOf([]) });
  const size = { ...asked.size, promptAtMost: () => assert.fail('nobody needs the prompt') };
  assert.equal(await rig.admission.admit({ ...asked, size }), undefined);
});

test('X-5 a tag that does not count is told of by a call, and not by an explained one', async () => {
  const rig = new LimitsRig();
  const told: string[] = [];
  const admission = new Admission({
    counters: rig.counters,
    clock: rig.clock,
    policies: {
      version: 1,
      find: (kind) =>
        kind === 'tag' ? { limits: [{ kind: 'requests', amount: 1 }], budgets: [] } : undefined,
    },
    prices: () => ({ find: () => price, otherwise: undefined }),
    random: () => 0,
    overruns: new Overruns(rig.clock),
    notCounted: (tag) => void told.push(tag),
  });
  const asked = { ...rig.asked({ id: 'c1', principal: principalOf([]) }), tags: ['others'] };
  assert.deepEqual(await admission.preview(asked), { limits: [] });
  assert.deepEqual(told, []);
  await admission.admit(asked);
  assert.deepEqual(told, ['others']);
});

test('Q1 the reservation is what the call may cost at most: prompt, cap times answers, most expensive target', async () => {
  const expensive: Price = { ...price, rates: { input: 3_000_000, output: 4_000_000 } };
  const rig = new LimitsRig((model) => (model === 'dear' ? expensive : price));
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const asked = rig.asked({ id: 'c1', principal, prompt: 100, maxOutputTokens: 50, choices: 2 });
  const targets = [
    { provider: 'p', model: 'm' },
    { provider: 'p', model: 'dear' },
  ];
  const grant = await rig.admission.admit({ ...asked, size: { ...asked.size, targets } });
  assert.equal(grant?.reserved, 100 * 3000 + 100 * 4000);
  assert.equal(grant.outputCap, 50);
  assert.equal(grant.sendsCap, false);
});

test('the model limit is reserved where the client sets none, and is not told upstream', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const known = await rig.admit({ id: 'c1', principal, modelLimit: 8000 });
  assert.deepEqual([known?.outputCap, known?.sendsCap, known?.capNote], [8000, false, undefined]);
  const unknown = await rig.admit({ id: 'c2', principal });
  assert.deepEqual([unknown?.outputCap, unknown?.sendsCap], [4096, true]);
  assert.match(String(unknown?.capNote), /set to 4096/);
});

test('a budget does not limit the answer of a model that costs nothing', async () => {
  const rig = new LimitsRig(() => ({ ...price, rates: { input: 0, output: 0 } }));
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const grant = await rig.admit({ id: 'c1', principal });
  assert.deepEqual([grant?.reserved, grant?.outputCap], [0, undefined]);
  assert.deepEqual([grant?.sendsCap, grant?.capNote], [false, undefined]);
});

test('what costs nothing is served on a budget that is overspent', async () => {
  const rig = new LimitsRig(() => ({ ...price, rates: { input: 0, output: 0 } }));
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const { window } = new HeldBudget({ kind: 'key', name: 'k1' }, budgetOf(1e9)).window(
    rig.clock.wall(),
  );
  rig.counters.reserve({
    callId: 'before',
    concurrent: [],
    requests: [],
    tokens: [],
    budgets: [{ counter: 'key:k1:day', window, endsAt: undefined, nanodollars: 1e9, amount: 1e9 }],
  });
  rig.counters.settle('before', { tokens: 0, nanodollars: 2e9 });
  const grant = await rig.admit({ id: 'c1', principal });
  assert.ok(grant !== undefined);
  assert.equal(rig.settle(grant, { freshInputTokens: 5, outputTokens: 5 }).cost?.total, 0);
});

test('F6 a price that changes or goes while a call runs is none of that call', async () => {
  let now: Price | undefined = price;
  const rig = new LimitsRig(() => now);
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  for (const later of [undefined, { ...price, rates: { input: 9_000_000, output: 9_000_000 } }]) {
    now = price;
    const grant = await rig.admit({ id: `c${String(later)}`, principal, maxOutputTokens: 100 });
    now = later;
    const bill = rig.settle(grant, { freshInputTokens: 10, outputTokens: 100 });
    assert.equal(bill.cost?.total, 10 * 1000 + 100 * 2000);
    assert.equal(bill.price, price);
  }
});

test('web searches that the vendor may run are reserved', async () => {
  const rig = new LimitsRig(() => ({ ...price, webSearch: 10_000_000_000 }));
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const asked = rig.asked({ id: 'c1', principal, maxOutputTokens: 100 });
  const size = { ...asked.size, searches: () => ({ member: 'tools', most: 3 }) };
  const grant = await rig.admission.admit({ ...asked, size });
  // What is found is read as prompt, too.
  assert.equal(grant?.reserved, 30_010 * 1000 + 100 * 2000 + 3 * 10_000_000);
});

test('F6 a search at a provider whose price of one is not known is refused by name with a budget', async () => {
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const ask = (rig: LimitsRig) => {
    const asked = rig.asked({ id: 'c1', principal, maxOutputTokens: 100 });
    const size = { ...asked.size, searches: () => ({ member: 'plugins', most: 5 }) };
    return rig.admission.admit({ ...asked, size });
  };
  await assert.rejects(async () => ask(new LimitsRig()), {
    code: 'invalid_request',
    reason: 'price_unknown',
    message: /"plugins" has the provider search the web/,
  });
  const noPrice = { rates: { input: 0, output: 0 }, tiers: [], source: 'test' };
  assert.equal((await ask(new LimitsRig(() => noPrice)))?.reserved, 0, 'what is free is free');
  const free = await ask(new LimitsRig(() => ({ ...price, webSearch: 0 })));
  assert.equal(free?.reserved, 50_010 * 1000 + 100 * 2000);
});

test('F6 pictures that have a price each are reserved', async () => {
  const rig = new LimitsRig(() => ({ ...price, perImage: 3_000_000_000 }));
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
  const asked = rig.asked({ id: 'c1', principal, maxOutputTokens: 100 });
  const grant = await rig.admission.admit({ ...asked, size: { ...asked.size, images: () => 2 } });
  assert.equal(grant?.reserved, 10 * 1000 + 100 * 2000 + 2 * 3_000_000);
  await grant?.outputAfter({ freshInputTokens: 20 });
  assert.equal(grant?.reserved, 20 * 1000 + 100 * 2000 + 2 * 3_000_000);
});

test('a guess that does not fit is counted once, off the loop, and only where that may help', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1_500_000)] })], {
    shrink: false,
  });
  const input = { principal, prompt: 1600, maxOutputTokens: 100 };
  const grant = await rig.admit({ ...input, id: 'c1', exactly: 1200 });
  assert.equal(grant?.reserved, 1200 * 1000 + 100 * 2000);
  assert.equal(rig.counted, 1);
  rig.settle(grant, { freshInputTokens: 1200, outputTokens: 100 });
  const refusal = await refusalOf(rig, { ...input, id: 'c2', exactly: 1200 });
  assert.equal(refusal.code, 'budget_exhausted');
  assert.equal(rig.counted, 1, 'no count could have helped');
});

test('K6 a prompt that only a guess finds larger than a token limit is counted, and passes', async () => {
  const rig = new LimitsRig();
  const limits = [{ kind: 'tokens', amount: 1000 } as const];
  const principal = principalOf([heldBy('k1', { limits })]);
  const input = { principal, maxOutputTokens: 10, prompt: 1300 };
  assert.ok((await rig.admit({ ...input, id: 'c1', exactly: 900 })) !== undefined);
  const refusal = await refusalOf(rig, { ...input, id: 'c2', exactly: 1100 });
  assert.match(refusal.message, /about 1100, so this call can never fit/);
  assert.equal((await refusalOf(rig, { ...input, id: 'c3' })).code, 'rate_limited');
  assert.equal(rig.counted, 3);
  await refusalOf(rig, { ...input, id: 'c4', prompt: 2001, exactly: 900 });
  assert.equal(rig.counted, 3, 'no count helps where the guess is twice the limit');
});

test('an answer is lowered to what the smallest budget pays for', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([
    heldBy('k1', { budgets: [budgetOf(2_000_000), budgetOf(1_010_000, 'month')] }),
  ]);
  const grant = await rig.admit({ id: 'c1', principal, prompt: 10, maxOutputTokens: 5000 });
  assert.equal(grant?.outputCap, 500);
  assert.equal(grant.reserved, 1_010_000);
  assert.equal(grant.sendsCap, true);
});

test('K6 what a budget refuses takes neither places nor requests nor tokens', async () => {
  const rig = new LimitsRig();
  const limits = [
    { kind: 'requests', amount: 3 },
    { kind: 'tokens', amount: 1000 },
    { kind: 'concurrent', amount: 1 },
  ] as const;
  const poor = principalOf([heldBy('k1', { limits, budgets: [budgetOf(1000)] })]);
  for (let i = 0; i < 5; i++) {
    const refusal = await refusalOf(rig, { id: `c${i}`, principal: poor, maxOutputTokens: 100 });
    assert.equal(refusal.code, 'budget_exhausted');
  }
  const rich = principalOf([heldBy('k1', { limits })]);
  const grant = await rig.admit({ id: 'rich', principal: rich, maxOutputTokens: 100 });
  assert.equal(grant?.standings.requests?.remaining, 2);
  assert.equal(grant.standings.tokens?.remaining, 890);
});

test('H5 refusals name the limit, its holder, its value and when it is free again', async () => {
  const rig = new LimitsRig();
  const limit = { kind: 'requests', amount: 2, model: 'm*' } as const;
  const principal = principalOf([heldBy('k1', { limits: [limit] })]);
  await rig.admit({ id: 'c1', principal });
  await rig.admit({ id: 'c2', principal });
  const refusal = await refusalOf(rig, { id: 'c3', principal });
  assert.ok(refusal instanceof LimitError);
  assert.equal(
    refusal.message,
    'Rate limit of this key (k1) for models m*: 2 requests per minute, 0 left. Try again in 30 s.',
  );
  assert.equal(refusal.retryAfterMs, 30_000);
});

test('F64 a prompt that grows again is paid for again, as long as there is money', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1_000_000)] })]);
  const grant = await rig.admit({ id: 'c1', principal, prompt: 100, maxOutputTokens: 100 });
  // A tool of the provider reads on and on.
  for (const freshInputTokens of [300, 400, 500]) {
    assert.equal(await grant?.outputAfter({ freshInputTokens }), undefined);
    assert.equal(grant?.reserved, freshInputTokens * 1000 + 200_000);
  }
  const other = await rig.admit({ id: 'c2', principal, prompt: 100, maxOutputTokens: 100 });
  assert.equal(await grant?.outputAfter({ freshInputTokens: 600 }), 50);
  rig.settle(other, { freshInputTokens: 10, outputTokens: 0 });
  assert.equal(await grant?.outputAfter({ freshInputTokens: 601 }), 100, 'there is money again');
  const window = grant?.budgets[0]?.window ?? '';
  const held = { settled: 10_000, open: 801_000 };
  assert.deepEqual(rig.counters.balance('key:k1:day', window), held);
  rig.settle(grant, { freshInputTokens: 601, outputTokens: 100 });
  const settled = { settled: 811_000, open: 0 };
  assert.deepEqual(rig.counters.balance('key:k1:day', window), settled);
});

test('F64 a larger prompt is paid for by what the budget has left, else by the answer', async () => {
  const rig = new LimitsRig();
  const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1_000_000)] })]);
  const first = await rig.admit({ id: 'c1', principal, prompt: 100, maxOutputTokens: 100 });
  assert.equal(first?.reserved, 300_000);
  assert.equal(await first.outputAfter({ freshInputTokens: 90 }), undefined);
  assert.equal(await first.outputAfter({ freshInputTokens: 600 }), undefined);
  assert.equal(first.reserved, 800_000);
  const second = await rig.admit({ id: 'c2', principal, prompt: 10, maxOutputTokens: 90 });
  // 190,000 are held and no 10,000 more are left: of the 90 tokens 45 can be paid.
  assert.equal(await second?.outputAfter({ freshInputTokens: 100 }), 45);
  rig.settle(first, { freshInputTokens: 600, outputTokens: 10 });
  rig.settle(second, { freshInputTokens: 100, outputTokens: 45 });
  const { window } = first.budgets[0] ?? { window: '' };
  assert.deepEqual(await rig.counters.balance('key:k1:day', window), { settled: 810_000, open: 0 });
});

for (const [how, reserve] of [
  ['throw', () => assert.fail('the counters are gone')],
  ['reject', () => Promise.reject(new Error('the counters are gone'))],
] as const) {
  test(`K2 E18 counters that ${how} admit nobody who has limits, and hold up nobody else`, async () => {
    const rig = new LimitsRig();
    rig.counters.reserve = reserve;
    const limited = principalOf([heldBy('k1', { limits: [{ kind: 'requests', amount: 9 }] })]);
    assert.equal(
      (await refusalOf(rig, { id: 'c1', principal: limited })).code,
      'store_unavailable',
    );
    assert.equal(await rig.admit({ id: 'c2', principal: principalOf([]) }), undefined);
  });
}

/** What becomes of one call, and when. */
const fate = fc.record({
  prompt: fc.integer({ min: 1, max: 400 }),
  cap: fc.integer({ min: 1, max: 900 }),
  /** Shares of the prompt's guess and of the cap, in percent. */
  input: fc.integer({ min: 50, max: 100 }),
  output: fc.integer({ min: 0, max: 100 }),
  end: fc.constantFrom('ok', 'unbilled', 'twice', 'crash'),
  /** After how many other calls it ends. */
  lasts: fc.integer({ min: 0, max: 60 }),
});

test('Q1 Q2 Q3 F81 any calls, ends and crashes: spent and held never exceed the budget, and the ledger agrees', async (t) => {
  const budget = 40_000_000;
  await checkAsync(t, fc.array(fate, { minLength: 1, maxLength: 1000 }), async (fates) => {
    const store = memoryStore();
    let rig = new LimitsRig();
    const principal = principalOf([heldBy('k1', { budgets: [budgetOf(budget, 'ever')] })]);
    let running: { readonly until: number; end(): Promise<void> }[] = [];
    const check = async (): Promise<void> => {
      const { settled, open } = await rig.counters.balance('key:k1:ever', 'ever');
      assert.ok(settled + open <= budget, `${settled} + ${open}`);
    };
    for (const [i, each] of fates.entries()) {
      const id = `c${i}`;
      for (const ended of running.filter(({ until }) => until <= i)) await ended.end();
      running = running.filter(({ until }) => until > i);
      const input = { id, principal, prompt: each.prompt, maxOutputTokens: each.cap };
      const grant = await rig.admit(input).catch(() => undefined);
      await check();
      if (grant === undefined) continue;
      const used = usageOf(each, grant);
      // What a crash leaves behind is what was noted of the call while it ran.
      const noted = { freshInputTokens: used.freshInputTokens ?? 0, outputTokens: 0 };
      const row = billedRow(id, rig.running(grant, noted));
      await store.calls.open([{ row, seenAt: rig.clock.wall() }]);
      if (each.end === 'crash') {
        running = [];
        await store.calls.settleOrphans(Number.POSITIVE_INFINITY);
        rig = new LimitsRig(() => price, await store.calls.spent(0));
        await check();
        continue;
      }
      const owner = rig;
      const end = async (): Promise<void> => {
        const charged = each.end === 'unbilled' ? {} : used;
        const bill = owner.settle(grant, charged);
        if (each.end === 'twice') owner.settle(grant, charged);
        await store.calls.record([billedRow(id, bill)]);
        if (each.end === 'twice') await store.calls.record([billedRow(id, bill)]);
        await check();
      };
      running.push({ until: i + each.lasts, end });
    }
    for (const ended of running) await ended.end();
    const { settled, open } = await rig.counters.balance('key:k1:ever', 'ever');
    const { calls } = await store.calls.list({ limit: 2000 });
    const costs = calls.reduce((sum, call) => sum + (call.cost?.total ?? 0), 0);
    assert.equal(open, 0);
    assert.equal(settled, costs);
    assert.equal((await store.calls.spent(0))[0]?.nanodollars ?? 0, costs);
  });
});

function usageOf(
  each: { readonly prompt: number; readonly input: number; readonly output: number },
  grant: CallGrant,
): Usage {
  return {
    freshInputTokens: Math.floor((each.prompt * each.input) / 100),
    outputTokens: Math.floor(((grant.outputCap ?? 0) * each.output) / 100),
  };
}

test('H5 F90 when limits are full again is computed by the clock of the gateway, whatever the counters have', async () => {
  for (const aheadMs of [-5000, 0, 5000]) {
    const rig = new LimitsRig();
    rig.aheadMs = aheadMs;
    const principal = principalOf([heldBy('k1', { limits: [{ kind: 'requests', amount: 1 }] })]);
    const fullAt = rig.clock.wall() + 60_000;
    const grant = await rig.admit({ id: 'c1', principal });
    assert.equal(grant?.standings.requests?.fullAt, fullAt);
    const refusal = await refusalOf(rig, { id: 'c2', principal });
    assert.ok(refusal instanceof LimitError);
    assert.equal(refusal.standings.requests?.fullAt, fullAt);
  }
});
