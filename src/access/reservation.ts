/**
 * The upper bound of what a call may use, before it is served: the prompt by a cautious estimate or an exact
 * count, the output by the client's cap, the model's own limit, or a default.
 */
import { invalidRequest } from '../core/errors.ts';
import type { RaisedCost } from '../core/policy.ts';
import type { Price } from '../core/money.ts';
import { caresForCacheWrites, caresForMedia, isFree, maxCost, possiblePrices } from './cost.ts';
import type { PriceTable } from './prices.ts';

/** A target that may answer the call. */
export interface RequestedTarget {
  readonly provider: string;
  /** The provider's own name of the model. */
  readonly model: string;
  /** Maximum tokens of an answer, if the provider states it. */
  readonly maxOutputTokens?: number;
  /** The least cap on an answer that the target takes; smaller caps are raised to it. Absent = any. */
  readonly minOutputTokens?: number;
}

export interface AskedSearching {
  /** The request member that requests them. */
  readonly member: string;
  readonly most: number;
  /**
   * Per target, whether it is known to run the searches: searches of a free model are not free. Absent = none
   * is known to.
   */
  readonly sure?: readonly boolean[];
}

/** The size of a call. */
export interface RequestedSize {
  readonly targets: readonly RequestedTarget[];
  /** The client's own cap on each answer. */
  readonly maxOutputTokens: number | undefined;
  /** No cap can be set: an answer may be as long as the model can make it. Absent = one can. */
  readonly uncapped?: boolean;
  /** Number of answers. */
  readonly choices: number;
  /** Two requests may run in parallel for one answer, and both are paid for. Absent = one. */
  readonly hedged?: boolean;
  /** Upper estimate of the prompt tokens. */
  promptAtMost(): number;
  /** The guess that it is made from; undefined before the first `promptAtMost`. */
  readonly promptGuess?: number | undefined;
  /** Exact prompt tokens by the model's own tokenizer; undefined if there is none. */
  promptExactly(): Promise<number | undefined>;
  /** Cache writes that the prompt may cause at the vendor. */
  cacheWrites(): 'none' | 'usual' | 'long';
  /** Whether the prompt may contain images, audio or video. */
  media(): boolean;
  /** Number of images in the prompt. */
  images(): number;
  /** Web searches that the vendor may run for it; undefined = none. */
  searches(): AskedSearching | undefined;
  /** Models that the vendor may answer with instead, by the names that clients use; undefined = none. */
  others(): { readonly member: string; readonly names: readonly string[] } | undefined;
  /** Other members that raise the cost; undefined = none. */
  raised(): RaisedCost | undefined;
  /**
   * The requested service tier, in the word with which this target is asked for it (`fast` for fast mode);
   * undefined = none: the vendor serves what its account is set to.
   */
  serviceTier(target: number): string | undefined;
  /** The request member that requests more expensive service of this target. */
  expensiveBy(target: number): string | undefined;
}

/** For an answer that neither the client nor the model limits. */
const defaultOutputTokens = 4096;

/**
 * The possible prices of the call, per target; `prices.otherwise` for an unknown price.
 * @throws GatewayError `invalid_request` if there is no price.
 */
export function pricesOf(
  prices: Pick<PriceTable, 'find' | 'otherwise'>,
  targets: readonly RequestedTarget[],
  at: number,
): readonly Price[] {
  return targets.map(({ provider, model }) => {
    const price = prices.find(provider, model, at) ?? prices.otherwise;
    if (price === undefined) throw priceUnknown(provider, model);
    return price;
  });
}

function priceUnknown(provider: string, model: string): Error {
  const why =
    `The price of ${provider}/${model} is unknown, and calls with this key are charged to a budget. ` +
    'Use another model, or have the operator set its price (prices in the configuration).';
  return invalidRequest(why, ['model'], 'price_unknown');
}

