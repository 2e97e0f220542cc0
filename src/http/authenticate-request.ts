/** Authenticates a request by its key and client address. Refused keys are counted by address (`overload/bad-keys.ts`). */
import type { IncomingMessage } from 'node:http';
import { presentedKey } from '../access/keys/key-format.ts';
import type { Principal } from '../access/keys/principal.ts';
import { GatewayError } from '../core/errors.ts';
import type { BadKeys } from './overload/bad-keys.ts';
import { headerValue } from './request-headers.ts';

export interface AuthenticationDeps {
  readonly authenticate: (
    authorization: string | undefined,
    apiKey: string | undefined,
  ) => Principal;
  /** Searches the store for a refused key; undefined if there is no reason to search. */
  readonly refreshKey: (
    authorization: string | undefined,
    apiKey: string | undefined,
  ) => Promise<void> | undefined;
  /** Counts refused keys by address. */
  readonly badKeys: Pick<BadKeys, 'refused' | 'forgive'>;
  /** The client address; undefined when it is unknown. */
  readonly clientAddress: (request: IncomingMessage) => string | undefined;
}

/**
 * Returns a promise only for an unknown key: another gateway may just have created it.
 * @throws GatewayError `unauthenticated`, `rate_limited` (too many of those), `forbidden`, `store_unavailable`.
 */
export function authenticateRequest(
  deps: AuthenticationDeps,
  request: IncomingMessage,
  apiKey: string | undefined,
): Principal | Promise<Principal> {
  try {
    return known(deps, request, apiKey);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'unauthenticated') throw error;
    const address = deps.clientAddress(request);
    const waitMs = deps.badKeys.refused(address);
    if (waitMs !== undefined)
      throw new GatewayError(
        'rate_limited',
        'Too many requests without a valid API key came from this address. Send a valid one, or wait.',
        { retryAfterMs: waitMs },
      );
    const looking = deps.refreshKey(request.headers.authorization, apiKey);
    if (looking === undefined) throw error;
    return looking.then(() => {
      const principal = known(deps, request, apiKey);
      deps.badKeys.forgive(address);
      return principal;
    });
  }
}

function known(
  { authenticate, clientAddress }: AuthenticationDeps,
  request: IncomingMessage,
  apiKey: string | undefined,
): Principal {
  const principal = authenticate(request.headers.authorization, apiKey);
  if (!principal.anywhere && !principal.allowsAddress(clientAddress(request))) {
    throw new GatewayError('forbidden', 'This key may not be used from this address.');
  }
  return principal;
}

/** The API key as the client presented it. */
export function secretOf(request: IncomingMessage): string {
  return presentedKey(headerValue(request, 'authorization'), headerValue(request, 'x-api-key'));
}
