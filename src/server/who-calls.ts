/** Whose key a request carries, and whether it may come from where it comes. */
import type { IncomingMessage } from 'node:http';
import type { Principal } from '../access/principal.ts';
import { GatewayError } from '../core/errors.ts';

export interface WhoCallsParts {
  readonly authenticate: (
    authorization: string | undefined,
    apiKey: string | undefined,
  ) => Principal;
  /** Looks for a key that was refused; undefined when there is nothing to look for. */
  readonly lookAgain: (
    authorization: string | undefined,
    apiKey: string | undefined,
  ) => Promise<void> | undefined;
  /** Where a request comes from; undefined when nobody can say. */
  readonly clientAddress: (request: IncomingMessage) => string | undefined;
}

/**
 * A promise only where the key is not known: another gateway may have made it just now.
 * @throws GatewayError `unauthenticated`, `forbidden`, `store_unavailable`.
 */
export function whoCalls(
  parts: WhoCallsParts,
  request: IncomingMessage,
  apiKey: string | undefined,
): Principal | Promise<Principal> {
  try {
    return known(parts, request, apiKey);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'unauthenticated') throw error;
    const looking = parts.lookAgain(request.headers.authorization, apiKey);
    if (looking === undefined) throw error;
    return looking.then(() => known(parts, request, apiKey));
  }
}

function known(
  { authenticate, clientAddress }: WhoCallsParts,
  request: IncomingMessage,
  apiKey: string | undefined,
): Principal {
  const principal = authenticate(request.headers.authorization, apiKey);
  if (!principal.anywhere && !principal.allowsAddress(clientAddress(request))) {
    throw new GatewayError('forbidden', 'This key may not be used from this address.');
  }
  return principal;
}
