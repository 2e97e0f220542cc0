/**
 * Money and prices. All amounts are integers, no float on the way: rates are picodollars (10^-12 $) a token
 * (1 $ per million tokens = 1,000,000 picodollars a token), amounts are nanodollars (10^-9 $), rounded once a call.
 */

/** A decimal number times a power of ten. */
export interface Scaled {
  /** Rounded half up. */
  readonly units: number;
  /** Whether nothing had to be rounded. */
  readonly exact: boolean;
}

const decimal = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/;

/**
 * The decimal number of a text (`0.25`, `12`, `1e-7`) times 10^places. Undefined when the text is no
 * decimal number, is negative, or the result is beyond 2^53 - 1.
 */
export function scaledDecimal(text: string, places: number): Scaled | undefined {
  const match = decimal.exec(text);
  if (match === null) return undefined;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const shift = places + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  if (shift >= 0) return safe(digits * 10n ** BigInt(shift), true);
  const divisor = 10n ** BigInt(-shift);
  const rest = digits % divisor;
  return safe(digits / divisor + (rest * 2n >= divisor ? 1n : 0n), rest === 0n);
}

function safe(units: bigint, exact: boolean): Scaled | undefined {
  return units > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : { units: Number(units), exact };
}

/** Whether a decimal number is more than nothing and less than one unit of 10^-places. */
export function isBelowUnit(text: string, places: number): boolean {
  const value = decimal.test(text) ? Number(text) : 0;
  return value > 0 && value < Number(`1e-${places}`);
}

/**
 * Dollars as a person writes them (`1`, `1.50`, `$0.000001`) in nanodollars. Undefined when the text is
 * no such amount: nine decimals at most, nine million dollars at most.
 */
export function parseDollars(text: string): number | undefined {
  const amount = /^\$?(\d+(?:\.\d+)?)$/.exec(text.trim())?.[1];
  const read = amount === undefined ? undefined : scaledDecimal(amount, 9);
  return read?.exact === true ? read.units : undefined;
}

/** Nanodollars in dollars, every digit that counts and no other: `1.5`, `0.0000123`, `0`. */
export function dollarsText(nanodollars: number): string {
  return decimalText(nanodollars, 9);
}

/**
 * Nanodollars in dollars as a number of JSON. It is the nearest to the exact decimal, so that it prints
 * as that decimal does (up to four million dollars); never add such numbers.
 */
export function dollarsNumber(nanodollars: number): number {
  // Both are exact, and the quotient of two exact numbers is rounded once: as reading the decimal would.
  return nanodollars / 1e9;
}

/** Picodollars a token in dollars per million tokens: `0.075`. */
export function ratePerMillion(picodollars: number): string {
  return decimalText(picodollars, 6);
}

/** An integer divided by 10^places, exactly. */
export function decimalText(units: number, places: number): string {
  const digits = String(Math.abs(units)).padStart(places + 1, '0');
  const whole = digits.slice(0, -places);
  const fraction = digits.slice(-places).replace(/0+$/, '');
  return `${units < 0 ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Rates of one prompt length. `costOf` (access/cost.ts) says what an absent rate falls back to. */
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
  /** Input that is audio, images or video, where it is not priced as other input. */
  readonly audioInput?: number;
  readonly imageInput?: number;
  readonly videoInput?: number;
  /** Sound that is read from a cache, where it is not priced as other reads. */
  readonly audioCacheRead?: number;
  /** Answers in audio and in images, where they are not priced as other output. */
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
  /** Picodollars a call of the vendor's file search. */
  readonly fileSearch?: number;
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

/** Where the prices of a provider's models are, unless the config says otherwise. */
export type PriceOrigin =
  /** Runs here and costs nothing. */
  | { readonly kind: 'free' }
  /** The list of that name in the price package. */
  | {
      readonly kind: 'list';
      readonly name: string;
      /** The model of the list, where the provider knows it by another name; absent = none has another name. */
      readonly models?: { readonly [name: string]: string };
      /** Names of its models may be the operator's own: where one has no price, the model that the answer names is looked up. */
      readonly ownNames?: true;
      /** Ids of the list that a name may mean under which the list has no model; the dearest counts. */
      listedAs?(model: string, ids: readonly string[]): readonly string[];
      /** The price of a model there, by what the list says and leaves out; absent = that of the list. */
      adjusted?(model: string, price: Price): Price;
    };

/** The same price, all of whose tokens cost that much of it; fractions of a picodollar count whole. */
export function atPercent(price: Price, percent: number): Price {
  const source = `${price.source}, at ${percent} %`;
  return { ...withRates(price, (rates) => scaled(rates, percent)), source };
}

function scaled(rates: Rates, percent: number): Rates {
  const all = Object.entries(rates).map(
    ([name, rate]: [string, number]) => [name, Math.ceil((rate * percent) / 100)] as const,
  );
  return { ...rates, ...Object.fromEntries(all) };
}

/** The same price after a change of its rates and of those of each tier. */
export function withRates(price: Price, change: (rates: Rates) => Rates): Price {
  const tiers = price.tiers.map(({ above, rates }) => ({ above, rates: change(rates) }));
  return { ...price, rates: change(price.rates), tiers };
}

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
 * What a call cost, in integer nanodollars. `total` is rounded once; each part is rounded on its own.
 * `output` excludes `reasoning`. Audio and images are in `input`, `cacheRead` and `output`. `cacheWrite` holds both
 * lifetimes. `call` is what is not for tokens: the call itself, its images and its web searches.
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
