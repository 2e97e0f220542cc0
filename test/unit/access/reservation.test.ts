/** What a call with a budget reserves, and what it is refused for since its cost has no known bound (Q1, F6, X-4). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Reservation, type RequestedSize } from '../../../src/access/reservation.ts';
import type { Price, Rates } from '../../../src/core/money.ts';
import type { RaisedCost } from '../../../src/core/policy.ts';

const priceOf = (rates: Partial<Rates> = {}, more: Partial<Price> = {}): Price => ({
  rates: { input: 1000, output: 10_000, ...rates },
  tiers: [],
  source: 'test',
  ...more,
});

/** One nanodollar a token of the prompt, ten a token of the answer. */
const price = priceOf();
const free = priceOf({ input: 0, output: 0 });

const size = (more: Partial<RequestedSize> = {}): RequestedSize => ({
  targets: [{ provider: 'p', model: 'm' }],
  maxOutputTokens: 100,
  choices: 1,
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
  ...more,
});

const raised = (more: Partial<RaisedCost>): Partial<RequestedSize> => ({
  raised: () => ({
    outputAtLeast: 0,
    extraOutput: 0,
    prompt: 0,
    answers: 1,
    requests: 1,
    ...more,
  }),
});

describe('F6 X-4 a call is refused for a budget by the member whose cost has no known bound', () => {
  const refused = (
    asked: Partial<RequestedSize>,
    prices: readonly Price[],
    member: string,
  ): void => {
    assert.throws(() => new Reservation(size(asked), prices).assertPriced(), {
      code: 'invalid_request',
      reason: 'price_unknown',
      path: [member],
    });
  };
  const taken = (asked: Partial<RequestedSize>, prices: readonly Price[]): void =>
    new Reservation(size(asked), prices).assertPriced();

  test('other models', () => {
    const others = { others: () => ({ member: 'models', names: ['x'] }) };
    refused(others, [price], 'models');
    refused(others, [free], 'models');
  });

  test('sound and pictures without a rate of their own', () => {
    const sounding = raised({ sound: 'audio' });
    const pictured = raised({ pictures: 'modalities' });
    refused(sounding, [price], 'audio');
    refused(pictured, [price], 'modalities');
    refused(sounding, [priceOf({ imageOutput: 1 })], 'audio');
    refused(pictured, [priceOf({ audioOutput: 1 })], 'modalities');
    taken(sounding, [priceOf({ audioOutput: 1 })]);
    taken(pictured, [priceOf({ imageOutput: 1 })]);
    taken(sounding, [free]);
    const targets = [
      { provider: 'p', model: 'm' },
      { provider: 'p', model: 'n' },
    ];
    refused({ ...sounding, targets }, [priceOf({ audioOutput: 1 }), price], 'audio');
    taken({ ...sounding, targets }, [priceOf({ audioOutput: 1 }), free]);
  });

  test('what has no bound at all, unless it is free', () => {
    const unbounded = raised({ unbounded: 'mcp_servers' });
    refused(unbounded, [price], 'mcp_servers');
    taken(unbounded, [free]);
    taken(raised({}), [price]);
  });

  test('an answer without a cap by a model whose limit is unknown, unless it is free', () => {
    const uncapped = { uncapped: true, maxOutputTokens: undefined };
    refused(uncapped, [price], 'model');
    taken(uncapped, [free]);
    taken({ ...uncapped, uncapped: false }, [price]);
    taken({ ...uncapped, targets: [{ provider: 'p', model: 'm', maxOutputTokens: 9 }] }, [price]);
    taken({ uncapped: true }, [price]);
  });

  test('a service tier without a price of its own', () => {
    const fast = { serviceTier: () => 'fast', expensiveBy: () => 'speed' };
    refused(fast, [price], 'speed');
    refused(fast, [priceOf({}, { service: new Map([['priority', price]]) })], 'speed');
    taken(fast, [priceOf({}, { service: new Map([['fast', price]]) })]);
    taken(fast, [free]);
    taken({ serviceTier: () => 'fast' }, [price]);
  });

  test('searches without a price, by a model that is not free, or where the target surely runs them', () => {
    const searches = (sure?: readonly boolean[]): Partial<RequestedSize> => ({
      targets: [
        { provider: 'p', model: 'm' },
        { provider: 'q', model: 'm' },
      ],
      searches: () => ({ member: 'tools', most: 2, ...(sure === undefined ? {} : { sure }) }),
    });
    const priced = priceOf({}, { webSearch: 1 });
    taken(searches(), [priced, priced]);
    refused(searches(), [priced, price], 'tools');
    taken(searches(), [priced, free]);
    taken(searches([true, false]), [priced, free]);
    refused(searches([false, true]), [priced, free], 'tools');
    taken({ ...searches(), searches: () => undefined }, [price, price]);
  });
});

