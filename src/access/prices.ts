/**
 * The price of a model: the config first, then the price package. One table belongs to one configuration; a
 * reload creates a new one.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as GenaiPrices from '@pydantic/genai-prices';
import { Glob, withoutDate } from '../core/model-names.ts';
import {
  type Price,
  type PriceOrigin,
  type PriceSettings,
  type PriceTier,
  type Rates,
  scaledDecimal,
} from '../core/money.ts';
import type { Log } from '../core/runtime.ts';

/** Clients can request any number of names. Above this limit the cached ones are dropped. */
const maxKnown = 10_000;

export interface PriceTableDeps {
  readonly settings: PriceSettings;
  readonly list: Pick<PriceList, 'find' | 'load'>;
  /** Where the prices of a provider's models come from; undefined = the config, or no source. */
  origin(provider: string): PriceOrigin | undefined;
  readonly log: Log;
}

const free: Price = { rates: { input: 0, output: 0 }, tiers: [], source: 'local' };

export class PriceTable {
  readonly #deps: PriceTableDeps;
  readonly #exact: ReadonlyMap<string, Price>;
  readonly #globs: readonly { readonly glob: Glob; readonly price: Price }[];
  readonly #known = new Map<string, PriceSchedule | undefined>();
  #failed = false;

  constructor(deps: PriceTableDeps) {
    this.#deps = deps;
    const { models } = deps.settings;
    const globs = models.filter(({ pattern }) => pattern.includes('*'));
    this.#exact = new Map(models.map(({ pattern, price }) => [pattern, price]));
    this.#globs = globs.map(({ pattern, price }) => ({ glob: new Glob(pattern), price }));
  }

  /** For models without a price, on keys with a budget; undefined = they are refused there. */
  get otherwise(): Price | undefined {
    return this.#deps.settings.otherwise;
  }

  /**
   * The price of a target; undefined if unknown, which is not 0.
   * @param model the upstream's name of it, dated or not.
   * @param at ms since the epoch; some prices change by date or by time of day.
   */
  find(provider: string, model: string, at: number): Price | undefined {
    const name = `${provider}/${model}`;
    let schedule = this.#known.get(name);
    if (schedule === undefined && !this.#known.has(name)) {
      if (this.#known.size >= maxKnown) this.#known.clear();
      schedule = this.#search(provider, model);
      this.#known.set(name, schedule);
    }
    return schedule?.at(at);
  }

  /**
   * Loads the package where one of these providers is priced by it, so that no call waits for it. It blocks the
   * process for 25 ms and takes 5 MB, which a gateway of local models and of own servers does not need.
   */
  warm(providers: readonly string[]): void {
    const isListed = providers.some((each) => this.#deps.origin(each)?.kind === 'list');
    if (isListed) this.#ofList(() => this.#deps.list.load());
  }

  #search(provider: string, model: string): PriceSchedule | undefined {
    const configured = this.#configured(provider, model);
    if (configured !== undefined) return { at: () => configured };
    const origin = this.#deps.origin(provider);
    if (origin === undefined) return undefined;
    if (origin.kind === 'free') return { at: () => free };
    const { name, listedAs, adjusted } = origin;
    const named = origin.models?.[model] ?? model;
    const found = this.#ofList(() => this.#deps.list.find(name, named, listedAs));
    if (found === undefined || adjusted === undefined) return found;
    return {
      at: (when) => {
        const price = found.at(when);
        return price && adjusted(named, price);
      },
    };
  }

  /** The price of the model that an answer names; undefined where the provider's names of models are not the operator's own. */
  findAnswered(provider: string, model: string, when: number): Price | undefined {
    const origin = this.#deps.origin(provider);
    const isNamed = origin?.kind === 'list' && origin.ownNames === true;
    return isNamed ? this.find(provider, model, when) : undefined;
  }

  #configured(provider: string, model: string): Price | undefined {
    for (const each of familyNames(model)) {
      const name = `${provider}/${each}`;
      const price =
        this.#exact.get(name) ?? this.#globs.find(({ glob }) => glob.matches(name))?.price;
      if (price !== undefined) return price;
    }
    return undefined;
  }

  /** If the package cannot be read, its prices are unknown and calls continue. */
  #ofList<T>(ask: () => T): T | undefined {
    try {
      return ask();
    } catch (error) {
      if (!this.#failed) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#deps.log.error('price_list_unreadable', { reason });
      }
      this.#failed = true;
      return undefined;
    }
  }
}

