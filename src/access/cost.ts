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
  return summed(price, rates, usage);
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
  term(0, Math.ceil(Math.min(most.promptTokens, endsAt)), dearestInput(rates, most));
  term(1, Math.ceil(most.outputTokens), Math.max(rates.output, rates.reasoning ?? 0));
  term(2, 1, price.call ?? 0);
  term(3, most.webSearches ?? 0, price.webSearch ?? 0);
  return nanodollars(0, 4, 999);
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

/** Whether it makes a difference what a prompt makes the vendor write to its cache. */
export function caresForCacheWrites({ rates, tiers }: Price): boolean {
  if (hasWriteRate(rates)) return true;
  for (const tier of tiers) if (hasWriteRate(tier.rates)) return true;
  return false;
}

function hasWriteRate({ cacheWrite, cacheWriteLong }: Rates): boolean {
  return cacheWrite !== undefined || cacheWriteLong !== undefined;
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
  if (!hasFreeInput(rates)) return false;
  for (const tier of tiers) if (!hasFreeInput(tier.rates)) return false;
  return true;
}

function hasFreeInput({ input, cacheRead, cacheWrite, cacheWriteLong }: Rates): boolean {
  return input === 0 && !cacheRead && !cacheWrite && !cacheWriteLong;
}

function isFreeOutput({ rates, tiers }: Price): boolean {
  if (!hasFreeOutput(rates)) return false;
  for (const tier of tiers) if (!hasFreeOutput(tier.rates)) return false;
  return true;
}

function hasFreeOutput({ output, reasoning }: Rates): boolean {
  return output === 0 && !reasoning;
}

/**
 * Tokens and their rates in turn, of the sum that is being made. One list for all: every call comes by
 * here several times, and nothing waits in between.
 */
const terms = new Float64Array(16);

function term(place: number, tokens: number, rate: number): void {
  terms[2 * place] = tokens;
  terms[2 * place + 1] = rate;
}

function summed(price: Price, rates: Rates, usage: BilledTokens): Cost {
  inputTerms(rates, usage);
  outputTerms(rates, usage);
  term(6, 1, price.call ?? 0);
  term(7, usage.webSearches ?? 0, price.webSearch ?? 0);
  return {
    total: nanodollars(0, 8, 500),
    input: nanodollars(0, 1, 500),
    cacheRead: nanodollars(1, 2, 500),
    cacheWrite: nanodollars(2, 4, 500),
    output: nanodollars(4, 5, 500),
    reasoning: nanodollars(5, 6, 500),
    call: nanodollars(6, 8, 500),
  };
}

function inputTerms(rates: Rates, usage: BilledTokens): void {
  const write = usage.cacheWriteTokens ?? 0;
  const long = Math.min(usage.cacheWriteLongTokens ?? 0, write);
  const writeRate = rates.cacheWrite ?? rates.input;
  term(0, usage.freshInputTokens ?? 0, rates.input);
  term(1, usage.cacheReadTokens ?? 0, rates.cacheRead ?? rates.input);
  term(2, write - long, writeRate);
  term(3, long, rates.cacheWriteLong ?? writeRate);
}

function outputTerms(rates: Rates, usage: BilledTokens): void {
  const all = usage.outputTokens ?? 0;
  const reasoning = Math.min(usage.reasoningTokens ?? 0, all);
  term(4, all - reasoning, rates.output);
  term(5, reasoning, rates.reasoning ?? rates.output);
}

/**
 * The sum of these terms in nanodollars. `raise` picodollars are added before what is left of a
 * nanodollar falls off: 500 rounds half up, 999 rounds up. Numbers are exact below 2^53, and nearly all
 * calls are there: a sum of numbers that came out below it never was beyond it. Nine million dollars
 * are the end of the scale.
 */
function nanodollars(from: number, to: number, raise: number): number {
  let sum = raise;
  for (let i = 2 * from; i < 2 * to; i += 2) sum += (terms[i] ?? 0) * (terms[i + 1] ?? 0);
  if (sum <= Number.MAX_SAFE_INTEGER) return (sum - (sum % 1000)) / 1000;
  let exact = BigInt(raise);
  for (let i = 2 * from; i < 2 * to; i += 2) {
    exact += BigInt(terms[i] ?? 0) * BigInt(terms[i + 1] ?? 0);
  }
  return Math.min(Number(exact / 1000n), Number.MAX_SAFE_INTEGER);
}
