/**
 * What a model costs. Rates are integer picodollars a token (1 $ per million tokens = 1,000,000
 * picodollars a token); amounts are integer nanodollars, rounded once a call.
 */

/** Rates of one prompt length. An absent rate falls back as `costOf` (access/cost.ts) tells. */
export interface Rates {
  /** Input that no cache served or took. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  /** Written to a cache for five minutes, or for as long as the vendor keeps it by default. */
  readonly cacheWrite?: number;
  /** Written for an hour. */
  readonly cacheWriteLong?: number;
  /** Reasoning, where it is not priced as output. */
  readonly reasoning?: number;
  /** Input that is sound, pictures or film, where it is not priced as input. */
  readonly audioInput?: number;
  readonly imageInput?: number;
  readonly videoInput?: number;
  /** Sound that is read from a cache, where it is not priced as other reads. */
  readonly audioCacheRead?: number;
  /** Answers in sound and in pictures, where they are not priced as output. */
  readonly audioOutput?: number;
  readonly imageOutput?: number;
}

/** Rates that hold for the whole call when its prompt has more than `above` tokens. */
export interface PriceTier {
  readonly above: number;
  readonly rates: Rates;
}

/** The price row that is stored with a call: old bills never change. */
export interface Price {
  readonly rates: Rates;
  /** By rising `above`. */
  readonly tiers: readonly PriceTier[];
  /** Picodollars a call, whatever its size. */
  readonly call?: number;
  /** Picodollars a web search that the vendor runs and reports. */
  readonly webSearch?: number;
  /** Picodollars a picture in the prompt, besides what its tokens cost. */
  readonly perImage?: number;
  /**
   * What each service tier costs that has a price of its own, by name (`priority`, `flex`, `batch`, `fast`),
   * and `standard`. None of these has further ones: they are what is stored with a call.
   */
  readonly service?: ReadonlyMap<string, Price>;
  /** Where it came from: `gateway.yaml:12`, `genai-prices 0.1.8 openai/gpt-5-mini`, `local`. */
  readonly source: string;
}

/** Where the prices of a provider's models stand, unless the config says otherwise. */
export type PriceOrigin =
  /** Runs here and costs nothing. */
  | { readonly kind: 'free' }
  /** The list of that name in the price package. */
  | { readonly kind: 'list'; readonly name: string };

/** `prices:` of the config. */
export interface PriceSettings {
  readonly models: readonly ConfiguredPrice[];
  /** For models without a price, on keys that have a budget. */
  readonly otherwise?: Price;
}

export interface ConfiguredPrice {
  /** `provider/model`, or a glob of them. */
  readonly pattern: string;
  readonly price: Price;
}

/**
 * What a call cost, in integer nanodollars. `total` is rounded once; the parts are rounded each for
 * themselves. `output` is what is left without `reasoning`; sound and pictures are in `input`, `cacheRead` and `output`;
 * `cacheWrite` holds both lifetimes,
 * `call` what is not for tokens: the call itself, its pictures and its web searches.
 */
export interface Cost {
  readonly total: number;
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
  readonly call: number;
}
