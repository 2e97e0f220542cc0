/** Keys, teams and tags as the admin API has them. */
import {
  keepPreviousData,
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
  /** Of the last 30 days; in lists. Null: no call has a known price. */
  readonly spent_usd?: number | null;
}

export interface NewKey extends Key {
  /** The secret: it is in this answer only. */
  readonly key: string;
}

/** What has limits and budgets that keys share. */
export const holderKinds = ['team', 'tag'] as const;
export type HolderKind = (typeof holderKinds)[number];

export interface Holder extends Policy {
  readonly name: string;
  readonly source: 'store' | 'config';
  /** Keys and teams that may set a tag by header; of tags only. */
  readonly keys?: readonly string[];
  readonly teams?: readonly string[];
}

/** A body of the API: members that are absent stay as they are, null takes away. */
export type Body = Readonly<Record<string, unknown>>;

const pageSize = 200;
const keysKey = ['keys'] as const;
const holdersKey = ['holders'] as const;

interface KeyPage {
  readonly keys: readonly Key[];
  readonly next: string | null;
}

export const keySorts = [
  { value: 'created', label: 'As created' },
  { value: 'spend', label: 'Most spent' },
  { value: 'used', label: 'Last used' },
] as const;

export const keyStates = [
  { value: '', label: 'All states' },
  { value: 'active', label: 'Active' },
  { value: 'expired', label: 'Expired' },
  { value: 'revoked', label: 'Revoked' },
] as const;

/** Which keys, and in which order; empty = any, as created. */
export interface KeyFilter {
  readonly text?: string | undefined;
  readonly team?: string | undefined;
  readonly state?: string | undefined;
  readonly sort?: string | undefined;
}

/** The keys of a filter, with what they spent; pages are fetched as they come into sight. */
export function useKeys(filter: KeyFilter) {
  const { text, team, state, sort } = filter;
  return useInfiniteQuery({
    queryKey: [...keysKey, 'list', text, team, state, sort],
    queryFn: ({ pageParam, signal }) =>
      get<KeyPage>('/api/keys', {
        query: {
          limit: pageSize,
          after: pageParam,
          text: text === '' ? undefined : text,
          team,
          state: state === '' ? undefined : state,
          sort,
          with: 'spend',
        },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  });
}

export function useKey(id: string) {
  return useQuery({
    queryKey: [...keysKey, 'one', id],
    queryFn: ({ signal }) => get<Key>(`/api/keys/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: 10_000,
  });
}

/** All teams or tags with limits or budgets, by name. */
export function useHolders(kind: HolderKind) {
  return useQuery({
    queryKey: [...holdersKey, 'list', kind],
    queryFn: async ({ signal }) => {
      const all: Holder[] = [];
      let after: string | undefined;
      do {
        const query = { limit: 1000, after };
        const page = await get<HolderPage>(`/api/${kind}s`, { query, signal });
        all.push(...(page[`${kind}s` as const] ?? []));
        after = page.next ?? undefined;
      } while (after !== undefined);
      return all;
    },
  });
}

type HolderPage = { readonly [K in `${HolderKind}s`]?: readonly Holder[] } & {
  readonly next: string | null;
};

/** @param enabled false: it has no limits, and is not requested */
export function useHolder(kind: HolderKind, name: string, enabled: boolean) {
  return useQuery({
    queryKey: [...holdersKey, 'one', kind, name],
    queryFn: ({ signal }) => get<Holder>(`/api/${kind}s/${encodeURIComponent(name)}`, { signal }),
    enabled,
  });
}

export interface HolderUsage {
  readonly team?: string | null;
  readonly tag?: string | null;
  readonly calls: number;
  readonly cost_usd: number | null;
}

/** What each team or tag used in the last 30 days. */
export function useHolderUsage(kind: HolderKind) {
  return useQuery({
    queryKey: ['usage', kind],
    queryFn: async ({ signal }) => {
      const query = { by: kind, since: '30d', limit: 10_000 };
      return (await get<{ readonly rows: readonly HolderUsage[] }>('/api/usage', { query, signal }))
        .rows;
    },
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

/** How long a change waits for the lists that show it. */
const listPatienceMs = 1000;

const passed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Change {
  readonly method: 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: Body;
}

/** Changes a key, a team or a tag, and has everything that shows them fetched again. */
export function useChange<Answer>(): UseMutationResult<Answer, Error, Change> {
  const client = useQueryClient();
  return useMutation<Answer, Error, Change>({
    mutationFn: ({ method, path, body }) =>
      send<Answer>(method, path, body === undefined ? {} : { body }),
    onSuccess: async (_answer, { method }) => {
      // What was taken away is not requested again while its window closes.
      const gone = method === 'DELETE' ? ['list'] : [];
      const fetched = [keysKey, [...holdersKey, ...gone]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      );
      // A window closes over what it changed, but no list that hangs holds it open or a new secret back.
      await Promise.race([Promise.all(fetched), passed(listPatienceMs)]);
    },
  });
}

export function keyPath(id: string, action = ''): string {
  return `/api/keys/${encodeURIComponent(id)}${action}`;
}
