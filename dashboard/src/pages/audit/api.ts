/** The audit log: pages of a filter, and the check of its hash chain. */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { get } from '../../api/client.ts';
import type { Search } from '../../api/search.ts';

export type State = { readonly [member: string]: unknown } | null;

export interface AuditEntry {
  /** 1, 2, 3, … without gaps. */
  readonly seq: number;
  readonly at: string;
  readonly actor: string;
  readonly ip: string | null;
  readonly action: string;
  readonly subject: string;
  readonly before: State;
  readonly after: State;
  readonly hash: string;
}

interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly next: number | null;
}

export interface AuditCheck {
  readonly intact: boolean;
  readonly entries: number;
  readonly broken_at: number | null;
  /** A former last entry that is missing. */
  readonly missing: { readonly seq: number; readonly hash: string } | null;
  readonly head: string | null;
}

const pageSize = 200;

export const filterNames = ['since', 'until', 'actor', 'action', 'subject'] as const;

/** The part of an address that chooses entries. */
export function filterOf(search: Search): Search {
  return Object.fromEntries(filterNames.map((name) => [name, search[name]]));
}

/** Entries of the filter, newest first; pages are fetched as they come into sight. */
export function useAudit(filter: Search) {
  return useInfiniteQuery({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam, signal }) =>
      get<AuditPage>('/api/audit', {
        query: { ...filter, limit: pageSize, before: pageParam },
        signal,
      }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  });
}

/** The gateway reads the whole log for it: once a visit, and when asked. */
export function useAuditCheck() {
  return useQuery({
    queryKey: ['audit-check'],
    queryFn: ({ signal }) => get<AuditCheck>('/api/audit/check', { signal }),
    staleTime: Infinity,
  });
}
