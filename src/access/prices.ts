/**
 * The price of a model: the config first, then the price package. One table belongs to one configuration; a
 * reload creates a new one.
 */
import type { Price, PriceOrigin, PriceSettings } from '../core/money.ts';
import type { Log } from '../core/runtime.ts';
import { Glob } from '../core/model-names.ts';
import type { PriceList, PriceSchedule } from './price-list.ts';
import { familyNames } from './price-names.ts';

/** Clients can ask for any number of names. Above this limit the cached ones are dropped. */
const mostKnown = 10_000;

export interface PriceTableParts {
  readonly settings: PriceSettings;
  readonly list: Pick<PriceList, 'find' | 'load'>;
  /** Where the prices of a provider's models come from; undefined = the config, or no source. */
  origin(provider: string): PriceOrigin | undefined;
  readonly log: Log;
}

const free: Price = { rates: { input: 0, output: 0 }, tiers: [], source: 'local' };

export class PriceTable {
  readonly #parts: PriceTableParts;
  readonly #exact: ReadonlyMap<string, Price>;
  readonly #globs: readonly { readonly glob: Glob; readonly price: Price }[];
  readonly #known = new Map<string, PriceSchedule | undefined>();
  #failed = false;

  constructor(parts: PriceTableParts) {
    this.#parts = parts;
    const { models } = parts.settings;
    const globs = models.filter(({ pattern }) => pattern.includes('*'));
    this.#exact = new Map(models.map(({ pattern, price }) => [pattern, price]));
    this.#globs = globs.map(({ pattern, price }) => ({ glob: new Glob(pattern), price }));
  }

  /** For models without a price, on keys with a budget (F6); undefined = they are refused there. */
  get otherwise(): Price | undefined {
    return this.#parts.settings.otherwise;
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
      if (this.#known.size >= mostKnown) this.#known.clear();
      schedule = this.#search(provider, model);
      this.#known.set(name, schedule);
    }
    return schedule?.at(at);
  }

  /** Loads the package, so that no call waits for it. */
  warm(): void {
    this.#ofList(() => this.#parts.list.load());
  }

  #search(provider: string, model: string): PriceSchedule | undefined {
    const configured = this.#configured(provider, model);
    if (configured !== undefined) return { at: () => configured };
    const origin = this.#parts.origin(provider);
    if (origin === undefined) return undefined;
    if (origin.kind === 'free') return { at: () => free };
    return this.#ofList(() => this.#parts.list.find(origin.name, model));
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
        this.#parts.log.error('price_list_unreadable', { reason });
      }
      this.#failed = true;
      return undefined;
    }
  }
}
