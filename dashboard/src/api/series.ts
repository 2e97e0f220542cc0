/** What happened over time: `/api/series`. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { get, type QueryValue } from './client.ts';

export const groupings = ['model', 'answered', 'provider', 'key', 'team', 'user', 'tag'] as const;
export type Grouping = (typeof groupings)[number];

/** The word for a group. `model` is the name in the client's request. */
export const groupingNames: { readonly [G in Grouping]: string } = {
  model: 'model',
  answered: 'answering model',
  provider: 'provider',
  key: 'key',
  team: 'team',
  user: 'user',
  tag: 'tag',
};

/** The filter that selects the calls of a group. */
export function filterOfGroup(by: string, name: string): { readonly [name: string]: string } {
  if (by !== 'answered') return { [by]: name };
  const slash = name.indexOf('/');
  return { provider: name.slice(0, slash), upstream_model: name.slice(slash + 1) };
}

export interface SeriesSums {
  readonly calls: number;
  readonly failed: number;
  readonly failed_limit: number;
  readonly failed_client: number;
  readonly failed_provider: number;
  readonly failed_gateway: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  /** Null: no call of them has a price. */
  readonly cost_usd: number | null;
  /** Calls without a known price: neither in the cost nor in what caches saved. */
  readonly unpriced_calls: number;
  /** Negative: writing to caches cost more than reading from them saved. */
  readonly cache_saved_usd: number | null;
  /** Milliseconds; null: no call of them was examined. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly first_p50_ms: number | null;
  readonly first_p95_ms: number | null;
  /** Output tokens a second of streams, behind their first part; null: there was none. */
  readonly speed_p50: number | null;
  /** Nineteen of twenty were faster. */
  readonly speed_p5: number | null;
}

export interface SeriesPoint extends SeriesSums {
  readonly at: string;
}

export interface SeriesGroup extends SeriesSums {
  /** Null: all calls, or calls without this property. */
  readonly name: string | null;
  readonly key_name?: string | null;
  readonly points: readonly SeriesPoint[];
}

export interface SeriesAnswer {
  readonly since: string;
  readonly until: string;
  readonly step: 'minute' | 'hour' | '6h' | 'day';
  /** Number of calls that the percentiles are computed from. */
  readonly sampled: number;
  readonly percentiles: 'exact' | 'sampled';
  readonly groups: readonly SeriesGroup[];
  /** Of all calls; only `with: 'total'`. */
  readonly total?: SeriesGroup;
}

/** Parameters of a series; a change of them is another series. */
export interface SeriesQuery {
  readonly [name: string]: QueryValue;
  readonly since: string;
  readonly until?: string | undefined;
  readonly by?: Grouping | undefined;
  readonly groups?: number | undefined;
  /** The number of groups with points: this many with the most calls, and this many with the highest cost. */
  readonly points?: number | undefined;
  /** `total`: all calls beside the groups. */
  readonly with?: 'total' | undefined;
}

/** One group with all calls; no group if there are no calls. */
function totalOf(answer: SeriesAnswer): SeriesAnswer {
  const { total } = answer;
  if (total === undefined) return answer;
  return { ...answer, groups: total.calls === 0 ? [] : [total] };
}

function seriesOptions(query: SeriesQuery, everyMs: number | false, enabled: boolean) {
  return {
    queryKey: ['series', query] as const,
    queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
      get<SeriesAnswer>('/api/series', { query: query, signal }),
    refetchInterval: everyMs,
    enabled,
    placeholderData: keepPreviousData,
  };
}

/**
 * @param everyMs how often it is asked again; false: never by itself.
 * @param enabled false: never asked
 */
export function useSeries(query: SeriesQuery, everyMs: number | false, enabled = true) {
  return useQuery<SeriesAnswer>(seriesOptions(query, everyMs, enabled));
}

/** All calls of a series `with: 'total'`, or of one without groups. Equal queries are fetched once. */
export function useTotal(query: SeriesQuery, everyMs: number | false) {
  return useQuery<SeriesAnswer>({ ...seriesOptions(query, everyMs, true), select: totalOf });
}
