/**
 * The cost of a call, and its upper bound. Rates are integer picodollars per token, so each class is an integer
 * product, and only the sum is rounded (half up) to nanodollars. On the hot path.
 */
import { type Usage, lastRequest, totalInputTokens } from '../core/generation.ts';
import type { Cost, Price, Rates } from '../core/money.ts';

/** The billed counts. */
export type BilledTokens = Pick<
  Usage,
  | 'freshInputTokens'
  | 'cacheReadTokens'
  | 'cacheWriteTokens'
  | 'cacheWriteLongTokens'
  | 'outputTokens'
  | 'reasoningTokens'
  | 'audioInputTokens'
  | 'imageInputTokens'
  | 'videoInputTokens'
  | 'audioOutputTokens'
  | 'imageOutputTokens'
  | 'webSearches'
  | 'fileSearches'
  | 'images'
  | 'earlier'
>;

/** Cost of a call that reached no upstream. */
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
 * The length of the whole prompt, cached or not, selects the rates of the whole call. Default rates: cache
 * reads and writes cost as much as fresh input, one-hour writes as much as writes, reasoning as much as output.
 * The output cost excludes reasoning.
 * Absent is not zero: without any input count, or without an output count, the cost is unknown (undefined),
 * unless it is free in any case. If one input class is known, absent others count as zero, since the upstream
 * does not report them separately. Audio, images and video in a prompt that are not reported separately count
 * as input. If an answer may contain audio or images and the amounts are not reported, all of it is charged at
 * the highest rate.
 * If one answer took several requests, each is billed by itself, with the tier of its own prompt.
 */
export function costOf(price: Price, usage: BilledTokens): Cost | undefined {
  const { earlier } = usage;
  if (earlier === undefined) return costOfOne(price, usage);
  let sum = costOfOne(price, lastRequest(usage));
  for (const each of earlier) sum = addedCost(sum, costOfOne(price, each));
  return sum;
}

function costOfOne(price: Price, usage: BilledTokens): Cost | undefined {
  const prompt = totalInputTokens(usage);
  const rates = ratesFor(price, prompt ?? 0);
  if (prompt === undefined && !isFreeInput(price)) return undefined;
  if (usage.outputTokens === undefined && !isFreeOutput(price)) return undefined;
  const write = usage.cacheWriteTokens ?? 0;
  const long = Math.min(usage.cacheWriteLongTokens ?? 0, write);
  const writeRate = rates.cacheWrite ?? rates.input;
  freshTerms(rates, usage);
  term(slot.cacheWrite, write - long, writeRate);
  term(slot.cacheWrite + 1, long, rates.cacheWriteLong ?? writeRate);
  outputTerms(rates, usage);
  callTerms(price, usage);
  return {
    total: nanodollars(0, slot.end, 500),
    input: nanodollars(slot.input, slot.cacheRead, 500),
    cacheRead: nanodollars(slot.cacheRead, slot.cacheWrite, 500),
    cacheWrite: nanodollars(slot.cacheWrite, slot.output, 500),
    output: nanodollars(slot.output, slot.reasoning, 500),
    reasoning: nanodollars(slot.reasoning, slot.call, 500),
    call: nanodollars(slot.call, slot.end, 500),
  };
}

/**
 * What caches saved, in nanodollars: the cost of the same prompt without a cache less its cost. Negative where writing
 * cost more than reading saved. Undefined: nothing was cached, or the cost is unknown.
 */
