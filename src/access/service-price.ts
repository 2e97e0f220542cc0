/** What a call costs by its service tier: what the vendor says that it was, else what was asked for. */
import type { Price } from '../core/money.ts';

/** The service that a price without tiers is for. */
const standard = 'standard';
/** In requests and answers of both formats. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['default', standard],
  ['standard_only', standard],
  ['auto', standard],
]);
/** What no vendor makes of a call by itself. */
const onlyAsked = 'fast';

/** @param tier in the words of either format; a tier without a price of its own costs the standard one. */
export function servedPrice(price: Price, tier: string | undefined): Price {
  const { service } = price;
  if (service === undefined) return price;
  const name = tier === undefined ? standard : (otherNames.get(tier) ?? tier);
  return service.get(name) ?? service.get(standard) ?? price;
}

/**
 * All that a call may be charged at, when it asks for this tier: of one that names none, or `auto`, the
 * vendor makes what its account is set to.
 */
export function possiblePrices(price: Price, asked: string | undefined): readonly Price[] {
  if (price.service === undefined) return [price];
  const possible = new Set([servedPrice(price, standard)]);
  if (asked !== undefined && asked !== 'auto') possible.add(servedPrice(price, asked));
  else for (const [name, own] of price.service) if (name !== onlyAsked) possible.add(own);
  return [...possible];
}