describe('Q1 what members of a request add is reserved', () => {
  const cost = (asked: Partial<RequestedSize>, prices: readonly Price[] = [price]): number =>
    new Reservation(size(asked), prices).cost();

  test('output beyond the cap, hidden answers, prompts of tools and requests', () => {
    assert.equal(cost({}), 50 + 1000);
    assert.equal(cost({ choices: 3 }), 50 + 3000);
    assert.equal(cost(raised({ outputAtLeast: 300 })), 50 + 3000);
    assert.equal(cost(raised({ outputAtLeast: 30 })), 50 + 1000);
    assert.equal(cost(raised({ extraOutput: 20 })), 50 + 1200);
    assert.equal(cost(raised({ answers: 4 })), 50 + 4000);
    assert.equal(cost({ ...raised({ answers: 4 }), choices: 5 }), 50 + 5000);
    assert.equal(cost(raised({ prompt: 7 })), 57 + 1000);
    assert.equal(cost(raised({ requests: 3 })), 3 * 1050);
  });

  test('the most expensive target, and the exact sum up to the largest number', () => {
    assert.equal(cost({}, [price, priceOf({ output: 20_000 }), free]), 50 + 2000);
    for (const hedged of [false, true]) {
      const endless = { maxOutputTokens: Number.MAX_SAFE_INTEGER, hedged };
      const huge = cost({ ...raised({ requests: 1000 }), ...endless });
      assert.ok(Number.isSafeInteger(huge), `${huge}`);
      assert.ok(huge > Number.MAX_SAFE_INTEGER / 4);
    }
  });

  test('cache writes, media and images, where the price has a rate for them', () => {
    const asked = { cacheWrites: () => 'long' as const, media: () => true, images: () => 2 };
    assert.equal(cost(asked), 50 + 1000);
    assert.equal(cost(asked, [priceOf({ cacheWriteLong: 3000 })]), 150 + 1000);
    assert.equal(cost(asked, [priceOf({ audioInput: 5000 })]), 250 + 1000);
    assert.equal(cost(asked, [priceOf({}, { perImage: 7000 })]), 50 + 1000 + 14);
    const unread = (): never => assert.fail('the body is not searched in vain');
    assert.equal(cost({ cacheWrites: unread, media: unread, images: unread }), 50 + 1000);
  });

  test('searches of all answers, with what they find', () => {
    const asked = { choices: 2, searches: () => ({ member: 'tools', most: 3 }) };
    const found = 6 * 10_000;
    assert.equal(cost(asked, [priceOf({}, { webSearch: 4000 })]), 50 + found + 2000 + 6 * 4);
  });
});

describe('Q1 an answer is lowered to what is left', () => {
  const reservation = (asked: Partial<RequestedSize> = {}): Reservation =>
    new Reservation(size(asked), [price]);

  test('to the last token that it pays for', () => {
    for (const [left, output] of [
      [50 + 400, 40],
      [50 + 399, 39],
      [50 + 160, 16],
    ] as const) {
      const lowered = reservation();
      assert.equal(lowered.shrink(left, 16), true);
      assert.deepEqual([lowered.output, lowered.lowered], [output, true]);
      assert.equal(lowered.cost(), 50 + output * 10);
    }
  });

  test('never below the least of use, and then not at all', () => {
    const kept = reservation();
    assert.equal(kept.shrink(50 + 159, 16), false);
    assert.deepEqual([kept.output, kept.lowered, kept.cost()], [100, false, 1050]);
    assert.equal(reservation({ maxOutputTokens: 15 }).shrink(1e9, 16), false);
    assert.equal(reservation({ maxOutputTokens: 16 }).shrink(50 + 160, 16), true);
  });

  test('of each of several answers', () => {
    const lowered = reservation({ choices: 2 });
    assert.equal(lowered.shrink(50 + 400, 1), true);
    assert.equal(lowered.output, 20);
  });
});

test('Q1 the cap is that of the client, else the largest of the models, else 4096', () => {
  const capOf = (own: number | undefined, ...limits: readonly (number | undefined)[]) => {
    const targets = limits.map((limit, i) => ({
      provider: 'p',
      model: `m${i}`,
      ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    }));
    const { output, origin } = new Reservation(size({ targets, maxOutputTokens: own }), []);
    return [output, origin];
  };
  assert.deepEqual(capOf(7, 9000), [7, 'client']);
  assert.deepEqual(capOf(undefined, 8000, 9000, 10), [9000, 'model']);
  assert.deepEqual(capOf(undefined, 8000, undefined), [4096, 'default']);
});

test('K6 a token limit takes the prompt and all answers, at most the whole bucket', () => {
  const taken = (bucket: number, asked: Partial<RequestedSize> = {}): number | undefined =>
    new Reservation(size(asked), []).tokensFrom(bucket);
  assert.equal(taken(1000), 150);
  assert.equal(taken(1000, { choices: 3 }), 350);
  assert.equal(taken(120), 120);
  assert.equal(taken(50), 50);
  assert.equal(taken(49), undefined, 'the prompt alone never fits');
  // A model may be able to write far more than it does: its own limit counts as the default at most.
  const targets = [{ provider: 'p', model: 'm', maxOutputTokens: 64_000 }];
  assert.equal(taken(100_000, { targets, maxOutputTokens: undefined }), 50 + 4096);
  assert.equal(taken(100_000, { maxOutputTokens: 64_000 }), 50 + 64_000);
});

test('Q1 an exact count of the prompt is taken where it is smaller, and changes the cost', async () => {
  const counted = async (exact: number | undefined): Promise<readonly unknown[]> => {
    const reservation = new Reservation(size({ promptExactly: async () => exact }), [price]);
    assert.equal(reservation.cost(), 1050);
    return [await reservation.countExactly(), reservation.prompt, reservation.cost()];
  };
  assert.deepEqual(await counted(40), [true, 40, 1040]);
  for (const none of [50, 60, undefined]) assert.deepEqual(await counted(none), [false, 50, 1050]);
});

test('X-4 what similar calls cost beyond their reservations is reserved once a request', () => {
  assert.equal(new Reservation(size(), [price], 500).cost(), 1550);
  assert.equal(new Reservation(size({ hedged: true }), [price], 500).cost(), 3100);
});