export function cacheSavingOf(price: Price, usage: BilledTokens): number | undefined {
  const { cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  if (cacheReadTokens + cacheWriteTokens === 0) return undefined;
  const cost = costOf(price, usage);
  const without = costOf(price, uncached(usage));
  return cost === undefined || without === undefined ? undefined : without.total - cost.total;
}

function uncached<T extends BilledTokens>(usage: T): T {
  const { freshInputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0, earlier } = usage;
  const fresh = freshInputTokens + cacheReadTokens + cacheWriteTokens;
  const none = { cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 };
  return {
    ...usage,
    ...none,
    freshInputTokens: fresh,
    ...(earlier === undefined ? {} : { earlier: earlier.map(uncached) }),
  };
}

/** Cost of two requests; undefined if one of them is unknown. */
export function addedCost(a: Cost | undefined, b: Cost | undefined): Cost | undefined {
  if (a === undefined || b === undefined) return undefined;
  return {
    total: a.total + b.total,
    input: a.input + b.input,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    call: a.call + b.call,
  };
}

/** Upper bounds of what a request uses. */
export interface MaxTokens {
  /** The whole prompt, at most. */
  readonly promptTokens: number;
  /** All output, reasoning included, at most; of `n` answers the sum. */
  readonly outputTokens: number;
  /**
   * Cache writes that the vendor may charge for: none, for the usual time, for an hour. Absent = the most
   * expensive.
   */
  readonly cacheWrites?: 'none' | 'usual' | 'long';
  /** Web searches that the vendor may run, at most; absent = none. */
  readonly webSearches?: number;
  /** Images in the prompt; absent = none. */
  readonly images?: number;
  /** False: the prompt is text only. */
  readonly media?: boolean;
}

/**
 * An upper bound in nanodollars, rounded up: no usage within these token limits costs more by `costOf`. It
 * takes the most expensive tier that such a prompt can reach and assumes no discount for cached input.
 */
export function maxCost(price: Price, most: MaxTokens): number {
  const { tiers } = price;
  let highest = bound(price, most, { rates: price.rates, endsAt: tiers[0]?.above });
  tiers.forEach(({ above, rates }, i) => {
    if (most.promptTokens <= above) return;
    const other = bound(price, most, { rates, endsAt: tiers[i + 1]?.above });
    if (other > highest) highest = other;
  });
  return highest;
}

/** The upper bound for prompts in the range of these rates. */
function bound(
  price: Price,
  most: MaxTokens,
  { rates, endsAt = Number.POSITIVE_INFINITY }: { rates: Rates; endsAt: number | undefined },
): number {
  term(0, Math.ceil(Math.min(most.promptTokens, endsAt)), highestInput(rates, most));
  term(1, Math.ceil(most.outputTokens), Math.max(highestOutput(rates), rates.reasoning ?? 0));
  term(2, 1, price.call ?? 0);
  term(3, most.webSearches ?? 0, price.webSearch ?? 0);
  term(4, most.images ?? 0, price.perImage ?? 0);
  return nanodollars(0, 5, 999);
}

function highestOutput({ output, audioOutput = 0, imageOutput = 0 }: Rates): number {
  return Math.max(output, audioOutput, imageOutput);
}

function highestInput(rates: Rates, { cacheWrites = 'long', media }: MaxTokens): number {
  const write = rates.cacheWrite ?? rates.input;
  const long = rates.cacheWriteLong ?? write;
  return Math.max(
    rates.input,
    // Reads that cost more than input make no sense, but the config allows them.
    rates.cacheRead ?? 0,
    media === false ? 0 : highestMedium(rates),
    cacheWrites === 'none' ? 0 : write,
    cacheWrites === 'long' ? long : 0,
  );
}

function highestMedium(rates: Rates): number {
  const { audioInput = 0, imageInput = 0, videoInput = 0, audioCacheRead = 0 } = rates;
  return Math.max(audioInput, imageInput, videoInput, audioCacheRead);
}

/** Whether media in a prompt affect the price. */
export function caresForMedia({ rates, tiers }: Price): boolean {
  if (highestMedium(rates) > 0) return true;
  for (const tier of tiers) if (highestMedium(tier.rates) > 0) return true;
  return false;
}

/** Whether cache writes affect the price. */
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

/** Whether every usage is free. */
export function isFree(price: Price): boolean {
  const { call = 0, webSearch = 0, perImage = 0, fileSearch = 0 } = price;
  if (call !== 0 || webSearch !== 0 || perImage !== 0 || fileSearch !== 0) return false;
  return isFreeInput(price) && isFreeOutput(price);
}

function isFreeInput({ rates, tiers }: Price): boolean {
  if (!hasFreeInput(rates)) return false;
  for (const tier of tiers) if (!hasFreeInput(tier.rates)) return false;
  return true;
}

function hasFreeInput(rates: Rates): boolean {
  const { input, cacheRead, cacheWrite, cacheWriteLong } = rates;
  return input === 0 && !cacheRead && !cacheWrite && !cacheWriteLong && highestMedium(rates) === 0;
}

function isFreeOutput({ rates, tiers }: Price): boolean {
  if (!hasFreeOutput(rates)) return false;
  for (const tier of tiers) if (!hasFreeOutput(tier.rates)) return false;
  return true;
}

function hasFreeOutput(rates: Rates): boolean {
  return highestOutput(rates) === 0 && !rates.reasoning;
}

/**
 * Tokens and their rates, alternating, of the current sum. One shared array: every call uses it several times,
 * synchronously.
 */
const terms = new Float64Array(32);

function term(slot: number, tokens: number, rate: number): void {
  terms[2 * slot] = tokens;
  terms[2 * slot + 1] = rate;
}

/** Index of the first term of each part of a cost. */
const slot = {
  input: 0,
  cacheRead: 4,
  cacheWrite: 6,
  output: 8,
  reasoning: 11,
  call: 12,
  end: 16,
};

/** What costs by its number. */
function callTerms(price: Price, usage: BilledTokens): void {
  term(slot.call, 1, price.call ?? 0);
  term(slot.call + 1, usage.webSearches ?? 0, price.webSearch ?? 0);
  term(slot.call + 2, usage.images ?? 0, price.perImage ?? 0);
  term(slot.call + 3, usage.fileSearches ?? 0, price.fileSearch ?? 0);
}

/** Cache reads are not reported by media type: audio beyond the fresh input was read from the cache. */
function freshTerms(rates: Rates, usage: BilledTokens): void {
  const { freshInputTokens: fresh = 0, cacheReadTokens: read = 0 } = usage;
  const { audioInputTokens = 0, imageInputTokens = 0, videoInputTokens = 0 } = usage;
  const audio = Math.min(audioInputTokens, fresh);
  const image = Math.min(imageInputTokens, fresh - audio);
  const video = Math.min(videoInputTokens, fresh - audio - image);
  const readAudio = Math.min(audioInputTokens - audio, read);
  const readRate = rates.cacheRead ?? rates.input;
  term(slot.input, fresh - audio - image - video, rates.input);
  term(slot.input + 1, audio, rates.audioInput ?? rates.input);
  term(slot.input + 2, image, rates.imageInput ?? rates.input);
  term(slot.input + 3, video, rates.videoInput ?? rates.input);
  term(slot.cacheRead, read - readAudio, readRate);
  term(slot.cacheRead + 1, readAudio, rates.audioCacheRead ?? readRate);
}

function outputTerms(rates: Rates, usage: BilledTokens): void {
  const all = usage.outputTokens ?? 0;
  const reasoning = Math.min(usage.reasoningTokens ?? 0, all);
  const areReported = areClassesReported(rates, usage);
  const audio = Math.min(usage.audioOutputTokens ?? 0, all - reasoning);
  const image = Math.min(usage.imageOutputTokens ?? 0, all - reasoning - audio);
  term(
    slot.output,
    all - reasoning - audio - image,
    areReported ? rates.output : highestOutput(rates),
  );
  term(slot.output + 1, audio, rates.audioOutput ?? rates.output);
  term(slot.output + 2, image, rates.imageOutput ?? rates.output);
  term(slot.reasoning, reasoning, rates.reasoning ?? rates.output);
}

/** Whether the upstream reports the output classes that have their own rate. */
function areClassesReported({ audioOutput, imageOutput }: Rates, usage: BilledTokens): boolean {
  if (audioOutput !== undefined && usage.audioOutputTokens === undefined) return false;
  return imageOutput === undefined || usage.imageOutputTokens !== undefined;
}

/**
 * The sum of these terms in nanodollars. `raise` picodollars are added before truncation to nanodollars: 500
 * rounds half up, 999 rounds up. Numbers are exact below 2^53, which covers nearly all calls; a sum below 2^53
 * had no larger intermediate result. The scale ends at nine million dollars.
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

// The cost of a call by its service tier: the tier that the vendor reports, else the requested one.

/** The service tier of a price without tiers. */
const standard = 'standard';
/** Synonyms in requests and answers of both formats. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['default', standard],
  ['standard_only', standard],
  ['auto', standard],
]);
/** A tier that vendors use only on request. */
const onlyAsked = 'fast';

/** @param tier in the words of either format; a tier without its own price costs the standard one. */
export function servedPrice(price: Price, tier: string | undefined): Price {
  const { service } = price;
  if (service === undefined) return price;
  const name = tier === undefined ? standard : (otherNames.get(tier) ?? tier);
  return service.get(name) ?? service.get(standard) ?? price;
}

/**
 * All prices that a call with this tier may be charged at: without a tier, or with `auto`, the vendor uses what
 * its account is set to.
 */
export function possiblePrices(price: Price, asked: string | undefined): readonly Price[] {
  if (price.service === undefined) return [price];
  const possible = new Set([servedPrice(price, standard)]);
  if (asked !== undefined && asked !== 'auto') possible.add(servedPrice(price, asked));
  else for (const [name, own] of price.service) if (name !== onlyAsked) possible.add(own);
  return [...possible];
}