// The price package: vendors' list prices, as data in `node_modules`; nothing is fetched. It is two thirds of a
// megabyte of source, so it is loaded when a price is first needed.

const packageName = '@pydantic/genai-prices';

/** A price that may change with the date or the time of day. */
interface PriceSchedule {
  /** @param at ms since the epoch. */
  at(at: number): Price | undefined;
}

interface Loaded {
  readonly prices: typeof GenaiPrices;
  readonly version: string;
}

export class PriceList {
  #loaded: Loaded | undefined;

  /** Loads the package if that has not happened; takes some ten milliseconds once. */
  load(): void {
    this.#package();
  }

  /** E.g. `0.1.8`. */
  get version(): string {
    return this.#package().version;
  }

  /** Whether there is a list of that name. */
  knows(list: string): boolean {
    return this.#package().prices.findProvider({ providerId: list })?.id === list;
  }

  /**
   * The schedule of a model in the list of that name; undefined where the list has no such model.
   * @param listedAs which other ids of the list may be meant: the dearest counts, since a budget must hold
   */
  find(list: string, model: string, listedAs?: ListedAs): PriceSchedule | undefined {
    const { version } = this.#package();
    const [first, ...others] = this.#listed(list, model, listedAs).map(({ provider, found }) =>
      schedule(found.prices, `genai-prices ${version} ${provider}/${found.id}`),
    );
    if (first === undefined || others.length === 0) return first;
    return {
      at: (at) => others.reduce((most, each) => dearer(most, each.at(at)), first.at(at)),
    };
  }

  /** Context window by the list; undefined if it has none. */
  window(list: string, model: string, listedAs?: ListedAs): number | undefined {
    return this.#listed(list, model, listedAs)[0]?.found.context_window;
  }

  /** What the list has for a model: one entry, or all that may be meant. */
  #listed(list: string, model: string, listedAs: ListedAs = () => []): readonly Listed[] {
    const { prices } = this.#package();
    for (const name of listedNames(model)) {
      const found = prices.calcPrice({}, name, { providerId: list });
      if (found !== null) return [{ provider: found.provider.id, found: found.model }];
    }
    const models = prices.findProvider({ providerId: list })?.models ?? [];
    const meant = new Set(
      listedAs(
        model,
        models.map(({ id }) => id),
      ),
    );
    return models.filter(({ id }) => meant.has(id)).map((found) => ({ provider: list, found }));
  }

  #package(): Loaded {
    if (this.#loaded !== undefined) return this.#loaded;
    // Loaded with require instead of import, since prices are needed synchronously.
    const require = createRequire(import.meta.url);
    const prices = require(packageName) as typeof GenaiPrices;
    const manifest = join(dirname(require.resolve(packageName)), '..', 'package.json');
    const { version } = require(manifest) as { readonly version: string };
    this.#loaded = { prices, version };
    return this.#loaded;
  }
}

type ListedPrices = GenaiPrices.ModelInfo['prices'];
type ListedAs = (model: string, ids: readonly string[]) => readonly string[];

interface Listed {
  readonly provider: string;
  readonly found: GenaiPrices.ModelInfo;
}

function dearer(a: Price | undefined, b: Price | undefined): Price | undefined {
  const sum = (price: Price | undefined): number =>
    price === undefined ? -1 : price.rates.input + price.rates.output;
  return sum(b) > sum(a) ? b : a;
}

function schedule(listed: ListedPrices, source: string): PriceSchedule {
  if (!Array.isArray(listed)) {
    const price = readPrice(listed, source);
    return { at: () => price };
  }
  // The last matching entry applies, or the first if none matches.
  const cases = listed.map(({ constraint, prices }) => ({
    holds: holding(constraint),
    price: readPrice(prices, source),
  }));
  const latestFirst = cases.toReversed();
  return { at: (at) => (latestFirst.find(({ holds }) => holds(at)) ?? cases[0])?.price };
}

const dayMs = 86_400_000;

function holding(constraint: GenaiPrices.ConditionalPrice['constraint']): (at: number) => boolean {
  if (constraint === undefined) return () => true;
  if (constraint.type === 'start_date') {
    const start = Date.parse(constraint.start_date);
    return (at) => at >= start;
  }
  const start = timeOfDay(constraint.start_time);
  const end = timeOfDay(constraint.end_time);
  return (at) => {
    const time = at % dayMs;
    return end < start ? time >= start || time < end : time >= start && time < end;
  };
}

