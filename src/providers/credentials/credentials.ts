/** The credentials of all providers that have no fixed key. They outlive a reload of the config. */
import type { RequestCredential } from '../../core/credential.ts';
import type { Clock } from '../../core/runtime.ts';
import { BearerToken, type TokenSource } from './token-cache.ts';

/** Bounds the memory when reloads keep bringing new identities. */
const maxCached = 200;

export class Credentials {
  readonly clock: Clock;
  readonly #cached = new Map<string, RequestCredential>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The bearer token of a source. Sources of one identity share it, over reloads and among providers. */
  bearer(source: TokenSource): RequestCredential {
    return this.cached(source.identity, () => new BearerToken(source, this.clock));
  }

  /** The credential of an identity, made at the first request for it. Request signers are kept in the same way. */
  cached(identity: string, make: () => RequestCredential): RequestCredential {
    const known = this.#cached.get(identity);
    if (known !== undefined) return known;
    const made = make();
    const [oldest] = this.#cached.keys();
    if (this.#cached.size >= maxCached && oldest !== undefined) this.#cached.delete(oldest);
    this.#cached.set(identity, made);
    return made;
  }
}
