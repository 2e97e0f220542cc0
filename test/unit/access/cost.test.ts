import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import * as fc from 'fast-check';
import {
  cacheSavingOf,
  costOf,
  maxCost,
  noCost,
  type BilledTokens,
} from '../../../src/access/cost.ts';
import { addUsage } from '../../../src/core/generation.ts';
import type { Price, Rates } from '../../../src/core/money.ts';
import { check } from '../../support/checking.ts';

/** $3 in, $15 out, reads at a tenth, writes at 1.25 and 2 times. */
const sonnet: Price = {
  rates: {
    input: 3_000_000,
    output: 15_000_000,
    cacheRead: 300_000,
    cacheWrite: 3_750_000,
    cacheWriteLong: 6_000_000,
  },
  tiers: [],
  source: 'test',
};

function priced(rates: Partial<Rates>, rest: Partial<Price> = {}): Price {
  return { rates: { input: 0, output: 0, ...rates }, tiers: [], source: 'test', ...rest };
}

describe('F6 what a call costs', () => {
  it('F2 is the sum of four rates', () => {
    const usage = {
      freshInputTokens: 3,
      cacheReadTokens: 0,
      cacheWriteTokens: 12_304,
      outputTokens: 550,
    };
    assert.deepEqual(costOf(sonnet, usage), {
      total: 54_399_000, // 3 × $3 + 12,304 × $3.75 + 550 × $15, a million: $0.054399
      input: 9_000,
      cacheRead: 0,
      cacheWrite: 46_140_000,
      output: 8_250_000,
      reasoning: 0,
      call: 0,
    });
  });

  it('charges what is written for an hour apart from the rest of what is written', () => {
    const usage = {
      freshInputTokens: 0,
      cacheReadTokens: 100_000,
      cacheWriteTokens: 1000,
      cacheWriteLongTokens: 400,
      outputTokens: 0,
    };
    const cost = costOf(sonnet, usage);
    assert.equal(cost?.cacheRead, 30_000_000);
    assert.equal(cost?.cacheWrite, 600 * 3750 + 400 * 6000);
    assert.equal(cost?.total, 30_000_000 + 2_250_000 + 2_400_000);
  });

  it('issue 24 a cache saved what the prompt would have cost without it, to the nanodollar', () => {
    const usage = { freshInputTokens: 1, cacheReadTokens: 100_000, outputTokens: 9 };
    assert.equal(cacheSavingOf(sonnet, usage), 100_000 * 2700);
    // Writing costs more than it saves until it is read.
    const written = { cacheReadTokens: 0, cacheWriteTokens: 1000, outputTokens: 0 };
    assert.equal(cacheSavingOf(sonnet, written), -1000 * 750);
    const forAnHour = { ...written, cacheWriteLongTokens: 400 };
    assert.equal(cacheSavingOf(sonnet, forAnHour), -600 * 750 - 400 * 3000);
    assert.equal(cacheSavingOf(sonnet, { freshInputTokens: 5, outputTokens: 1 }), undefined);
    assert.equal(cacheSavingOf(sonnet, { cacheReadTokens: 5 }), undefined, 'the cost is unknown');
    // The same tier, whether or not the prompt is cached.
    const tiered = priced(
      { input: 10, cacheRead: 1 },
      { tiers: [{ above: 100, rates: { input: 20_000, output: 0, cacheRead: 2000 } }] },
    );
    assert.equal(cacheSavingOf(tiered, { cacheReadTokens: 101, outputTokens: 0 }), 101 * 18);
    const two = { cacheReadTokens: 3000, outputTokens: 2 };
    const earlier = [{ cacheReadTokens: 1000, outputTokens: 1 }];
    assert.equal(cacheSavingOf(sonnet, { ...two, earlier }), 3000 * 2700);
  });

  it('takes more expensive rates where one is absent: a read and a write as input, a long write as a write', () => {
    const usage = {
      freshInputTokens: 1000,
      cacheReadTokens: 1000,
      cacheWriteTokens: 2000,
      cacheWriteLongTokens: 1000,
      outputTokens: 0,
    };
    assert.equal(costOf(priced({ input: 2_000_000 }), usage)?.total, 8_000_000);
    const cost = costOf(priced({ input: 2_000_000, cacheWrite: 3_000_000 }), usage);
    assert.equal(cost?.cacheWrite, 6_000_000);
  });

  it('charges reasoning as output unless the price says otherwise; it is a part of the output', () => {
    const usage = { freshInputTokens: 0, outputTokens: 1000, reasoningTokens: 400 };
    const same = costOf(priced({ output: 8_000_000 }), usage);
    assert.deepEqual(
      [same?.output, same?.reasoning, same?.total],
      [4_800_000, 3_200_000, 8_000_000],
    );
    const other = costOf(priced({ output: 8_000_000, reasoning: 3_000_000 }), usage);
    assert.deepEqual(
      [other?.output, other?.reasoning, other?.total],
      [4_800_000, 1_200_000, 6_000_000],
    );
  });

  it('adds what each call costs', () => {
    const cost = costOf(priced({ input: 1_000_000 }, { call: 12_000_000_000 }), {
      freshInputTokens: 1,
      outputTokens: 1,
    });
    assert.deepEqual([cost?.call, cost?.total], [12_000_000, 12_001_000]);
  });

  it('adds the web searches that the vendor reports', () => {
    const cost = costOf(priced({}, { webSearch: 10_000_000_000 }), {
      freshInputTokens: 1,
      outputTokens: 1,
      webSearches: 3,
    });
    assert.deepEqual([cost?.call, cost?.total], [30_000_000, 30_000_000]);
  });

  it('adds each picture of the prompt at its price', () => {
    const cost = costOf(priced({ input: 1_000_000 }, { perImage: 3_000_000_000 }), {
      freshInputTokens: 10,
      outputTokens: 1,
      images: 2,
    });
    assert.deepEqual([cost?.input, cost?.call, cost?.total], [10_000, 6_000_000, 6_010_000]);
  });

  it('goes by the tier of the whole prompt, cached tokens included', () => {
    const price = priced(
      { input: 1_250_000, output: 10_000_000, cacheRead: 125_000 },
      {
        tiers: [
          {
            above: 200_000,
            rates: { input: 2_500_000, output: 15_000_000, cacheRead: 250_000 },
          },
        ],
      },
    );
    const below = { freshInputTokens: 100_000, cacheReadTokens: 100_000, outputTokens: 1000 };
    assert.equal(costOf(price, below)?.total, 125_000_000 + 12_500_000 + 10_000_000);
    const above = { ...below, cacheReadTokens: 100_001 };
    assert.equal(costOf(price, above)?.total, 250_000_000 + 25_000_250 + 15_000_000);
  });

  it('rounds the sum once, half up', () => {
    const price = priced({ input: 1, output: 1, cacheRead: 1 });
    const each = (tokens: number): BilledTokens => ({
      freshInputTokens: tokens,
      cacheReadTokens: tokens,
      outputTokens: tokens,
    });
    assert.equal(costOf(price, each(166))?.total, 0); // 498 picodollars
    assert.deepEqual(costOf(price, each(167)), { ...noCost, total: 1 }); // 501
    assert.equal(costOf(price, { freshInputTokens: 500, outputTokens: 0 })?.total, 1);
    assert.equal(costOf(price, { freshInputTokens: 499, outputTokens: 0 })?.total, 0);
  });

  it('is exact beyond 2^53 picodollars', () => {
    const price = priced({ input: 5_000_000_001 });
    const usage = { freshInputTokens: 999_999_999, outputTokens: 0 };
    assert.equal(costOf(price, usage)?.total, 4_999_999_996_000_000);
    assert.equal(
      maxCost(price, { promptTokens: 999_999_999, outputTokens: 0 }),
      4_999_999_996_000_000,
    );
  });

  it('does not trust parts that are more than their whole', () => {
    const usage = {
      cacheWriteTokens: 10,
      cacheWriteLongTokens: 99,
      outputTokens: 10,
      reasoningTokens: 99,
    };
    const cost = costOf(sonnet, usage);
    assert.equal(cost?.total, 10 * 6000 + 10 * 15_000);
  });
});

