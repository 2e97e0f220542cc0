/** From the receipt of a call to its row in the ledger: cost, counts, attempts, trace, and why it failed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { refusedRow, type RefusedCall } from '../../../src/access/settle.ts';
import type { AttemptReceipt, CallTrace } from '../../../src/core/call.ts';
import { GatewayError, type ErrorCode } from '../../../src/core/errors.ts';
import type { Usage } from '../../../src/core/generation.ts';
import type { Price } from '../../../src/core/money.ts';
import { budgetOf, heldBy, LimitsRig, price, principalOf, targetOf } from './limits-rig.ts';

const used: Usage = { freshInputTokens: 10, outputTokens: 5 };
/** What they cost at 1,000 and 2,000 nanodollars a token. */
const usedCost = 10 * 1000 + 5 * 2000;
const trace: CallTrace = {
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  sampled: true,
  content: false,
  newSpanId: () => 'c'.repeat(16),
  headers: () => [],
};

const dearer = (times: number): Price => ({
  ...price,
  rates: { input: times * 1_000_000, output: times * 2_000_000 },
});

describe('F6 the cost of a call', () => {
  test('is that of the target that answered: its provider and its model', async () => {
    const prices: { readonly [name: string]: Price } = {
      'p/m': price,
      'p/large': dearer(10),
      'q/m': dearer(3),
    };
    const rig = new LimitsRig((model, provider) => prices[`${provider}/${model}`]);
    const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
    for (const [provider, model, times] of [
      ['p', 'm', 1],
      ['p', 'large', 10],
      ['q', 'm', 3],
    ] as const) {
      const asked = rig.asked({ id: `${provider}${model}`, principal, maxOutputTokens: 5 });
      const targets = [
        { provider: 'p', model: 'm' },
        { provider: 'p', model: 'large' },
        { provider: 'q', model: 'm' },
      ];
      const grant = await rig.admission.admit({ ...asked, size: { ...asked.size, targets } });
      const row = rig.settle(grant, used, { target: targetOf(model, provider) });
      assert.equal(row.cost?.total, times * usedCost, `${provider}/${model}`);
      assert.deepEqual([row.provider, row.upstreamModel], [provider, model]);
    }
  });

  test('is unknown where the price is: absent, not zero; nothing used costs nothing', () => {
    const rig = new LimitsRig(() => undefined);
    const row = rig.settle(undefined, used);
    assert.deepEqual(['cost' in row, 'price' in row], [false, false]);
    const unused = rig.settle(undefined, {});
    assert.deepEqual([unused.cost?.total, 'price' in unused], [0, false]);
    const unasked = rig.settle(undefined, {}, { target: undefined, reported: undefined });
    assert.equal(unasked.cost?.total, 0);
    assert.deepEqual(['provider' in unasked, 'reported' in unasked], [false, false]);
  });

  test('is that of the service tier that the provider reports, else of the requested one', async () => {
    const service = new Map([
      ['standard', price],
      ['priority', dearer(4)],
      ['flex', { ...price, rates: { input: 500_000, output: 1_000_000 } }],
    ]);
    const rig = new LimitsRig(() => ({ ...price, service }));
    rig.serviceTier = 'priority';
    const principal = principalOf([heldBy('k1', { budgets: [budgetOf(1e9)] })]);
    const cost = async (reported: string | undefined): Promise<number | undefined> => {
      const asked = rig.asked({ id: `tier ${reported}`, principal, maxOutputTokens: 5 });
      const size = { ...asked.size, serviceTier: () => 'priority' };
      const grant = await rig.admission.admit({ ...asked, size });
      const serviceTier = reported === undefined ? {} : { serviceTier: reported };
      return rig.settle(grant, { ...used, ...serviceTier }).cost?.total;
    };
    assert.equal(await cost(undefined), 4 * usedCost);
    assert.equal(await cost('flex'), usedCost / 2);
    assert.equal(await cost('default'), usedCost);
    assert.equal(rig.settle(undefined, used).cost?.total, 4 * usedCost, 'without a budget');
  });

  test('R5 includes the hedged request that was canceled, at its own price', () => {
    const rig = new LimitsRig((model) => (model === 'm' ? price : dearer(3)));
    const secondary = [{ target: targetOf('n', 'q'), charged: { freshInputTokens: 10 } }];
    const open = rig.settle(undefined, used, { secondary });
    assert.equal('cost' in open, false, 'no count of its output: the sum is unknown');
    const counted = [{ target: targetOf('n', 'q'), charged: used }];
    const row = rig.settle(undefined, used, { secondary: [...counted, ...counted] });
    assert.equal(row.cost?.total, usedCost + 2 * 3 * usedCost);
    assert.deepEqual(row.charged, used, 'the counts are those of the answer');
    const note =
      'cost: includes q/n, a second request that was cancelled after 10 input and 5 output tokens';
    assert.equal(row.notes, `${note}; ${note}`);
  });

  test('F2 includes what advisors used, at the prices of their models', () => {
    const listed = new Map([
      ['m', price],
      ['n', dearer(3)],
    ]);
    const rig = new LimitsRig((model) => listed.get(model));
    const advice = [{ model: 'n', usage: used }];
    const row = rig.settle(undefined, { ...used, advice });
    assert.equal(row.cost?.total, usedCost + 3 * usedCost);
    assert.deepEqual(row.charged, used, 'the counts are those of the answer');
    assert.equal(
      row.notes,
      'cost: includes n, which was asked for advice, with 10 input and 5 output tokens',
    );
    const unknown = rig.settle(undefined, { ...used, advice: [{ model: 'x', usage: used }] });
    assert.equal('cost' in unknown, false, 'one price is unknown, and so is the sum');
  });

  test('K6 R5 the tokens of both requests count for the limit of tokens', async () => {
    const rig = new LimitsRig();
    const limits = [{ kind: 'tokens', amount: 10_000 } as const];
    const principal = principalOf([heldBy('k1', { limits })]);
    const grant = await rig.admit({ id: 'c1', principal, maxOutputTokens: 100 });
    rig.settle(grant, used, { secondary: [{ target: targetOf('n'), charged: used }] });
    const next = await rig.admit({ id: 'c2', principal, prompt: 0, maxOutputTokens: 0 });
    assert.equal(next?.standings.tokens?.remaining, 10_000 - 2 * 15);
  });
});

