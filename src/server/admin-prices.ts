/** `/api/prices`: what models cost, and who says so. */
import { z } from 'zod';
import type { JsonObject } from '../core/conversation.ts';
import { decimalText, ratePerMillion } from '../core/money.ts';
import type { Price, Rates } from '../core/price.ts';
import { AdminError, readInput, type AdminRoute } from './admin-route.ts';

/** A target of a model; without a price nobody knows what it costs. */
export interface PricedTarget {
  /** As clients call it. */
  readonly model: string;
  /** `provider/model`. */
  readonly target: string;
  readonly price?: Price;
}

export interface PriceRouteParts {
  /** Of all models that can be called, or of one; that one need not be in a list. */
  prices(model?: string): Promise<readonly PricedTarget[]>;
  /** `default` of the config's `prices:`. */
  defaultPrice(): Price | undefined;
}

const query = z.strictObject({ model: z.string().min(1, 'is empty').max(512).optional() });

export function priceRoutes(parts: PriceRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/prices',
      run: async (request) => {
        const { model } = readInput(query, request.query);
        const targets = await parts.prices(model);
        if (model !== undefined && targets.length === 0) {
          throw new AdminError(404, `There is no model "${model}".`, 'model');
        }
        const otherwise = parts.defaultPrice();
        const body = {
          unit: 'USD per million tokens',
          prices: targets.map(targetJson),
          default: otherwise === undefined ? null : priceJson(otherwise),
        };
        return { status: 200, body };
      },
    },
  ];
}

function targetJson({ model, target, price }: PricedTarget): JsonObject {
  return { model, target, price: price === undefined ? null : priceJson(price) };
}

function priceJson({ rates, tiers, call, source }: Price): JsonObject {
  return {
    source,
    ...ratesJson(rates),
    tiers: tiers.map((tier) => ({ above: tier.above, ...ratesJson(tier.rates) })),
    call: call === undefined ? null : Number(decimalText(call, 12)),
  };
}

/** Null: as the rate that it falls back to (input, cache_write, output). */
function ratesJson(rates: Rates): JsonObject {
  return {
    input: dollars(rates.input),
    cache_read: dollars(rates.cacheRead),
    cache_write: dollars(rates.cacheWrite),
    cache_write_1h: dollars(rates.cacheWriteLong),
    output: dollars(rates.output),
    reasoning: dollars(rates.reasoning),
  };
}

function dollars(rate: number | undefined): number | null {
  return rate === undefined ? null : Number(ratePerMillion(rate));
}