function unknownExtraCost(member: string): Error {
  const why =
    `What "${member}" asks for costs more than the price that is known, and calls of this key count ` +
    'for a budget. Leave it out, or have the price of that service set in the configuration (prices).';
  return invalidRequest(why, [member], 'price_unknown');
}

function othersUnpriced(member: string): Error {
  const why =
    `"${member}" names other models than the one that is asked for, and calls of this key count for a ` +
    'budget: what they cost is not reserved. Leave it out, or have fallbacks configured as targets (models).';
  return invalidRequest(why, [member], 'price_unknown');
}

function unbounded(member: string): Error {
  const why =
    `What "${member}" asks for can cost more than is known before the answer, and calls of this key count for ` +
    'a budget. Leave it out, or use a key without a budget (its team and tags likewise).';
  return invalidRequest(why, [member], 'price_unknown');
}

function endless(): Error {
  const why =
    'How long an answer of this model can be is not known, this request takes no cap on it, and calls of this key ' +
    'count for a budget. Use another model, or a key without a budget (its team and tags likewise).';
  return invalidRequest(why, ['model'], 'price_unknown');
}

function searchUnpriced(member: string): Error {
  const why =
    `"${member}" has the provider search the web, what a search costs there is not known, and calls of this ` +
    'key count for a budget. Leave it out, or have its price set in the configuration (prices, web_search).';
  return invalidRequest(why, [member], 'price_unknown');
}

/**
 * Prompt tokens per web search: most vendors read the results as prompt within the same call. About ten pages
 * of the length that vendors truncate them to.
 */
const tokensOfSearch = 10_000;

/** Twice this is still an exact number. */
const maxOfOne = Math.floor(Number.MAX_SAFE_INTEGER / 2);

export class Reservation {
  readonly choices: number;
  /** Origin of the cap: it is sent upstream only if it is a default or was lowered. */
  readonly origin: 'client' | 'model' | 'default';
  readonly prices: readonly Price[];
  /** The same, plus what the vendor may charge for the requested tier. */
  readonly possible: readonly Price[];
  /** Nanodollars that similar calls cost beyond their reservations. */
  readonly learned: number;
  readonly #size: RequestedSize;
  /** All possible usage is free: budgets do not limit it. */
  readonly free: boolean;
  #prompt: number | undefined;
  readonly #targets: readonly RequestedTarget[];
  #cacheWrites: ReturnType<RequestedSize['cacheWrites']> | undefined;
  #searches: ReturnType<RequestedSize['searches']> | null = null;
  #images: number | undefined;
  #media: boolean | undefined;
  /** null = not determined yet. */
  #raised: RaisedCost | undefined | null = null;
  #output: number;
  /** A target may answer with this many output tokens even if the cap is smaller. */
  readonly #minCap: number;
  /** Maximum cost of the output; undefined = not computed for the current values. */
  #cost: number | undefined;
  #lowered = false;
  #hedged: boolean;

  /**
   * @param prices empty if no budget applies.
   * @param learned nanodollars that similar calls cost beyond their reservations
   */
  constructor(size: RequestedSize, prices: readonly Price[], learned = 0) {
    const { maxOutputTokens: own, choices, targets } = size;
    const ofModel = own === undefined ? largestOf(targets) : undefined;
    this.#size = size;
    this.learned = learned;
    this.#targets = targets;
    this.#minCap = targets.reduce((most, target) => Math.max(most, target.minOutputTokens ?? 0), 0);
    this.choices = choices;
    this.#hedged = size.hedged === true;
    this.prices = prices;
    this.possible = prices.some(({ service }) => service !== undefined)
      ? prices.flatMap((price, i) => possiblePrices(price, size.serviceTier(i)))
      : prices;
    this.free = this.possible.every(isFree);
    this.origin = own !== undefined ? 'client' : ofModel === undefined ? 'default' : 'model';
    this.#output = own ?? ofModel ?? defaultOutputTokens;
  }

