/** Names that filters offer and that tables show in place of ids. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';

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
    const page: KeyPage = await get<KeyPage>('/api/keys', { query, signal });
    keys.push(...page.keys.map(({ id, name }) => ({ id, name })));
    after = page.next ?? undefined;
  } while (after !== undefined && keys.length < maxKeys);
  return keys;
}

export function useKeyNames() {
  return useQuery({
    queryKey: ['key-names'],
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

export interface Status {
  /** Of the data plane. */
  readonly url: string;
  /** Names with commas between them. */
  readonly providers: string;
}

export function useStatus() {
  return useQuery({
    queryKey: ['status'],
    queryFn: ({ signal }) => get<Status>('/api/status', { signal }),
    staleTime: 30_000,
  });
}
