/**
 * A token that ends, held for all calls: one fetch at a time, a new one before the old one ends, and the old one as long
 * as it holds (decision 0053).
 */
import { GatewayError } from '../../core/errors.ts';
import type { RequestCredential } from '../../core/credential.ts';
import type { Clock } from '../../core/runtime.ts';
import { Secret } from '../../core/secret.ts';

export interface Token<V = Secret> {
  readonly value: V;
  /** From now on; ms. */
  readonly lifeMs: number;
}

/** Where tokens of one identity for one audience come from. */
export interface TokenSource<V = Secret> {
  /** The same for the same identity and audience: such sources share a token. Holds no secret. */
  readonly identity: string;
  /** In words for people: `managed identity`. */
  readonly description: string;
  /** @throws GatewayError `upstream_auth` that says in `detail` which identity failed where, and what to do. */
  fetch(): Promise<Token<V>>;
}

/** The time before its end at which a token is replaced. A token with a shorter life is used to its end. */
const aheadMs = 5 * 60_000;
/**
 * The pause before a failed token server is called again: this many times as long as the failed fetch took, so that a
 * server that does not answer costs few calls a wait.
 */
const restFactor = 2;
const minRestMs = 1000;
const maxRestMs = 30_000;
const slowMs = 1000;
/** While an earlier slow failure is not older than this, calls do not wait for the fetch that tries again. */
const recentMs = 60_000;

/** The last fetch, where it failed. All times are monotonic ms. */
interface Failure {
  readonly error: GatewayError;
  readonly at: number;
  /** Nothing is fetched before this time. */
  readonly until: number;
  /** The fetch took so long that calls do not wait for another one. */
  readonly slow: boolean;
}

interface Held<V> {
  readonly value: V;
  readonly endsAt: number;
  readonly renewAt: number;
}

/** What a source gave last, for all calls. All times are monotonic ms. */
export class TokenCache<V extends object> {
  readonly #source: TokenSource<V>;
  readonly #clock: Pick<Clock, 'now'>;
  #held: Held<V> | undefined;
  /** The one before: an upstream may quote it after it was replaced. */
  #before: V | undefined;
  #pending: Promise<V> | undefined;
  #failed: Failure | undefined;

  constructor(source: TokenSource<V>, clock: Pick<Clock, 'now'>) {
    this.#source = source;
    this.#clock = clock;
  }

  /** A promise only where nothing valid is at hand. @throws GatewayError `upstream_auth`, as a rejection */
  get(): V | Promise<V> {
    const now = this.#clock.now();
    const held = this.#held;
    if (held === undefined || now >= held.endsAt) return this.#next(now);
    // A failure is reported when the token has expired; until then it is only tried again.
    if (now >= held.renewAt && this.#pending === undefined && !this.#rests(now)) {
      this.#next(now).catch(() => undefined);
    }
    return held.value;
  }

  /** Whether the pause after a failure is not over. */
  #rests(now: number): boolean {
    return this.#failed !== undefined && now < this.#failed.until;
  }

  /** Calls that were sent together come back together: only the first one that was refused drops the token. */
  drop(isSent: (value: V) => boolean): void {
    const held = this.#held;
    if (held === undefined || !isSent(held.value)) return;
    this.#before = held.value;
    this.#held = undefined;
  }

  /** That of now and the one before. */
  get known(): readonly V[] {
    return [this.#held?.value, this.#before].filter((value) => value !== undefined);
  }

  /**
   * Fetches ahead of the first call. After a failure the first call tries again: the services of a machine may start
   * after the gateway.
   */
  async prepare(): Promise<void> {
    try {
      await this.get();
    } catch (error) {
      if (this.#failed?.error === error) this.#failed = undefined;
      throw error;
    }
  }

  /**
   * The next token, of the fetch that runs or of a new one. After a failure calls fail at once with its error until the
   * pause is over; after a slow one also while one of them tries again.
   */
  #next(now: number): Promise<V> {
    const failed = this.#failed;
    const pending = this.#pending;
    if (failed !== undefined && now < failed.until) return Promise.reject(again(failed, now));
    if (pending === undefined) return (this.#pending = this.#fetch(now));
    return failed?.slow === true && now - failed.at < recentMs
      ? Promise.reject(again(failed, now))
      : pending;
  }

  async #fetch(begun: number): Promise<V> {
    try {
      const { value, lifeMs } = await this.#source.fetch();
      const now = this.#clock.now();
      const renewAt = now + (lifeMs > aheadMs ? lifeMs - aheadMs : lifeMs);
      this.#before = this.#held?.value ?? this.#before;
      this.#held = { value, endsAt: now + lifeMs, renewAt };
      this.#failed = undefined;
      return value;
    } catch (thrown) {
      const error = asCredentialError(thrown, this.#source.description);
      const at = this.#clock.now();
      const restMs = Math.min(maxRestMs, Math.max(minRestMs, restFactor * (at - begun)));
      this.#failed = { error, at, until: at + restMs, slow: at - begun >= slowMs };
      throw error;
    } finally {
      this.#pending = undefined;
    }
  }
}

/** The error of a call that fails without a fetch of its own. */
function again({ error, at, until }: Failure, now: number): GatewayError {
  const seconds = (ms: number): string => `${Math.max(1, Math.round(ms / 1000))} s`;
  const next =
    now < until
      ? `A new one is requested in ${seconds(until - now)}, or with the next call after that`
      : 'A new one is being requested';
  return credentialError(
    `${error.detail ?? error.message} This failed ${seconds(now - at)} ago. ${next}; until then calls fail at once.`,
  );
}

/** A bearer token as a credential of requests. */
export class BearerToken implements RequestCredential {
  readonly source: string;
  readonly #tokens: TokenCache<Secret>;

  constructor(source: TokenSource, clock: Pick<Clock, 'now'>) {
    this.source = source.description;
    this.#tokens = new TokenCache(source, clock);
  }

  headersFor(): readonly string[] | Promise<readonly string[]> {
    const token = this.#tokens.get();
    return token instanceof Promise ? token.then(bearer) : bearer(token);
  }

  prepare(): Promise<void> {
    return this.#tokens.prepare();
  }

  renew(sent: readonly string[], { upstream }: GatewayError): boolean {
    if (upstream?.status !== 401) return false;
    this.#tokens.drop((value) => bearer(value)[1] === sent[1]);
    return sent.length > 0;
  }

  get secrets(): readonly string[] {
    return this.#tokens.known.flatMap(bearer);
  }
}

function bearer(value: Secret): readonly string[] {
  return ['authorization', `Bearer ${value.reveal()}`];
}

/**
 * The error of a call that no credential could be had for. The message says that the client can do nothing; the
 * operator reads in the log what failed.
 * @param detail which identity failed at which address, and what to do
 */
export function credentialError(detail: string): GatewayError {
  const message =
    'The gateway has no valid credential for the provider. Only the operator of the gateway can fix this; sending the request again does not help.';
  // It is no failure of the provider: its circuit stays closed, and the next call tries again.
  return new GatewayError('upstream_auth', message, { detail, ofRequest: true });
}

function asCredentialError(error: unknown, description: string): GatewayError {
  if (error instanceof GatewayError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return credentialError(`No token (${description}): ${reason.replace(/\.$/, '')}.`);
}
