/** Keys and teams as the admin API has them. */
import {
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
  type UseMutationResult,
} from '@tanstack/react-query';
import { get, send } from '../../api/client.ts';

export type Period = 'day' | 'week' | 'month' | 'ever';

export type LimitKind = 'requests' | 'tokens' | 'concurrent';

export interface Budget {
  /** Dollars, exactly. */
  readonly usd: string;
  readonly per: Period;
  readonly time_zone: string;
  /** Where one key or team is shown. */
  readonly starts_at?: string | null;
  readonly ends_at?: string | null;
  readonly spent_usd?: string;
}

export interface Policy {
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly concurrent: number | null;
  readonly limits: readonly {
    readonly kind: LimitKind;
    readonly amount: number;
    readonly model: string | null;
  }[];
  readonly budgets: readonly Budget[];
}

export interface Key extends Policy {
  readonly id: string;
  readonly name: string;
  readonly state: 'active' | 'expired' | 'revoked';
  readonly source: 'store' | 'config' | 'environment';
  readonly models: readonly string[];
  readonly endpoints: readonly string[];
  readonly team: string | null;
  readonly owner: string | null;
  readonly tags: readonly string[];
  readonly cidrs: readonly string[];
  readonly strict: boolean;
  readonly cache: 'auto' | null;
  readonly shrink: boolean;
  readonly log_content: boolean;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
  readonly previous: readonly { readonly valid_until: string | null }[];
}

export interface NewKey extends Key {
  /** The secret: it is in this answer only. */
  readonly key: string;
}

export interface Team extends Policy {
  readonly name: string;
  readonly source: 'store' | 'config';
}

/** A body of the API: members that are absent stay as they are, null takes away. */
export type Body = Readonly<Record<string, unknown>>;

const pageSize = 200;
const keysKey = ['keys'] as const;
const teamsKey = ['teams'] as const;

interface KeyPage {
  readonly keys: readonly Key[];
  readonly next: string | null;
}

/** All keys, or those with a text in them; pages are fetched as they come into sight. */
export function useKeys(text: string) {
  return useInfiniteQuery({
    queryKey: [...keysKey, 'list', text],
    queryFn: ({ pageParam, signal }) =>
      get<KeyPage>('/api/keys', {
        query: { limit: pageSize, after: pageParam, text: text === '' ? undefined : text },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
}

export function useKey(id: string) {
  return useQuery({
    queryKey: [...keysKey, 'one', id],
    queryFn: ({ signal }) => get<Key>(`/api/keys/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: 10_000,
  });
}

export function useTeams() {
  return useQuery({
    queryKey: [...teamsKey, 'list'],
    queryFn: ({ signal }) =>
      get<{ readonly teams: readonly Team[] }>('/api/teams', { query: { limit: 1000 }, signal }),
  });
}

export function useTeam(name: string) {
  return useQuery({
    queryKey: [...teamsKey, 'one', name],
    queryFn: ({ signal }) => get<Team>(`/api/teams/${encodeURIComponent(name)}`, { signal }),
  });
}

/** What was spent by the hour, for the burn-down of a budget: its days may be those of any zone. */
export function useSpending(holder: { readonly [name: string]: string }, since: string) {
  return useQuery({
    queryKey: ['series', 'spending', holder, since],
    queryFn: ({ signal }) =>
      get<Spending>('/api/series', {
        query: { ...holder, since, step: 'hour', groups: 1 },
        signal,
      }),
    refetchInterval: 30_000,
  });
}

interface Spending {
  readonly groups: readonly {
    readonly points: readonly { readonly at: string; readonly cost_usd: number | null }[];
  }[];
}

interface Change {
  readonly method: 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: Body;
}

/** Changes a key or a team, and has everything that shows them fetched again. */
export function useChange<Answer>(): UseMutationResult<Answer, Error, Change> {
  const client = useQueryClient();
  return useMutation<Answer, Error, Change>({
    mutationFn: ({ method, path, body }) =>
      send<Answer>(method, path, body === undefined ? {} : { body }),
    onSuccess: async (_answer, { method }) => {
      await client.invalidateQueries({ queryKey: keysKey });
      // What was taken away is not asked for again while its window closes.
      const gone = method === 'DELETE' ? ['list'] : [];
      await client.invalidateQueries({ queryKey: [...teamsKey, ...gone] });
    },
  });
}

export function keyPath(id: string, action = ''): string {
  return `/api/keys/${encodeURIComponent(id)}${action}`;
}
