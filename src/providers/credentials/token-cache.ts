/**
 * A token that ends, held for all calls: one fetch at a time, a new one before the old one ends, and the old one as long
 * as it holds (decision 0053).
 */
import { GatewayError } from '../../core/errors.ts';
import type { RequestCredential } from '../../core/credential.ts';
import type { Clock } from '../../core/runtime.ts';
import { Secret } from '../../core/secret.ts';

export interface Token {
  readonly value: Secret;
  /** From now on; ms. */
  readonly lifeMs: number;
}

/** Where tokens of one identity for one audience come from. */
export interface TokenSource {
  /** The same for the same identity and audience: such sources share a token. Holds no secret. */
  readonly identity: string;
  /** In words for people: `managed identity`. */
  readonly description: string;
  /** @throws GatewayError `upstream_auth` that says in `detail` which identity failed where, and what to do. */
  fetch(): Promise<Token>;
}

/** So long before its end a token is replaced. A token with a shorter life is used to its end. */
const aheadMs = 5 * 60_000;
/** A token server that failed is left alone for so long. */
const restMs = 1000;

interface Held {
  readonly value: Secret;
  readonly endsAt: number;
  readonly renewAt: number;
}

/** A bearer token as a credential of requests. All times are monotonic ms. */
export class BearerToken implements RequestCredential {
  readonly #source: TokenSource;
  readonly #clock: Pick<Clock, 'now'>;
  #held: Held | undefined;
  /** The one before: an upstream may quote it after it was replaced. */
  #before: Secret | undefined;
  #pending: Promise<Secret> | undefined;
  #failed: { readonly error: GatewayError; readonly until: number } | undefined;

  constructor(source: TokenSource, clock: Pick<Clock, 'now'>) {
    this.#source = source;
    this.#clock = clock;
  }

  get source(): string {
    return this.#source.description;
  }

  headersFor(): readonly string[] | Promise<readonly string[]> {
    const now = this.#clock.now();
    const held = this.#held;
    if (held === undefined || now >= held.endsAt) return this.#next(now).then(bearer);
    // A failure is told when the token has ended; until then it is only tried again.
    if (now >= held.renewAt) this.#next(now).catch(() => undefined);
    return bearer(held.value);
  }

  renew(sent: readonly string[], { upstream }: GatewayError): boolean {
    if (upstream?.status !== 401) return false;
    const held = this.#held;
    // Calls that were sent together come back together: only the first one drops the token.
    if (held !== undefined && bearer(held.value)[1] === sent[1]) {
      this.#before = held.value;
      this.#held = undefined;
    }
    return sent.length > 0;
  }

  get secrets(): readonly string[] {
    const values = [this.#held?.value, this.#before].filter((value) => value !== undefined);
    return values.flatMap(bearer);
  }

  /** The next token, of the fetch that runs or of a new one. */
  #next(now: number): Promise<Secret> {
    if (this.#pending !== undefined) return this.#pending;
    if (this.#failed !== undefined && now < this.#failed.until) {
      return Promise.reject(this.#failed.error);
    }
    this.#pending = this.#fetch();
    return this.#pending;
  }

  async #fetch(): Promise<Secret> {
    try {
      const { value, lifeMs } = await this.#source.fetch();
      const now = this.#clock.now();
      const renewAt = now + (lifeMs > aheadMs ? lifeMs - aheadMs : lifeMs);
      this.#before = this.#held?.value ?? this.#before;
      this.#held = { value, endsAt: now + lifeMs, renewAt };
      this.#failed = undefined;
      return value;
    } catch (error) {
      const failure = asCredentialError(error, this.#source.description);
      this.#failed = { error: failure, until: this.#clock.now() + restMs };
      throw failure;
    } finally {
      this.#pending = undefined;
    }
  }
}

function bearer(value: Secret): readonly string[] {
  return ['authorization', `Bearer ${value.reveal()}`];
}

/**
 * The error of a call that no credential could be had for. The client is told what it can do, which is nothing; the
 * operator reads in the log what failed.
 * @param detail which identity failed at which address, and what to do
 */
export function credentialError(detail: string): GatewayError {
  const message =
    'The gateway has no valid credential for the provider. Only the operator of the gateway can fix this; sending the request again does not help.';
  // It says nothing about the provider: its circuit stays closed, and the next call tries again.
  return new GatewayError('upstream_auth', message, { detail, ofRequest: true });
}

function asCredentialError(error: unknown, description: string): GatewayError {
  if (error instanceof GatewayError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return credentialError(`No token (${description}): ${reason}`);
}