describe('F6 absent is not zero', () => {
  it('a cost without known input or output is not known', () => {
    assert.equal(costOf(sonnet, {}), undefined);
    assert.equal(costOf(sonnet, { freshInputTokens: 5 }), undefined);
    assert.equal(costOf(sonnet, { outputTokens: 5 }), undefined);
    assert.equal(costOf(priced({ input: 1 }), { outputTokens: 5 }), undefined);
    assert.equal(costOf(priced({ cacheRead: 1 }), { outputTokens: 5 }), undefined);
    assert.equal(costOf(priced({ reasoning: 1 }), { freshInputTokens: 5 }), undefined);
  });

  it('what is free costs nothing, however much it was', () => {
    assert.deepEqual(costOf(priced({}), {}), noCost);
    assert.equal(costOf(priced({ output: 1_000_000 }), { outputTokens: 5 })?.total, 5000);
    const laterDear = { above: 9, rates: { input: 1, output: 0 } };
    assert.equal(costOf(priced({}, { tiers: [laterDear] }), { outputTokens: 5 }), undefined);
  });

  it('one known input class is enough: the upstream does not tell them apart', () => {
    assert.equal(costOf(sonnet, { cacheReadTokens: 10, outputTokens: 0 })?.total, 3000);
  });
});

describe('F6 what a call may cost at most', () => {
  it('assumes no discount, and the most expensive write unless told which writes there can be', () => {
    const most = { promptTokens: 1000, outputTokens: 100 };
    const output = 100 * 15_000;
    assert.equal(maxCost(sonnet, most), 1000 * 6000 + output);
    assert.equal(maxCost(sonnet, { ...most, cacheWrites: 'long' }), 1000 * 6000 + output);
    assert.equal(maxCost(sonnet, { ...most, cacheWrites: 'usual' }), 1000 * 3750 + output);
    assert.equal(maxCost(sonnet, { ...most, cacheWrites: 'none' }), 1000 * 3000 + output);
  });

  it('litellm#40002: assumes the tier that the prompt can reach', () => {
    const price = priced(
      { input: 1_000_000, output: 4_000_000 },
      { tiers: [{ above: 200_000, rates: { input: 2_000_000, output: 6_000_000 } }] },
    );
    assert.equal(maxCost(price, { promptTokens: 200_000, outputTokens: 0 }), 200_000_000);
    assert.equal(maxCost(price, { promptTokens: 200_001, outputTokens: 0 }), 400_002_000);
  });

  it('a cheaper tier does not lower the bound: the prompt may turn out shorter', () => {
    const price = priced(
      { input: 5_000_000, output: 0 },
      { tiers: [{ above: 1000, rates: { input: 1_000_000, output: 0 } }] },
    );
    assert.equal(maxCost(price, { promptTokens: 1001, outputTokens: 0 }), 5_000_000);
  });

  it('rounds up, and takes guesses that are no whole numbers', () => {
    const price = priced({ input: 1, output: 1 });
    assert.equal(maxCost(price, { promptTokens: 0, outputTokens: 0 }), 0);
    assert.equal(maxCost(price, { promptTokens: 1, outputTokens: 0 }), 1);
    assert.equal(maxCost(price, { promptTokens: 999.5, outputTokens: 0.5 }), 2);
  });
});

