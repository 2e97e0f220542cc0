/** Failed calls by what they have in common: `/api/errors`. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { get, type QueryValue } from './client.ts';

/** Whose fault a failure is, in the order in which charts stack them. */
export const faults = ['provider', 'gateway', 'client', 'limit'] as const;
export type Fault = (typeof faults)[number];

export const faultNames: { readonly [F in Fault]: string } = {
  provider: 'Provider',
  gateway: 'Gateway',
  client: 'Client',
  limit: 'Own limit',
};

/** Colours with a meaning: the same in charts, lists and badges. */
export const faultColours: { readonly [F in Fault]: string } = {
  provider: '--fault-provider',
  gateway: '--fault-gateway',
  client: '--fault-client',
  limit: '--fault-limit',
};

/** What failed calls have in common besides their cause. */
export type Facet = 'provider' | 'key' | 'model' | 'answered' | 'team' | 'limit';

export interface ErrorGroup {
  /** Not where the grouping is by error. */
  readonly name?: string | null;
  readonly key_name?: string | null;
  readonly fault?: Fault | null;
  readonly error?: string | null;
  readonly reason?: string | null;
  readonly status?: number | null;
  readonly calls: number;
  readonly last_at: string;
  /** Id of the newest call. */
  readonly last_call: string;
  readonly last_message: string | null;
}

export interface ErrorsAnswer {
  /** Only the newest of very many failed calls are counted. */
  readonly cut: boolean;
  /** By cause. */
  readonly groups: readonly ErrorGroup[];
  readonly facets: { readonly [F in Facet]: readonly ErrorGroup[] };
}

export interface ErrorsQuery {
  readonly [name: string]: QueryValue;
  readonly since: string;
  readonly until?: string | undefined;
  readonly fault?: Fault | undefined;
  readonly limit: number;
  /** Groups of each facet. */
  readonly facets: number;
}

/** By cause and by all facets: one question. */
export function useErrors(query: ErrorsQuery, everyMs: number | false) {
  return useQuery({
    queryKey: ['errors', query],
    queryFn: ({ signal }) => get<ErrorsAnswer>('/api/errors', { query, signal }),
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
  });
}

const limitKinds: { readonly [kind: string]: string } = {
  requests: 'request limit',
  tokens: 'token limit',
  concurrent: 'concurrency limit',
  day: 'daily budget',
  week: 'weekly budget',
  month: 'monthly budget',
  ever: 'budget',
};

export interface LimitName {
  readonly holder: string;
  /** Id of a key, name of a team or tag. */
  readonly name: string;
  /** `request limit`, `monthly budget`; with the models that it is for. */
  readonly kind: string;
}

/** `key:a1b2c3d4:requests` in parts; undefined for what is not a limit. A tag's name may hold colons. */
export function limitName(limit: string): LimitName | undefined {
  const found = /^(key|team|tag):(.*):(requests|tokens|concurrent|day|week|month|ever)(:.*)?$/.exec(
    limit,
  );
  const [, holder, name, kind, models = ''] = found ?? [];
  if (holder === undefined || name === undefined || kind === undefined) return undefined;
  const ofModels = models === '' ? '' : ` for ${models.slice(1)}`;
  return { holder, name, kind: `${limitKinds[kind] ?? kind}${ofModels}` };
}
