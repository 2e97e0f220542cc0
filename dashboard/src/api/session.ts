/** The session of this browser, stored in a cookie that scripts cannot read; whose it is, and what they may. */
import {
  queryOptions,
  useMutation,
  useQuery,
  useQueryClient,
  type QueryClient,
} from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import { isSignedOut } from './api-error.ts';
import { endSession, get, send } from './client.ts';
import { beginLeaving, changesHeard, endLeaving } from './sign-out.ts';

export type Role = 'owner' | 'operator' | 'viewer' | 'team-lead' | 'member';

export interface Session {
  readonly signed_in: boolean;
  /** ISO 8601; null without a session. */
  readonly expires_at: string | null;
  /** Null: the admin token opened it, which is an owner's. */
  readonly person: { readonly id: string; readonly name: string } | null;
  readonly roles: readonly Role[];
  /** Where people sign in by OpenID Connect; null: by the admin token alone. */
  readonly sign_in: { readonly label: string; readonly url: string } | null;
}

export const sessionKey = ['session'] as const;

const signedOut = { signed_in: false, expires_at: null, person: null, roles: [] } as const;

/** Marks the session as over: the sign-in page is shown. */
export function forgetSession(client: QueryClient): void {
  client.setQueryData<Session>(sessionKey, (before) => ({
    ...signedOut,
    sign_in: before?.sign_in ?? null,
  }));
}

/** Asks whose session it is. */
export const fetchSession = queryOptions({
  queryKey: sessionKey,
  queryFn: ({ signal }) => get<Session>('/api/session', { signal }),
  staleTime: 60_000,
});

export function useSession() {
  return useQuery(fetchSession);
}

/** The session whose pages are shown. When it expires, its pages may be kept hidden: see `App`. */
export const PageSession = createContext<Session | undefined>(undefined);

export function usePageSession(): Session | undefined {
  return useContext(PageSession);
}

/** Whether the person has one of these roles. It hides what they may not use; the gateway enforces it. */
export function useMay(wanted: readonly Role[]): boolean {
  const session = usePageSession();
  return session?.roles.some((role) => wanted.includes(role)) === true;
}

/** Roles that change what the gateway runs with. */
export const owners = ['owner'] as const;
/** Roles that change keys, limits and the gateway. */
export const operators = [...owners, 'operator'] as const;
/** Roles that see the whole gateway. */
export const viewers = [...operators, 'viewer'] as const;
/** Roles that make keys, if only their own. */
export const keyMakers = [...operators, 'team-lead', 'member'] as const;

export function useSignIn() {
  const client = useQueryClient();
  return useMutation<unknown, Error, string>({
    mutationFn: (token) => send('POST', '/api/session', { body: { token } }),
    onSuccess: () => client.invalidateQueries(),
  });
}

const notTheSession = {
  predicate: ({ queryKey }: { readonly queryKey: readonly unknown[] }) =>
    queryKey[0] !== sessionKey[0],
};

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      await changesHeard();
      await endSession();
    },
    // What is still being asked would come too late, and be refused; so would what pages ask by themselves from here
    // on. The door ends the wait (`SignIn`): the pages are gone when it is, and what they asked with them.
    onMutate: () => {
      beginLeaving();
      return client.cancelQueries();
    },
    onSettled: (_answer, error) => {
      // The gateway did not receive it: the session lives on. A page that says otherwise would leave it open.
      if (error !== null && !isSignedOut(error)) {
        endLeaving();
        void client.refetchQueries({ type: 'active' });
        return;
      }
      // The session itself stays: its observer shows the door.
      client.removeQueries(notTheSession);
      forgetSession(client);
    },
  });
}
