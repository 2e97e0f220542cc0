/** Models, providers, prices and downloads as the admin API has them. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import { useMay, viewers } from './session.ts';

export interface Target {
  /** `provider/model` */
  readonly target: string;
  /** `unknown` when nothing is known against it. */
  readonly health: string;
  readonly credentials?: readonly { readonly name: string; readonly health: string }[];
  /** Of weighted routes. */
  readonly weight?: number;
}

export interface Model {
  readonly id: string;
  readonly targets: readonly Target[];
  /** Which target is asked first; of several. */
  readonly order?: 'listed' | 'weighted' | 'least-busy' | 'fastest' | 'cheapest';
  /** What the APIs of all targets take besides text; absent: unknown. */
  readonly abilities?: readonly string[];
  /** Tokens; null: unknown. */
  readonly max_input_tokens: number | null;
  readonly max_tokens: number | null;
  /** Of models of the embedded engine. */
  readonly local?: Readonly<Record<string, unknown>>;
}

export interface Provider {
  readonly id: string;
  readonly address: string;
  readonly origin: string;
  readonly there: boolean;
  readonly credentials: readonly string[];
}

export interface Download {
  readonly name: string;
  readonly bytes: number;
  readonly total_bytes: number | null;
  readonly written_at: string;
  readonly active: boolean;
}

interface ModelList {
  readonly models: readonly Model[];
  readonly problems: readonly { readonly subject: string; readonly why: string }[];
}

/** Requested again: health and breakers change. */
const againMs = 5_000;

export function useModels() {
  return useQuery({
    queryKey: ['models'],
    queryFn: ({ signal }) => get<ModelList>('/api/models', { signal }),
    refetchInterval: againMs,
  });
}

/** Nothing for members of teams. */
export function useProviders() {
  const enabled = useMay(viewers);
  return useQuery({
    enabled,
    queryKey: ['providers'],
    queryFn: ({ signal }) =>
      get<{ readonly providers: readonly Provider[] }>('/api/providers', { signal }),
    refetchInterval: againMs,
  });
}

export function useDownloads() {
  return useQuery({
    queryKey: ['downloads'],
    queryFn: ({ signal }) =>
      get<{ readonly downloads: readonly Download[] }>('/api/downloads', { signal }),
    refetchInterval: 1_000,
  });
}

/** Dollars for a million tokens; null = as the rate that it falls back to. */
export interface Rates {
  readonly source: string;
  readonly input: number;
  readonly cache_read: number | null;
  readonly cache_write: number | null;
  readonly output: number;
  readonly reasoning: number | null;
  readonly tiers: readonly {
    readonly above: number;
    readonly input: number;
    readonly output: number;
  }[];
}

export interface TargetPrice {
  readonly model: string;
  readonly target: string;
  /** Null: unknown. */
  readonly price: Rates | null;
}

interface PriceList {
  readonly prices: readonly TargetPrice[];
}

export function usePrices(model: string) {
  return useQuery({
    queryKey: ['prices', model],
    queryFn: ({ signal }) => get<PriceList>('/api/prices', { query: { model }, signal }),
  });
}

/** Of all models that can be called, by model. */
export function useAllPrices() {
  return useQuery({
    queryKey: ['prices'],
    queryFn: async ({ signal }) => {
      const { prices } = await get<PriceList>('/api/prices', { signal });
      return new Map(Object.entries(Object.groupBy(prices, ({ model }) => model)));
    },
    staleTime: 60_000,
  });
}