  /** Tokens of the prompt at most. */
  get prompt(): number {
    this.#prompt ??= this.#size.promptAtMost();
    return this.#prompt;
  }

  /** Tokens of the prompt by its characters alone; undefined = nothing has asked for its tokens. */
  get promptGuess(): number | undefined {
    return this.#size.promptGuess;
  }

  /** Output tokens of each answer at most. */
  get output(): number {
    return this.#output;
  }

  /** The output was lowered below what was requested. */
  get lowered(): boolean {
    return this.#lowered;
  }

  /** Both requests are reserved. */
  get hedged(): boolean {
    return this.#hedged;
  }

  /** Reserves one request only; false when it did so already. */
  dropHedge(): boolean {
    if (!this.#hedged) return false;
    this.#hedged = false;
    this.#cost = undefined;
    return true;
  }

  /** The part of `cost()` for a second request. */
  get extraCost(): number {
    return this.#hedged ? this.cost() / 2 : 0;
  }

  /**
   * Maximum cost with this many output tokens per answer, at the most expensive target; twice that if hedged.
   */
  cost(output?: number): number {
    if (output !== undefined) return this.#costOf(output);
    this.#cost ??= this.#costOf(this.#output);
    return this.#cost;
  }

  #costOf(output: number): number {
    let highest = 0;
    const raised = this.#raise;
    const promptTokens = this.prompt + this.found + (raised?.prompt ?? 0);
    const outputTokens = this.#maxOf(output);
    for (const price of this.possible) {
      const cost = maxCost(price, {
        promptTokens,
        outputTokens,
        // The body is searched only if the result affects the price.
        cacheWrites: caresForCacheWrites(price) ? this.#writes() : 'none',
        media: caresForMedia(price) && this.#holdsMedia(),
        webSearches: this.webSearches,
        images: price.perImage === undefined ? 0 : this.images,
      });
      if (cost > highest) highest = cost;
    }
    if (raised !== undefined && raised.requests > 1) {
      highest = Math.min(highest, Math.floor(maxOfOne / raised.requests)) * raised.requests;
    }
    highest += this.learned;
    return this.#hedged ? 2 * Math.min(highest, maxOfOne) : highest;
  }

  /** Maximum output tokens of all answers, including what the request may produce beyond its cap. */
  get maxOutput(): number {
    return this.#maxOf(this.#output);
  }

  #maxOf(asked: number): number {
    const output = Math.max(asked, this.#minCap);
    const raised = this.prices.length === 0 ? undefined : this.#raise;
    if (raised === undefined) return output * this.choices;
    const ofOne = Math.max(output, raised.outputAtLeast) + raised.extraOutput;
    return ofOne * Math.max(this.choices, raised.answers);
  }

  get #raise(): RaisedCost | undefined {
    if (this.#raised === null) this.#raised = this.#size.raised();
    return this.#raised;
  }

  /** Web searches that the vendor may run, for all answers. */
  get webSearches(): number {
    return (this.#search?.most ?? 0) * this.choices;
  }

  /** Tokens of the search results. */
  get found(): number {
    return this.webSearches * tokensOfSearch;
  }

  /** Pictures in the prompt. */
  get images(): number {
    this.#images ??= this.#size.images();
    return this.#images;
  }

  get #search(): ReturnType<RequestedSize['searches']> {
    if (this.#searches === null) this.#searches = this.#size.searches();
    return this.#searches;
  }

  #holdsMedia(): boolean {
    this.#media ??= this.#size.media();
    return this.#media;
  }

