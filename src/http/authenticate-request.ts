/**
 * Rate limit for invalid keys (B74): after this many refused keys a minute and address the answer is 429. The
 * key is checked first in every case: a valid key always works, and an attempt costs the same before and after
 * the limit.
 */
import type { IncomingMessage } from 'node:http';
import type { Principal } from '../access/keys/principal.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { networkOf } from './request-headers.ts';

interface BadKeysDeps {
  readonly clock: Pick<Clock, 'now'>;
  /** Refused keys per minute and address. */
  readonly perMinute: () => number;
}

/** Maximum number of remembered addresses; the oldest entry is dropped first. */
export const maxAddresses = 10_000;
const minuteMs = 60_000;

interface Tries {
  left: number;
  at: number;
}

export class BadKeys {
  readonly #deps: BadKeysDeps;
  readonly #tries = new Map<string, Tries>();

  constructor(deps: BadKeysDeps) {
    this.#deps = deps;
  }

  /** Number of remembered addresses. */
  get size(): number {
    return this.#tries.size;
  }

  /** A key was refused. Ms until the next attempt, or undefined while attempts are allowed. */
  refused(address: string | undefined): number | undefined {
    const most = this.#deps.perMinute();
    const now = this.#deps.clock.now();
    const tries = this.#of(networkOf(address), { left: most, at: now });
    tries.left = Math.min(most, tries.left + ((now - tries.at) * most) / minuteMs);
    tries.at = now;
    if (tries.left < 1) return Math.ceil(((1 - tries.left) * minuteMs) / most);
    tries.left -= 1;
    return undefined;
  }

  /** The refused key turned out to be valid. */
  forgive(address: string | undefined): void {
    const tries = this.#tries.get(networkOf(address));
    if (tries !== undefined) tries.left += 1;
  }

  #of(network: string, fresh: Tries): Tries {
    const known = this.#tries.get(network);
    if (known !== undefined) return known;
    if (this.#tries.size >= maxAddresses) {
      const [oldest] = this.#tries.keys();
      if (oldest !== undefined) this.#tries.delete(oldest);
    }
    this.#tries.set(network, fresh);
    return fresh;
  }
}

// Authenticates a request by its key and client address.

export interface AuthenticationDeps {
  readonly authenticate: (
    authorization: string | undefined,
    apiKey: string | undefined,
  ) => Principal;
  /** Looks for a key that was refused; undefined when there is nothing to look for. */
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