const rate = fc.oneof(fc.nat(20_000_000), fc.nat(1_000_000_000));
const rates: fc.Arbitrary<Rates> = fc
  .record(
    {
      input: rate,
      output: rate,
      cacheRead: rate,
      cacheWrite: rate,
      cacheWriteLong: rate,
      reasoning: rate,
      audioInput: rate,
      imageInput: rate,
      videoInput: rate,
      audioCacheRead: rate,
      audioOutput: rate,
      imageOutput: rate,
    },
    { requiredKeys: ['input', 'output'] },
  )
  .map((each) => ({ ...each }));
const prices: fc.Arbitrary<Price> = fc
  .record({
    rates,
    tiers: fc.uniqueArray(fc.record({ above: fc.nat(2_000_000), rates }), {
      maxLength: 3,
      selector: ({ above }) => above,
    }),
    call: rate,
    webSearch: rate,
    perImage: rate,
    fileSearch: rate,
  })
  .map(({ tiers, ...rest }) => ({
    ...rest,
    tiers: tiers.toSorted((a, b) => a.above - b.above),
    source: 'test',
  }));
const tokens = fc.oneof(fc.nat(2_000_000), fc.nat(1_000_000_000));
const usages = fc.record({
  freshInputTokens: tokens,
  cacheReadTokens: tokens,
  cacheWriteTokens: tokens,
  cacheWriteLongTokens: tokens,
  outputTokens: tokens,
  reasoningTokens: tokens,
  audioInputTokens: fc.oneof(fc.constant(0), tokens),
  imageInputTokens: fc.oneof(fc.constant(0), tokens),
  videoInputTokens: fc.oneof(fc.constant(0), tokens),
  audioOutputTokens: fc.oneof(fc.constant(0), tokens),
  imageOutputTokens: fc.oneof(fc.constant(0), tokens),
  webSearches: fc.nat(100),
  images: fc.nat(100),
  fileSearches: fc.nat(100),
});

