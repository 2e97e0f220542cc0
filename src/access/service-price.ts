/** The cost of a call by its service tier: the tier that the vendor reports, else the requested one. */
import type { Price } from '../core/money.ts';

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