  #writes(): ReturnType<RequestedSize['cacheWrites']> {
    this.#cacheWrites ??= this.#size.cacheWrites();
    return this.#cacheWrites;
  }

  /** Whether this target may be used. */
  mayAsk(asked: Pick<RequestedTarget, 'provider' | 'model'>): boolean {
    return this.#targets.some(
      ({ provider, model }) => provider === asked.provider && model === asked.model,
    );
  }

  /** The reserved price of this target; undefined if no budget applies. */
  priceOf(provider: string, model: string): Price | undefined {
    const index = this.#targets.findIndex(
      (target) => target.provider === provider && target.model === model,
    );
    return this.prices[index];
  }

  /**
   * @throws GatewayError for what would cost more than the known price: other models, searches, more expensive
   * service.
   */
  assertPriced(): void {
    const others = this.#size.others();
    if (others !== undefined) throw othersUnpriced(others.member);
    this.#assertSearchPriced();
    this.#assertBounded();
    if (this.free) return;
    for (const [target, { service }] of this.prices.entries()) {
      const member = this.#size.expensiveBy(target);
      const isKnown = service?.has(this.#size.serviceTier(target) ?? '') === true;
      if (member !== undefined && !isKnown) throw unknownExtraCost(member);
    }
  }

  #assertBounded(): void {
    if (this.#size.uncapped === true && this.origin === 'default' && !this.free) throw endless();
    const raised = this.free ? undefined : this.#raise;
    if (raised === undefined) return;
    const { sound, pictures, unbounded: member } = raised;
    if (member !== undefined) throw unbounded(member);
    if (sound !== undefined && !this.possible.every(hasRate('audioOutput'))) {
      throw unknownExtraCost(sound);
    }
    if (pictures !== undefined && !this.possible.every(hasRate('imageOutput'))) {
      throw unknownExtraCost(pictures);
    }
  }

  /** An own engine without a price has no search price either; a vendor's free model may have one. */
  #assertSearchPriced(): void {
    if (this.prices.every(({ webSearch }) => webSearch !== undefined)) return;
    const search = this.#search;
    if (search === undefined) return;
    const unpriced = this.prices.some(
      (price, i) => price.webSearch === undefined && (search.sure?.[i] === true || !isFree(price)),
    );
    if (unpriced) throw searchUnpriced(search.member);
  }

  /** Tokens to take from a bucket of this size; undefined when the prompt can never fit. */
  tokensFrom(bucket: number): number | undefined {
    const own =
      this.origin === 'client' ? this.#output : Math.min(this.#output, defaultOutputTokens);
    return this.prompt > bucket ? undefined : Math.min(this.prompt + own * this.choices, bucket);
  }

  /** Replaces the estimate of the prompt by the exact count; false when there is none. */
  async countExactly(): Promise<boolean> {
    const tokens = await this.#size.promptExactly();
    if (tokens === undefined || tokens >= this.prompt) return false;
    this.#prompt = tokens;
    this.#cost = undefined;
    return true;
  }

  /**
   * Lowers the output to what this amount pays for. Returns false, and changes nothing, when that is less than
   * `least` per answer.
   */
  shrink(nanodollars: number, least: number): boolean {
    if (this.#output < least || this.cost(least) > nanodollars) return false;
    let fits = least;
    let tooMuch = this.#output;
    // Costs rise with the output in steps, because of tiers and rounding: binary search instead of division.
    while (tooMuch - fits > 1) {
      const middle = Math.floor((fits + tooMuch) / 2);
      if (this.cost(middle) <= nanodollars) fits = middle;
      else tooMuch = middle;
    }
    this.#output = fits;
    this.#cost = undefined;
    this.#lowered = true;
    return true;
  }
}

function hasRate(name: 'audioOutput' | 'imageOutput'): (price: Price) => boolean {
  return (price) => isFree(price) || price.rates[name] !== undefined;
}

/** The largest output cap of the models; undefined when one is unknown. */
function largestOf(targets: readonly RequestedTarget[]): number | undefined {
  let largest = Number.NEGATIVE_INFINITY;
  for (const { maxOutputTokens } of targets) {
    if (maxOutputTokens === undefined) return undefined;
    largest = Math.max(largest, maxOutputTokens);
  }
  return largest;
}
