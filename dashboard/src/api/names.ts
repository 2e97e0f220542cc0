/** Names that filters offer and that tables show in place of ids. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import { useMay, viewers } from './session.ts';

export interface KeyName {
  readonly id: string;
  readonly name: string;
}

interface KeyPage {
  readonly keys: readonly KeyName[];
  readonly next: string | null;
}

/** Keys that are fetched for their names; of others the id is shown. */
const maxKeys = 5_000;

async function allKeys(signal: AbortSignal): Promise<readonly KeyName[]> {
  const keys: KeyName[] = [];
  let after: string | undefined;
  do {
    const query = { limit: 1000, after };
    const page: KeyPage = await get<KeyPage>('/api/keys/names', { query, signal });
    keys.push(...page.keys);
    after = page.next ?? undefined;
  } while (after !== undefined && keys.length < maxKeys);
  return keys;
}

export function useKeyNames() {
  return useQuery({
    // Below the keys: a new or renamed key has them fetched again.
    queryKey: ['keys', 'names'],
    queryFn: ({ signal }) => allKeys(signal),
    staleTime: 60_000,
  });
}

/** Names of all models that can be called. */
export function useModelNames() {
  return useQuery({
    queryKey: ['model-names'],
    queryFn: async ({ signal }) => {
      const { models } = await get<{ readonly models: readonly { readonly id: string }[] }>(
        '/api/models',
        { signal },
      );
      return models.map(({ id }) => id);
    },
    staleTime: 60_000,
  });
}

/** Names of the models that upstreams have, of all targets. */
export function useUpstreamModels() {
  return useQuery({
    queryKey: ['upstream-models'],
    queryFn: async ({ signal }) => {
      const { models } = await get<ModelTargets>('/api/models', { signal });
      const names = models.flatMap(({ targets }) =>
        targets.map(({ target }) => target.slice(target.indexOf('/') + 1)),
      );
      return [...new Set(names)];
    },
    staleTime: 60_000,
  });
}

interface ModelTargets {
  readonly models: readonly { readonly targets: readonly { readonly target: string }[] }[];
}

/** Names that calls of the last 30 days have (users: of the last day), the most used first. */
export function useUsedNames(by: 'team' | 'tag' | 'user', isWanted = true) {
  return useQuery({
    queryKey: ['used-names', by],
    queryFn: async ({ signal }) => {
      // Those by user are added up call by call.
      const since = by === 'user' ? '24h' : '30d';
      const { rows } = await get<UsedNames>('/api/usage', { query: { by, since }, signal });
      return rows
        .toSorted((a, b) => b.calls - a.calls)
        .map((row) => row[by])
        .filter((name) => name !== null && name !== undefined);
    },
    enabled: isWanted,
    staleTime: 60_000,
  });
}

interface UsedNames {
  readonly rows: readonly {
    readonly calls: number;
    readonly team?: string | null;
    readonly tag?: string | null;
    readonly user?: string | null;
  }[];
}

export interface Status {
  /** Of the data plane. */
  readonly url: string;
  /** Names with commas between them. */
  readonly providers: string;
}

/** Nothing for members of teams: it is of the whole gateway. */
export function useStatus() {
  const enabled = useMay(viewers);
  return useQuery({
    enabled,
    queryKey: ['status'],
    queryFn: ({ signal }) => get<Status>('/api/status', { signal }),
    staleTime: 30_000,
  });
}
