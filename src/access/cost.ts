/**
 * What a call cost, and what it may cost at most. Rates are integer picodollars a token, so each class
 * is an integer product, and only the sum is rounded (half up) to nanodollars. On the path of calls.
 */
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { Cost, Price, Rates } from '../core/price.ts';

/** The counts that cost something. */
export type BilledTokens = Pick<
  Usage,
  | 'freshInputTokens'
  | 'cacheReadTokens'
  | 'cacheWriteTokens'
  | 'cacheWriteLongTokens'
  | 'outputTokens'
  | 'reasoningTokens'
  | 'webSearches'
>;

/** Of a call for which no upstream worked, whatever the price. */
export const noCost: Cost = {
  total: 0,
  input: 0,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: 0,
  call: 0,
};

/**
 * The rates of the whole call go by the length of its whole prompt, cached or not. Absent rates: a cache
 * read and a write cost what fresh input costs, an hour's write what a write costs, reasoning what
 * output costs. Output of a cost is what is left without reasoning.
 *
 * Absent is not zero: without any input count, or without an output count, the cost is unknown
 * (undefined), unless nothing depends on it because it is free. An input class that is absent while
 * another one is known is none: the upstream does not tell them apart.
 */
export function costOf(price: Price, usage: BilledTokens): Cost | undefined {
  const prompt = totalInputTokens(usage);
  const rates = ratesFor(price, prompt ?? 0);
  if (prompt === undefined && !isFreeInput(price)) return undefined;
  if (usage.outputTokens === undefined && !isFreeOutput(price)) return undefined;
  return summed([
    ...inputCharges(rates, usage),
    ...outputCharges(rates, usage),
    [1, price.call ?? 0],
    [usage.webSearches ?? 0, price.webSearch ?? 0],
  ]);
}

function inputCharges(
  rates: Rates,
  usage: BilledTokens,
): readonly [Charge, Charge, Charge, Charge] {
  const write = usage.cacheWriteTokens ?? 0;
  const long = Math.min(usage.cacheWriteLongTokens ?? 0, write);
  const writeRate = rates.cacheWrite ?? rates.input;
  return [
    [usage.freshInputTokens ?? 0, rates.input],
    [usage.cacheReadTokens ?? 0, rates.cacheRead ?? rates.input],
    [write - long, writeRate],
    [long, rates.cacheWriteLong ?? writeRate],
  ];
}

function outputCharges(rates: Rates, usage: BilledTokens): readonly [Charge, Charge] {
  const all = usage.outputTokens ?? 0;
  const reasoning = Math.min(usage.reasoningTokens ?? 0, all);
  return [
    [all - reasoning, rates.output],
    [reasoning, rates.reasoning ?? rates.output],
  ];
}

/** What a request can make of its prompt. */
export interface MostTokens {
  /** The whole prompt, at most. */
  readonly promptTokens: number;
  /** All output, reasoning included, at most; of `n` answers the sum. */
  readonly outputTokens: number;
  /**
   * What the vendor may write to its cache and charge for: nothing, for the usual time, for an hour.
   * Absent = whatever is dearest.
   */
  readonly cacheWrites?: 'none' | 'usual' | 'long';
  /** That the vendor may run, at most; absent = none. */
  readonly webSearches?: number;
}

/**
 * An upper bound in nanodollars, rounded up: no usage with at most so many tokens costs more by `costOf`.
 * Every tier that a prompt up to that length can reach is looked at, the dearest holds; discounts for
 * cached input are never assumed.
 */
export function mostCost(price: Price, most: MostTokens): number {
  const { tiers } = price;
  let dearest = bound(price, most, { rates: price.rates, endsAt: tiers[0]?.above });
  tiers.forEach(({ above, rates }, i) => {
    if (most.promptTokens <= above) return;
    const other = bound(price, most, { rates, endsAt: tiers[i + 1]?.above });
    if (other > dearest) dearest = other;
  });
  return dearest;
}

/** The bound for prompts that these rates hold for. */
function bound(
  price: Price,
  most: MostTokens,
  { rates, endsAt = Number.POSITIVE_INFINITY }: { rates: Rates; endsAt: number | undefined },
): number {
  const charges: readonly Charge[] = [
    [Math.ceil(Math.min(most.promptTokens, endsAt)), dearestInput(rates, most)],
    [Math.ceil(most.outputTokens), Math.max(rates.output, rates.reasoning ?? 0)],
    [1, price.call ?? 0],
    [most.webSearches ?? 0, price.webSearch ?? 0],
  ];
  return nanodollars(charges, 999);
}

function dearestInput(rates: Rates, { cacheWrites = 'long' }: MostTokens): number {
  const write = rates.cacheWrite ?? rates.input;
  const long = rates.cacheWriteLong ?? write;
  return Math.max(
    rates.input,
    // Dearer reads make no sense, but a config can say so.
    rates.cacheRead ?? 0,
    cacheWrites === 'none' ? 0 : write,
    cacheWrites === 'long' ? long : 0,
  );
}

function ratesFor({ rates, tiers }: Price, prompt: number): Rates {
  let found = rates;
  for (const tier of tiers) if (prompt > tier.above) found = tier.rates;
  return found;
}

/** Whether no usage whatever costs anything. */
export function isFree(price: Price): boolean {
  const { call = 0, webSearch = 0 } = price;
  return call === 0 && webSearch === 0 && isFreeInput(price) && isFreeOutput(price);
}

function isFreeInput({ rates, tiers }: Price): boolean {
  return [rates, ...tiers.map((tier) => tier.rates)].every(
    (each) => each.input === 0 && !each.cacheRead && !each.cacheWrite && !each.cacheWriteLong,
  );
}

function isFreeOutput({ rates, tiers }: Price): boolean {
  return [rates, ...tiers.map((tier) => tier.rates)].every(
    (each) => each.output === 0 && !each.reasoning,
  );
}

type Charge = readonly [tokens: number, rate: number];

/** Of: fresh input, read, write, long write, output, reasoning, the call, its web searches. */
type Charges = readonly [Charge, Charge, Charge, Charge, Charge, Charge, Charge, Charge];

function summed(charges: Charges): Cost {
  const [fresh, read, write, long, output, reasoning, call, searches] = charges;
  return {
    total: nanodollars(charges, 500),
    input: nanodollars([fresh], 500),
    cacheRead: nanodollars([read], 500),
    cacheWrite: nanodollars([write, long], 500),
    output: nanodollars([output], 500),
    reasoning: nanodollars([reasoning], 500),
    call: nanodollars([call, searches], 500),
  };
}

/**
 * The sum of the products in nanodollars. `raise` picodollars are added before what is left of a
 * nanodollar falls off: 500 rounds half up, 999 rounds up. Numbers are exact below 2^53, and nearly all
 * calls are there: a sum of numbers that came out below it never was beyond it. Nine million dollars
 * are the end of the scale.
 */
function nanodollars(charges: readonly Charge[], raise: number): number {
  let sum = raise;
  for (const [tokens, rate] of charges) sum += tokens * rate;
  if (sum <= Number.MAX_SAFE_INTEGER) return (sum - (sum % 1000)) / 1000;
  let exact = BigInt(raise);
  for (const [tokens, rate] of charges) exact += BigInt(tokens) * BigInt(rate);
  return Math.min(Number(exact / 1000n), Number.MAX_SAFE_INTEGER);
}
