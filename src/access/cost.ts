/**
 * What a call cost, and what it may cost at most. Rates are integer picodollars a token, so each class
 * is an integer product, and only the sum is rounded (half up) to nanodollars. On the path of calls.
 */
import { lastRequest, totalInputTokens, type Usage } from '../core/generation.ts';
import type { Cost, Price, Rates } from '../core/money.ts';

/** The counts that cost something. */
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
  | 'images'
  | 'earlier'
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
 * another one is known is none: the upstream does not tell them apart. Sound, pictures and film in a prompt
 * that nobody counts apart are input; where an answer may be sound or pictures and nobody says how much of it
 * is, all of it is charged at the dearest.
 *
 * Of several requests for one answer each is billed by itself: its call, and its tier by its own prompt.
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
  return summed(price, rates, usage);
}

/** What two requests cost together; undefined where it is not known of one of them. */
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
  /** Pictures in the prompt; absent = none. */
  readonly images?: number;
  /** False: the prompt is text alone. */
  readonly media?: boolean;
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
  term(1, Math.ceil(most.outputTokens), Math.max(dearestOutput(rates), rates.reasoning ?? 0));
  term(2, 1, price.call ?? 0);
  term(3, most.webSearches ?? 0, price.webSearch ?? 0);
  term(4, most.images ?? 0, price.perImage ?? 0);
  return nanodollars(0, 5, 999);
}

function dearestOutput({ output, audioOutput = 0, imageOutput = 0 }: Rates): number {
  return Math.max(output, audioOutput, imageOutput);
}

function dearestInput(rates: Rates, { cacheWrites = 'long', media }: MostTokens): number {
  const write = rates.cacheWrite ?? rates.input;
  const long = rates.cacheWriteLong ?? write;
  return Math.max(
    rates.input,
    // Dearer reads make no sense, but a config can say so.
    rates.cacheRead ?? 0,
    media === false ? 0 : dearestMedium(rates),
    cacheWrites === 'none' ? 0 : write,
    cacheWrites === 'long' ? long : 0,
  );
}

function dearestMedium(rates: Rates): number {
  const { audioInput = 0, imageInput = 0, videoInput = 0, audioCacheRead = 0 } = rates;
  return Math.max(audioInput, imageInput, videoInput, audioCacheRead);
}

/** Whether it makes a difference if a prompt holds more than text. */
export function caresForMedia({ rates, tiers }: Price): boolean {
  if (dearestMedium(rates) > 0) return true;
  for (const tier of tiers) if (dearestMedium(tier.rates) > 0) return true;
  return false;
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
  const { call = 0, webSearch = 0, perImage = 0 } = price;
  if (call !== 0 || webSearch !== 0 || perImage !== 0) return false;
  return isFreeInput(price) && isFreeOutput(price);
}

function isFreeInput({ rates, tiers }: Price): boolean {
  if (!hasFreeInput(rates)) return false;
  for (const tier of tiers) if (!hasFreeInput(tier.rates)) return false;
  return true;
}

function hasFreeInput(rates: Rates): boolean {
  const { input, cacheRead, cacheWrite, cacheWriteLong } = rates;
  return input === 0 && !cacheRead && !cacheWrite && !cacheWriteLong && dearestMedium(rates) === 0;
}

function isFreeOutput({ rates, tiers }: Price): boolean {
  if (!hasFreeOutput(rates)) return false;
  for (const tier of tiers) if (!hasFreeOutput(tier.rates)) return false;
  return true;
}

function hasFreeOutput(rates: Rates): boolean {
  return dearestOutput(rates) === 0 && !rates.reasoning;
}

/**
 * Tokens and their rates in turn, of the sum that is being made. One list for all: every call comes by
 * here several times, and nothing waits in between.
 */
const terms = new Float64Array(32);

function term(place: number, tokens: number, rate: number): void {
  terms[2 * place] = tokens;
  terms[2 * place + 1] = rate;
}

/** Where the terms of each part of a cost begin. */
const place = {
  input: 0,
  cacheRead: 4,
  cacheWrite: 6,
  output: 8,
  reasoning: 11,
  call: 12,
  end: 15,
};

function summed(price: Price, rates: Rates, usage: BilledTokens): Cost {
  inputTerms(rates, usage);
  outputTerms(rates, usage);
  term(place.call, 1, price.call ?? 0);
  term(place.call + 1, usage.webSearches ?? 0, price.webSearch ?? 0);
  term(place.call + 2, usage.images ?? 0, price.perImage ?? 0);
  return {
    total: nanodollars(0, place.end, 500),
    input: nanodollars(place.input, place.cacheRead, 500),
    cacheRead: nanodollars(place.cacheRead, place.cacheWrite, 500),
    cacheWrite: nanodollars(place.cacheWrite, place.output, 500),
    output: nanodollars(place.output, place.reasoning, 500),
    reasoning: nanodollars(place.reasoning, place.call, 500),
    call: nanodollars(place.call, place.end, 500),
  };
}

function inputTerms(rates: Rates, usage: BilledTokens): void {
  const write = usage.cacheWriteTokens ?? 0;
  const long = Math.min(usage.cacheWriteLongTokens ?? 0, write);
  const writeRate = rates.cacheWrite ?? rates.input;
  freshTerms(rates, usage);
  term(place.cacheWrite, write - long, writeRate);
  term(place.cacheWrite + 1, long, rates.cacheWriteLong ?? writeRate);
}

/** What was read from a cache is told apart by nobody: sound beyond the fresh input was. */
function freshTerms(rates: Rates, usage: BilledTokens): void {
  const { freshInputTokens: fresh = 0, cacheReadTokens: read = 0 } = usage;
  const { audioInputTokens = 0, imageInputTokens = 0, videoInputTokens = 0 } = usage;
  const audio = Math.min(audioInputTokens, fresh);
  const image = Math.min(imageInputTokens, fresh - audio);
  const video = Math.min(videoInputTokens, fresh - audio - image);
  const readAudio = Math.min(audioInputTokens - audio, read);
  const readRate = rates.cacheRead ?? rates.input;
  term(place.input, fresh - audio - image - video, rates.input);
  term(place.input + 1, audio, rates.audioInput ?? rates.input);
  term(place.input + 2, image, rates.imageInput ?? rates.input);
  term(place.input + 3, video, rates.videoInput ?? rates.input);
  term(place.cacheRead, read - readAudio, readRate);
  term(place.cacheRead + 1, readAudio, rates.audioCacheRead ?? readRate);
}

function outputTerms(rates: Rates, usage: BilledTokens): void {
  const all = usage.outputTokens ?? 0;
  const reasoning = Math.min(usage.reasoningTokens ?? 0, all);
  const told = isTold(rates, usage);
  const audio = Math.min(usage.audioOutputTokens ?? 0, all - reasoning);
  const image = Math.min(usage.imageOutputTokens ?? 0, all - reasoning - audio);
  term(place.output, all - reasoning - audio - image, told ? rates.output : dearestOutput(rates));
  term(place.output + 1, audio, rates.audioOutput ?? rates.output);
  term(place.output + 2, image, rates.imageOutput ?? rates.output);
  term(place.reasoning, reasoning, rates.reasoning ?? rates.output);
}

/** Whether the upstream says how much of its answer is what has a rate of its own. */
function isTold({ audioOutput, imageOutput }: Rates, usage: BilledTokens): boolean {
  if (audioOutput !== undefined && usage.audioOutputTokens === undefined) return false;
  return imageOutput === undefined || usage.imageOutputTokens !== undefined;
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
