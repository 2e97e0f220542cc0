/** Who is signed in, and who ever was: `/api/sessions`, `/api/people`. */
import {
  useMutation,
  useQuery,
  useQueryClient,
  type UseMutationResult,
} from '@tanstack/react-query';
import { get, send } from '../../api/client.ts';
import { type Role, useMay } from '../../api/session.ts';

export interface ListedSession {
  /** Not what the cookie holds: that only its browser gets. */
  readonly id: string;
  /** Null: signed in with the admin token. */
  readonly person: string | null;
  readonly ip: string | null;
  readonly created_at: string;
  readonly seen_at: string;
  readonly ends_at: string;
  /** The one of this page. */
  readonly current: boolean;
}

export interface Person {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly leads: readonly string[];
  readonly teams: readonly string[];
  /** Active keys. */
  readonly keys: number;
  readonly seen_at: string;
  readonly revoked_at: string | null;
}

const sessionsKey = ['sessions'] as const;
const peopleKey = ['people'] as const;

/** All for an owner, otherwise those of the person who is signed in. */
export function useSessions() {
  return useQuery({
    queryKey: sessionsKey,
    queryFn: ({ signal }) =>
      get<{ readonly sessions: readonly ListedSession[] }>('/api/sessions', {
        query: { limit: 1000 },
        signal,
      }),
  });
}

/** Asked only for owners: other roles may not list people. */
export function usePeople() {
  const enabled = useMay(['owner']);
  return useQuery({
    enabled,
    queryKey: peopleKey,
    queryFn: ({ signal }) =>
      get<{ readonly people: readonly Person[]; readonly next: string | null }>('/api/people', {
        query: { limit: 1000 },
        signal,
      }),
  });
}

interface Change {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
}

/** Ends a session, revokes or restores a person. */
export function useAccessChange(): UseMutationResult<unknown, Error, Change> {
  const client = useQueryClient();
  return useMutation<unknown, Error, Change>({
    mutationFn: ({ method, path }) => send(method, path),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: sessionsKey });
      await client.invalidateQueries({ queryKey: peopleKey });
    },
  });
}

export function sessionPath(id: string): string {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

export function personPath(id: string, action: 'revoke' | 'restore'): string {
  return `/api/people/${encodeURIComponent(id)}/${action}`;
}