/** `16:30:00Z`, `08:00:00+08:00`: ms after midnight UTC. */
function timeOfDay(text: string): number {
  return Date.parse(`1970-01-02T${text}`) % dayMs;
}

/** Models with these prices answer with kinds of tokens that are not reported separately. */
const otherOutputs = ['output_image_mtok', 'output_video_mtok'];

/** Undefined if the list has the model but not its text price: absent is not zero. */
function readPrice(listed: GenaiPrices.ModelPrice, source: string): Price | undefined {
  if (otherOutputs.some((name) => listed[name] !== undefined)) return undefined;
  const rates = ratesAbove(listed, 0);
  if (rates === undefined) return undefined;
  const call = readNumber(listed['requests_kcount'], 9);
  const webSearch = readNumber(listed['web_searches_kcount'], 9);
  return {
    rates,
    tiers: tiersOf(listed),
    ...(call === undefined ? {} : { call }),
    ...(webSearch === undefined ? {} : { webSearch }),
    source,
  };
}

function tiersOf(listed: GenaiPrices.ModelPrice): readonly PriceTier[] {
  const starts = Object.values(listed).flatMap((value) =>
    typeof value === 'object' ? value.tiers.map(({ start }) => start) : [],
  );
  const rising = [...new Set(starts)].toSorted((a, b) => a - b);
  return rising.flatMap((above) => {
    const rates = ratesAbove(listed, above + 1);
    return rates === undefined ? [] : [{ above, rates }];
  });
}

function ratesAbove(listed: GenaiPrices.ModelPrice, prompt: number): Rates | undefined {
  const rate = (name: string): number | undefined => readRate(listed[name], prompt);
  const [input, output] = [rate('input_mtok'), rate('output_mtok')];
  if (input === undefined || output === undefined) return undefined;
  const cacheRead = rate('cache_read_mtok');
  const cacheWrite = rate('cache_write_mtok') ?? rate('cache_write_5m_mtok');
  const cacheWriteLong = rate('cache_write_1h_mtok');
  const reasoning = rate('output_reasoning_mtok');
  return {
    input,
    output,
    ...mediaRates(rate),
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(cacheWriteLong === undefined ? {} : { cacheWriteLong }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
}

function mediaRates(rate: (name: string) => number | undefined): Partial<Rates> {
  const found: { -readonly [K in keyof Rates]?: Rates[K] } = {};
  for (const [name, listed] of Object.entries(mediaNames) as [keyof typeof mediaNames, string][]) {
    const value = rate(listed);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

/** Images in answers are not reported separately: see `otherOutputs`. */
const mediaNames = {
  audioInput: 'input_audio_mtok',
  imageInput: 'input_image_mtok',
  videoInput: 'input_video_mtok',
  audioCacheRead: 'cache_audio_read_mtok',
  audioOutput: 'output_audio_mtok',
} as const;

type ListedRate = GenaiPrices.ModelPrice[string];

/** Dollars per million tokens equal microdollars per token: six more places give picodollars. */
function readRate(value: ListedRate, prompt: number): number | undefined {
  if (typeof value !== 'object') return readNumber(value, 6);
  let price = value.base;
  let from = -1;
  for (const tier of value.tiers) {
    if (prompt > tier.start && tier.start > from) [price, from] = [tier.price, tier.start];
  }
  return readNumber(price, 6);
}

/** From the shortest decimal form of the number; finer values than a picodollar are rounded. */
function readNumber(value: ListedRate, places: number): number | undefined {
  return typeof value === 'number' ? scaledDecimal(String(value), places)?.units : undefined;
}

// The names under which the price of a model may be listed.

/** The name and, if it has a date, its undated family name. Nearest first. */
export function familyNames(model: string): readonly string[] {
  const family = withoutDate(model);
  return family === model ? [model] : [model, family];
}

/** The same, and then without the part before the last slash: `models/gemini-3-pro`. */
export function listedNames(model: string): readonly string[] {
  const bare = model.slice(model.lastIndexOf('/') + 1);
  return bare === model || bare === ''
    ? familyNames(model)
    : [...familyNames(model), ...familyNames(bare)];
}