function known(price: Price, usage: BilledTokens): NonNullable<ReturnType<typeof costOf>> {
  const cost = costOf(price, usage);
  assert.ok(cost);
  return cost;
}

/** The same sum in the plainest way: picodollars, in big integers. */
function slowly(
  { rates: base, tiers, call = 0, webSearch = 0, perImage = 0, fileSearch = 0 }: Price,
  usage: Required<Omit<BilledTokens, 'earlier'>>,
): bigint {
  const prompt = usage.freshInputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const r = tiers.findLast(({ above }) => prompt > above)?.rates ?? base;
  const long = Math.min(usage.cacheWriteLongTokens, usage.cacheWriteTokens);
  const reasoning = Math.min(usage.reasoningTokens, usage.outputTokens);
  const write = r.cacheWrite ?? r.input;
  const { freshInputTokens: fresh } = usage;
  const audio = Math.min(usage.audioInputTokens, fresh);
  const image = Math.min(usage.imageInputTokens, fresh - audio);
  const video = Math.min(usage.videoInputTokens, fresh - audio - image);
  const heard = Math.min(usage.audioInputTokens - audio, usage.cacheReadTokens);
  const spoken = Math.min(usage.audioOutputTokens, usage.outputTokens - reasoning);
  const painted = Math.min(usage.imageOutputTokens, usage.outputTokens - reasoning - spoken);
  const read = r.cacheRead ?? r.input;
  const products: readonly (readonly [number, number])[] = [
    [usage.freshInputTokens - audio - image - video, r.input],
    [audio, r.audioInput ?? r.input],
    [image, r.imageInput ?? r.input],
    [video, r.videoInput ?? r.input],
    [usage.cacheReadTokens - heard, read],
    [heard, r.audioCacheRead ?? read],
    [usage.cacheWriteTokens - long, write],
    [long, r.cacheWriteLong ?? write],
    [usage.outputTokens - reasoning - spoken - painted, r.output],
    [spoken, r.audioOutput ?? r.output],
    [painted, r.imageOutput ?? r.output],
    [reasoning, r.reasoning ?? r.output],
    [1, call],
    [usage.webSearches, webSearch],
    [usage.images, perImage],
    [usage.fileSearches, fileSearch],
  ];
  return products.reduce((sum, [count, each]) => sum + BigInt(count) * BigInt(each), 0n);
}

const someAmounts = fc.record({ price: prices, usage: usages });

