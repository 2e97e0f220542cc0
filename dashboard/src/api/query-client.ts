/** What the server said, kept for the pages: one cache, and one place that notices the end of a session. */
import { MutationCache, notifyManager, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError, isSignedOut } from './api-error.ts';
import { forgetSession } from './session.ts';

const maxRetries = 2;

// By default TanStack Query notifies components in a later task. The browser may handle a key or a click before it: a
// second click would send a change twice, and an Escape would close the window that waits for a secret. A microtask
// runs before the next event.
notifyManager.setScheduler(queueMicrotask);

/** A new cache. Only what may pass by itself is asked for again. */
export function createQueryClient(): QueryClient {
  const onError = (error: unknown): void => {
    if (isSignedOut(error)) forgetSession(client);
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // A browser that says it is offline reaches a gateway on its own machine all the same.
      queries: {
        networkMode: 'always',
        staleTime: 5_000,
        retry: (failures, error) => failures < maxRetries && mayPass(error),
        retryDelay: (failures) => 500 * 2 ** failures,
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });
  return client;
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.kind === 'unreachable' || error.status === 503;
}
