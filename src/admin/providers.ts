/** `/api/providers` and `/api/downloads`: who answers calls, and which model files are on their way. */
import { z } from 'zod';
import { type Price, type Rates, decimalText, ratePerMillion } from '../core/money.ts';
import type { Clock } from '../core/runtime.ts';
import type { JsonObject } from '../json/value.ts';
import { AdminError, type AdminRoute, dateText, readInput, time } from './route.ts';

export interface AdminProvider {
  readonly id: string;
  /** Base address, without what a password could be in. */
  readonly address: string;
  /** File and line, environment variable, `if it answers`, … */
  readonly origin: string;
  /** False for one that was searched for and is not there. */
  readonly there: boolean;
  /** Names, where there are several keys; never values. */
  readonly credentials: readonly string[];
}

interface AdminDownload {
  readonly name: string;
  readonly bytes: number;
  readonly totalBytes?: number;
  readonly writtenAt: number;
}

export interface ProviderRouteDeps {
  readonly clock: Clock;
  providers(): readonly AdminProvider[];
  /** By id, as `models` words it: `healthy`, `down: …`; undefined: it was never called. Absent where no gateway runs. */
  providerHealth?(): Promise<(id: string) => string | undefined>;
  downloads(): Promise<readonly AdminDownload[]>;
}

const provider = z.strictObject({
  id: z.string(),
  address: z.string(),
  origin: z.string().describe('Where it is configured.'),
  there: z.boolean().describe('False: a local engine that does not answer.'),
  credentials: z
    .array(z.string())
    .describe('Names of the credentials, if there are several; never values.'),
  health: z
    .string()
    .describe(
      'The worst state of its models and credentials: healthy, degraded: …, down: …, or unknown (never called).',
    ),
});

const download = z.strictObject({
  name: z.string().describe('Id of the model after the download.'),
  bytes: z.number().int(),
  total_bytes: z.number().int().nullable().describe('Null: the server did not report it.'),
  written_at: time.describe('Time of the last received bytes.'),
  active: z.boolean().describe('Bytes arrived within the last fifteen seconds.'),
});

const restMs = 15_000;

export function providerRoutes(deps: ProviderRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/providers',
      about: {
        summary: 'List the providers that are configured or discovered.',
        answer: z.strictObject({ providers: z.array(provider) }),
      },
      run: async () => {
        const healthOf = await deps.providerHealth?.();
        const providers = deps.providers().map(({ id, address, origin, there, credentials }) => ({
          id,
          address,
          origin,
          there,
          credentials: [...credentials],
          health: healthOf?.(id) ?? 'unknown',
        }));
        return { status: 200, body: { providers } };
      },
    },
    {
      method: 'GET',
      path: '/api/downloads',
      about: {
        summary: 'List downloads of model files that run or were interrupted.',
        answer: z.strictObject({ downloads: z.array(download) }),
      },
      run: async () => {
        const now = deps.clock.wall();
        const downloads = (await deps.downloads()).map((each) => ({
          name: each.name,
          bytes: each.bytes,
          total_bytes: each.totalBytes ?? null,
          written_at: dateText(each.writtenAt),
          active: now - each.writtenAt < restMs,
        }));
        return { status: 200, body: { downloads } };
      },
    },
  ];
}

// `/api/prices`: what models cost, and who says so.

/** A target of a model; without a price its cost is unknown. */
export interface PricedTarget {
  /** As clients call it. */
  readonly model: string;
  /** `provider/model`. */
  readonly target: string;
  readonly price?: Price;
}

export interface PriceRouteDeps {
  /** Of all models that can be called, or of one; that one need not be in a list. */
  prices(model?: string): Promise<readonly PricedTarget[]>;
  /** `default` of the config's `prices:`. */
  defaultPrice(): Price | undefined;
}

const query = z.strictObject({
  model: z
    .string()
    .min(1, 'is empty')
    .max(512, 'is too long')
    .optional()
    .describe(
      'The name that clients use, or provider/model. Default: all models that can be called.',
    ),
});

const rate = z.number().nullable();
const rates = {
  input: z.number(),
  cache_read: rate.describe('Null: as input.'),
  cache_write: rate.describe('Null: as input.'),
  cache_write_1h: rate.describe('Null: as cache_write.'),
  output: z.number(),
  reasoning: rate.describe('Null: as output.'),
  audio_input: rate.describe('Null: as input.'),
  image_input: rate.describe('Null: as input.'),
  video_input: rate.describe('Null: as input.'),
  audio_cache_read: rate.describe('Null: as cache_read.'),
  audio_output: rate.describe('Null: as output.'),
  image_output: rate.describe('Null: as output.'),
};
const tiers = z
  .array(z.strictObject({ above: z.number(), ...rates }))
  .describe('Rates of the whole call when its prompt has more than `above` tokens.');
export const priceAnswer = z.strictObject({
  source: z.string().describe('A line of the config, the price package and its version, or local.'),
  ...rates,
  tiers,
  service_tiers: z
    .record(z.string(), z.strictObject({ ...rates, tiers }))
    .describe('Rates of service tiers with their own prices, by name.'),
  call: rate.describe('Dollars per call.'),
  per_image: rate.describe('Dollars per image in the prompt, in addition to its tokens.'),
  web_search: rate.describe('Dollars per web search that the provider runs.'),
  file_search: rate.describe('Dollars per call of the file search of the Responses API.'),
});
const answer = z.strictObject({
  unit: z.string(),
  prices: z.array(
    z.strictObject({
      model: z.string(),
      target: z.string(),
      price: priceAnswer.nullable().describe('Null: unknown, as opposed to 0.'),
    }),
  ),
  default: priceAnswer.nullable().describe('Price of models without one, for keys with a budget.'),
});

export function priceRoutes(deps: PriceRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/prices',
      about: { summary: 'Show the prices of models and their sources.', query, answer },
      run: async (request) => {
        const { model } = readInput(query, request.query);
        const targets = await deps.prices(model);
        if (model !== undefined && targets.length === 0) {
          const hint =
            'model-gateway models lists what can be called; provider/model names any other';
          throw new AdminError(404, `There is no model "${model}": ${hint}.`, 'model');
        }
        const otherwise = deps.defaultPrice();
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

export function priceJson(price: Price): JsonObject {
  const { call, perImage, webSearch, fileSearch, source, service } = price;
  const others = [...(service ?? [])].filter(([name]) => name !== 'standard');
  return {
    source,
    ...tieredJson(price),
    service_tiers: Object.fromEntries(others.map(([name, own]) => [name, tieredJson(own)])),
    call: each(call),
    per_image: each(perImage),
    web_search: each(webSearch),
    file_search: each(fileSearch),
  };
}

function tieredJson(price: Price): JsonObject {
  return {
    ...ratesJson(price.rates),
    tiers: price.tiers.map((tier) => ({ above: tier.above, ...ratesJson(tier.rates) })),
  };
}

function each(picodollars: number | undefined): number | null {
  return picodollars === undefined ? null : Number(decimalText(picodollars, 12));
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
    audio_input: dollars(rates.audioInput),
    image_input: dollars(rates.imageInput),
    video_input: dollars(rates.videoInput),
    audio_cache_read: dollars(rates.audioCacheRead),
    audio_output: dollars(rates.audioOutput),
    image_output: dollars(rates.imageOutput),
  };
}

function dollars(rate: number | undefined): number | null {
  return rate === undefined ? null : Number(ratePerMillion(rate));
}