describe('F6 what is billed and not reported', () => {
  const perImage = 3_000_000_000;
  const webSearch = 10_000_000_000;

  test('is counted from the request where it has a price', () => {
    const rig = new LimitsRig(() => ({ ...price, perImage, webSearch }));
    [rig.images, rig.searches] = [2, 1];
    const row = rig.settle(undefined, used);
    assert.deepEqual(row.charged, { ...used, images: 2, webSearches: 1 });
    assert.equal(row.cost?.total, usedCost + 2 * 3_000_000 + 10_000_000);
  });

  test('is not counted where the provider reports it, be it none', () => {
    const rig = new LimitsRig(() => ({ ...price, webSearch }));
    rig.searches = 1;
    for (const webSearches of [0, 4]) {
      const row = rig.settle(undefined, { ...used, webSearches });
      assert.equal(row.charged.webSearches, webSearches);
      assert.equal(row.cost?.total, usedCost + webSearches * 10_000_000);
    }
  });

  test('is absent where it has no price, or the request has none', () => {
    const unpriced = new LimitsRig();
    [unpriced.images, unpriced.searches] = [2, 1];
    assert.deepEqual(unpriced.settle(undefined, used).charged, used);
    const none = new LimitsRig(() => ({ ...price, perImage, webSearch }));
    assert.deepEqual(none.settle(undefined, used).charged, used);
  });

  test('is billed again with each request of one answer', () => {
    const rig = new LimitsRig(() => ({ ...price, perImage, webSearch }));
    [rig.images, rig.searches] = [2, 1];
    const all = { freshInputTokens: 20, outputTokens: 10, earlier: [used] };
    const row = rig.settle(undefined, all);
    assert.deepEqual([row.charged.images, row.charged.webSearches], [4, 2]);
    assert.equal(row.cost?.total, 2 * usedCost + 4 * 3_000_000 + 2 * 10_000_000);
  });

  test('is billed with a hedged request as well', () => {
    const rig = new LimitsRig(() => ({ ...price, perImage }));
    rig.images = 2;
    const secondary = [{ target: targetOf('n'), charged: used }];
    const row = rig.settle(undefined, used, { secondary });
    assert.equal(row.cost?.total, 2 * (usedCost + 2 * 3_000_000));
    assert.equal(row.charged.images, 2);
  });
});

test('issue 8.3 the row of a traced call names its trace, and whether its spans are exported', () => {
  const rig = new LimitsRig();
  const row = rig.settle(undefined, used, {}, { trace });
  assert.deepEqual([row.traceId, row.sampled], [trace.traceId, true]);
  const unsampled = rig.settle(undefined, used, {}, { trace: { ...trace, sampled: false } });
  assert.deepEqual([unsampled.traceId, 'sampled' in unsampled], [trace.traceId, false]);
  assert.ok(!('traceId' in rig.settle(undefined, used)));
});

test('F8 Q3 a settlement writes one row, with what is known of the call and nothing else', () => {
  const rig = new LimitsRig();
  const plain = rig.settle(undefined, used);
  for (const name of ['error', 'failure', 'suspect', 'firstEventMs', 'notes', 'team', 'user']) {
    assert.ok(!(name in plain), name);
  }
  assert.deepEqual([plain.budgets, 'reservedNanodollars' in plain], [[], false]);
  const full = rig.settle(
    undefined,
    used,
    {
      suspect: true,
      usageSource: 'estimated',
      firstEventMs: 12.345,
      totalMs: 99.96,
      notes: [
        { path: 'messages.0', what: 'lost', why: 'one' },
        { path: 'seed', what: 'changed', why: 'two' },
      ],
    },
    {
      caller: principalOf([], { team: 'red' }),
      labels: { tags: ['t'], user: 'u', metadata: '{"a":1}' },
    },
  );
  assert.deepEqual(
    [full.suspect, full.usageSource, full.firstEventMs, full.totalMs],
    [true, 'estimated', 12.3, 100],
  );
  assert.equal(full.notes, 'messages.0: dropped, one; seed: changed, two');
  assert.deepEqual(
    [full.team, full.user, full.metadata, full.tags],
    ['red', 'u', '{"a":1}', ['t']],
  );
  assert.deepEqual(rig.recorded, [plain, full]);
});

