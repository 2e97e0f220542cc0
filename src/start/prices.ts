/** Part of the composition root: what models cost. */
import { PriceList } from '../access/price-list.ts';
import { PriceBook } from '../access/prices.ts';
import type { Settings } from '../config/settings.ts';
import type { Target } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { priceOrigins } from '../providers/price-origin.ts';
import type { Registry } from '../providers/registry.ts';
import type { PricedTarget, PriceRouteParts } from '../server/admin-prices.ts';

/** The data of the package is the same for every configuration. */
const list = new PriceList();

/** The prices of a configuration. */
export function priceBook(settings: Settings, log: Log): PriceBook {
  const origin = priceOrigins(settings.providers);
  return new PriceBook({ settings: settings.prices, list, origin, log });
}

interface PriceParts {
  readonly registry: Registry;
  readonly book: PriceBook;
  readonly clock: Clock;
}

/**
 * What models cost now: all that can be called, or one by name. A `provider/model` that cannot be
 * called here may have a price all the same.
 */
export async function pricedTargets(
  { registry, book, clock }: PriceParts,
  model: string | undefined,
): Promise<readonly PricedTarget[]> {
  const at = clock.wall();
  const priced = (name: string, target: string): PricedTarget => {
    const slash = target.indexOf('/');
    const price = book.find(target.slice(0, slash), target.slice(slash + 1), at);
    return { model: name, target, ...(price === undefined ? {} : { price }) };
  };
  if (model === undefined) {
    const listings = await registry.list();
    return listings.flatMap(({ id, targets }) => targets.map((target) => priced(id, target)));
  }
  const listed = registry.describe(model) ?? (await searched(registry, model));
  if (listed !== undefined) return listed.targets.map((target) => priced(model, target));
  const known = model.includes('/') ? priced(model, model) : undefined;
  return known?.price === undefined ? [] : [known];
}

/** A bare name is known once its provider's list is. */
async function searched(
  registry: Registry,
  model: string,
): Promise<ReturnType<Registry['describe']>> {
  return (await registry.search(model)) === undefined ? undefined : registry.describe(model);
}

/**
 * One number by which targets are compared, in picodollars: three tokens of prompt and one of answer, as
 * calls of agents are on average. Undefined where the price is not known.
 */
export function priceToCompare(
  book: Pick<PriceBook, 'find'>,
  { provider, model }: Target,
  at: number,
): number | undefined {
  const rates = book.find(provider.id, model, at)?.rates;
  return rates === undefined ? undefined : 3 * rates.input + rates.output;
}

/** What the admin API tells of prices. @param parts those that hold when it is asked */
export function priceParts(parts: () => PriceParts): PriceRouteParts {
  return {
    prices: (model) => pricedTargets(parts(), model),
    defaultPrice: () => parts().book.otherwise,
  };
}