test('F6 the total is the exact sum, rounded half up to a nanodollar', (t) => {
  check(t, someAmounts, ({ price, usage }) => {
    const exact = (slowly(price, usage) + 500n) / 1000n;
    assert.equal(known(price, usage).total, Number(exact));
  });
});

test('F6 several requests for one answer cost what each of them does, its call and its tier too', (t) => {
  const asked = fc.record({ price: prices, first: usages, second: usages });
  check(t, asked, ({ price, first, second }) => {
    const both = { ...addUsage(first, second), earlier: [first] };
    const apart = known(price, first).total + known(price, second).total;
    assert.equal(known(price, both).total, apart);
  });
});

test('F6 the parts add up to the total but for their own rounding', (t) => {
  check(t, someAmounts, ({ price, usage }) => {
    const { total, ...parts } = known(price, usage);
    const sum = Object.values(parts).reduce((all, part) => all + BigInt(part), 0n);
    const drift = sum - BigInt(total);
    assert.ok(drift >= -4n && drift <= 4n, `${drift}`);
  });
});

test('F6 more of anything within a tier never costs less', (t) => {
  const cases = fc.record({
    price: prices.map((price): Price => ({ ...price, tiers: [] })),
    usage: usages,
    more: fc.constantFrom('freshInputTokens', 'cacheReadTokens', 'outputTokens'),
    by: tokens,
  });
  check(t, cases, ({ price, usage, more, by }) => {
    // More fresh input may make what was heard from a cache fresh, at another rate.
    const plain = { ...usage, audioInputTokens: 0 };
    const grown = { ...plain, [more]: plain[more] + by };
    assert.ok(known(price, grown).total >= known(price, plain).total);
  });
});

test('Q1 no usage within what was reserved costs more than was reserved', (t) => {
  const cases = fc.record({ price: prices, usage: usages, spare: fc.nat(1000) });
  check(t, cases, ({ price, usage, spare }) => {
    const prompt = usage.freshInputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    const most = {
      promptTokens: prompt + spare,
      outputTokens: usage.outputTokens + spare,
      webSearches: usage.webSearches + spare,
      images: usage.images,
    };
    assert.ok(maxCost(price, most) >= known(price, usage).total);
  });
});

test('F6 sound and pictures have rates of their own where they are distinguished', () => {
  const price = priced({
    input: 2_500_000,
    output: 10_000_000,
    cacheRead: 1_000_000,
    audioInput: 32_000_000,
    audioOutput: 64_000_000,
  });
  const usage = { freshInputTokens: 100, cacheReadTokens: 50, outputTokens: 30 };
  const told = { ...usage, audioInputTokens: 80, audioOutputTokens: 20 };
  assert.deepEqual(costOf(price, told), {
    total: 20 * 2500 + 80 * 32_000 + 50 * 1000 + 10 * 10_000 + 20 * 64_000,
    input: 20 * 2500 + 80 * 32_000,
    cacheRead: 50 * 1000,
    cacheWrite: 0,
    output: 10 * 10_000 + 20 * 64_000,
    reasoning: 0,
    call: 0,
  });
  const silent = known(price, { ...usage, audioOutputTokens: 0 });
  assert.equal(silent.output, 30 * 10_000, 'an answer in text');
  assert.equal(
    known(price, usage).output,
    30 * 64_000,
    'nobody says what it is: the most expensive',
  );
  assert.equal(known(price, usage).input, 100 * 2500);
});

test('Q1 a prompt that may be heard is reserved at the rate of sound, one of text is not', () => {
  const price = priced({ input: 2_500_000, output: 10_000_000, audioInput: 32_000_000 });
  const most = { promptTokens: 100, outputTokens: 10 };
  assert.equal(maxCost(price, most), 100 * 32_000 + 10 * 10_000);
  assert.equal(maxCost(price, { ...most, media: false }), 100 * 2500 + 10 * 10_000);
  const speaks = priced({ input: 0, output: 10_000_000, audioOutput: 64_000_000 });
  assert.equal(maxCost(speaks, { ...most, media: false }), 10 * 64_000);
});