test('A4 a failed call has a reason, an ended one has none, and a slow reader is its own', () => {
  const rig = new LimitsRig();
  const failure = new GatewayError('timeout', 'No answer in time.');
  const failed = rig.settle(
    undefined,
    {},
    {
      outcome: 'failed',
      status: 504,
      error: 'timeout',
      failure,
    },
  );
  assert.deepEqual([failed.status, failed.error], [504, 'timeout']);
  assert.deepEqual(failed.failure, { fault: 'provider', message: 'No answer in time.' });
  const unread = rig.settle(undefined, used, { outcome: 'failed', error: 'interrupted' });
  assert.equal(unread.failure?.fault, 'client');
  const left = rig.settle(undefined, used, { outcome: 'canceled', status: undefined });
  assert.deepEqual(['failure' in left, 'status' in left], [false, false]);
});

test('A4 R5 attempts have wall times, the words for the operator, and what may be billed', () => {
  const rig = new LimitsRig();
  const detail = 'The provider said: 503.';
  const attempt: AttemptReceipt = {
    target: { ...targetOf('n', 'q'), credential: 'second' },
    startedAt: 130.6,
    ms: 20.06,
    status: 503,
    outcome: 'failed',
    error: 'upstream_unavailable',
    failure: new GatewayError('upstream_unavailable', 'Try again.', { detail }),
    reported: { freshInputTokens: 3 },
    maybeBilled: true,
    spanId: undefined,
    firstEventMs: undefined,
    said: undefined,
    cut: undefined,
  };
  const plain: AttemptReceipt = {
    ...attempt,
    target: targetOf('m'),
    status: undefined,
    outcome: 'ok',
    error: undefined,
    failure: undefined,
    reported: undefined,
    maybeBilled: false,
  };
  const call = { startedAt: 100, startedWall: 5000 };
  const row = rig.settle(undefined, used, { attempts: [attempt, plain] }, call);
  assert.equal(row.attempts, 2);
  assert.deepEqual(row.attemptRows, [
    {
      provider: 'q',
      upstreamModel: 'n',
      startedAt: 5031,
      ms: 20.1,
      outcome: 'failed',
      credential: 'second',
      status: 503,
      error: 'upstream_unavailable',
      failure: { fault: 'provider', message: detail },
      reported: { freshInputTokens: 3 },
      maybeBilled: true,
    },
    { provider: 'p', upstreamModel: 'm', startedAt: 5031, ms: 20.1, outcome: 'ok' },
  ]);
});

test('F81 the row of a running call is one that a crash interrupted, with what it cost so far', () => {
  const row = new LimitsRig().running(undefined, used);
  assert.deepEqual(
    [row.outcome, row.error, row.failure?.fault, row.attempts, row.cost?.total],
    ['failed', 'interrupted', 'gateway', 1, usedCost],
  );
});

describe('F8 a refused call', () => {
  const refused = (code: ErrorCode, more: Partial<RefusedCall> = {}): RefusedCall => ({
    id: 'c1',
    startedWall: 5000,
    principal: principalOf([], { team: 'red', tags: ['own'] }),
    trace: undefined,
    tags: ['named'],
    endpoint: 'openai-chat',
    model: 'm'.repeat(300),
    stream: true,
    error: new GatewayError(code, 'No.'),
    status: 429,
    totalMs: 1.26,
    ...more,
  });

  test('has a row of its own: no attempt, known to cost nothing', () => {
    assert.deepEqual(refusedRow(refused('rate_limited')), {
      id: 'c1',
      startedAt: 5000,
      keyId: 'k1',
      team: 'red',
      tags: ['own', 'named'],
      endpoint: 'openai-chat',
      model: 'm'.repeat(256),
      stream: true,
      outcome: 'failed',
      error: 'rate_limited',
      failure: { fault: 'provider', message: 'No.' },
      status: 429,
      attempts: 0,
      attemptRows: [],
      budgets: [],
      cost: { total: 0, input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: 0 },
      charged: {},
      usageSource: 'reported',
      totalMs: 1.3,
    });
  });

  test('whose client left is no failure, and has no status; a traced one names its trace', () => {
    const principal = principalOf([]);
    const row = refusedRow(refused('canceled', { status: undefined, principal, trace }));
    assert.equal(row.outcome, 'canceled');
    assert.deepEqual(
      ['failure' in row, 'status' in row, 'team' in row, row.traceId, row.sampled],
      [false, false, false, trace.traceId, true],
    );
  });
});
