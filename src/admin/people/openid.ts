/**
 * Sign-in by OpenID Connect: authorization code with PKCE, state and nonce. `openid-client` speaks to the provider and
 * checks the ID token with its signature; it is loaded at the first use. The state of a sign-in in progress is in a
 * sealed cookie of the browser, so that any gateway of one store may finish it.
 */
import type { Configuration } from 'openid-client';
import type { OidcSettings } from '../../config/oidc.ts';
import { isLoopback } from '../../config/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Sealer } from '../../core/secret.ts';
import type { JsonObject } from '../../json/value.ts';
import { providerFetch } from './provider-fetch.ts';

/** Where the provider sends people back to, below the address of the dashboard. */
export const callbackPath = '/api/oidc/callback';

/** The maximum time of a person at the provider. */
export const signInMs = 600_000;

/** The pause before a provider that did not answer is tried again: strangers can request a sign-in. */
const askAgainMs = 5000;

const timeoutSeconds = 10;

/** Strangers can begin and fail any number of sign-ins. */
const maxUsed = 10_000;

/**
 * Why a sign-in failed; the dashboard has a text for each. `unreachable`: the provider does not answer. `expired`: it
 * took too long, or was used before. `denied`: the provider refused it. `invalid`: the provider's answer is not valid.
 */
export type SignInFailure =
  'unreachable' | 'expired' | 'denied' | 'invalid' | 'no-role' | 'revoked';

/** A sign-in that failed; the message is for the log. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly failure: SignInFailure;

  constructor(failure: SignInFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}

interface OpenIdDeps {
  readonly settings: OidcSettings;
  readonly sealer: Sealer;
  readonly clock: Pick<Clock, 'now' | 'wall'>;
}

/** The contents of the cookie until the person returns. */
interface Begun {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly until: number;
}

const purpose = 'oidc-sign-in';

export class OpenId {
  readonly #deps: OpenIdDeps;
  /** States of sign-ins whose callback was called, oldest call first, until their time is over. */
  readonly #used = new Map<string, number>();
  #discovered: Promise<Configuration> | undefined;
  #failedAt: number | undefined;

  constructor(deps: OpenIdDeps) {
    this.#deps = deps;
  }

  /** @returns the address at the provider, and the value of the cookie @throws SignInError */
  async begin(): Promise<{ readonly location: string; readonly cookie: string }> {
    const { settings, sealer, clock } = this.#deps;
    const configuration = await this.#configuration();
    const client = await import('openid-client');
    const begun = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
      until: clock.wall() + signInMs,
    };
    const address = client.buildAuthorizationUrl(configuration, {
      redirect_uri: `${settings.url}${callbackPath}`,
      scope: settings.scopes,
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: 'S256',
    });
    return { location: address.href, cookie: sealer.seal({ purpose, ...begun }) };
  }

  /**
   * Claims of the person who returned. The sign-in of the cookie is used up by this, whatever comes of it.
   * @param query of the callback, with its `?`
   * @param cookie of the sign-in
   * @throws SignInError
   */
  async finish(query: string, cookie: string): Promise<JsonObject> {
    const { settings } = this.#deps;
    const begun = this.#open(cookie);
    const configuration = await this.#configuration();
    const client = await import('openid-client');
    try {
      const address = new URL(`${settings.url}${callbackPath}${query}`);
      const tokens = await client.authorizationCodeGrant(configuration, address, {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new SignInError('invalid', 'There is no ID token.');
      const isWhole = neededClaims(settings).every((each) => claimOf(claims, each) !== undefined);
      const isMissing = !isWhole && configuration.serverMetadata().userinfo_endpoint !== undefined;
      if (!isMissing) return { ...claims };
      const more = await client.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return { ...more, ...claims };
    } catch (error) {
      if (error instanceof SignInError) throw error;
      if (error instanceof client.AuthorizationResponseError) {
        throw new SignInError('denied', reasonOf(error));
      }
      throw new SignInError(isSilent(error) ? 'unreachable' : 'invalid', reasonOf(error));
    }
  }

  #open(cookie: string): Begun {
    const now = this.#deps.clock.wall();
    const record = this.#deps.sealer.open(cookie);
    const { state, nonce, verifier, until } = record ?? {};
    const isOurs =
      record?.['purpose'] === purpose &&
      typeof state === 'string' &&
      typeof nonce === 'string' &&
      typeof verifier === 'string' &&
      typeof until === 'number';
    if (!isOurs) throw new SignInError('expired', 'This browser has begun no sign-in.');
    if (until <= now || this.#used.has(state)) {
      throw new SignInError('expired', 'The sign-in took too long, or was finished before.');
    }
    this.#use(state, until, now);
    return { state, nonce, verifier, until };
  }

  /** A state has one try, also if it fails or another return with it is still being checked. */
  #use(state: string, until: number, now: number): void {
    for (const [oldest, end] of this.#used) {
      if (end > now && this.#used.size < maxUsed) break;
      this.#used.delete(oldest);
    }
    this.#used.set(state, until);
  }

  /** @throws SignInError `unreachable` */
  async #configuration(): Promise<Configuration> {
    const { clock, settings } = this.#deps;
    const failedAt = this.#failedAt;
    if (failedAt !== undefined && clock.now() - failedAt >= askAgainMs) {
      this.#discovered = undefined;
      this.#failedAt = undefined;
    }
    this.#discovered ??= discover(settings);
    try {
      return await this.#discovered;
    } catch (error) {
      this.#failedAt ??= clock.now();
      throw error;
    }
  }
}

/** Addresses of the provider that a sign-in needs. */
const neededAddresses = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;

/**
 * Asks the provider for its addresses and keys.
 * @throws SignInError `unreachable`; its message says what is wrong and what to do
 */
export async function discover(settings: OidcSettings): Promise<Configuration> {
  const { issuer, clientId, clientSecret } = settings;
  const client = await import('openid-client');
  const address = new URL(issuer);
  const isLocal = address.protocol === 'http:' && isLoopback(address.hostname);
  const options = {
    timeout: timeoutSeconds,
    [client.customFetch]: providerFetch,
    // The signature is checked although the token comes from the provider itself.
    execute: [
      client.enableNonRepudiationChecks,
      ...(isLocal ? [client.allowInsecureRequests] : []),
    ],
  };
  const secret = clientSecret.reveal();
  const found = await client
    .discovery(address, clientId, secret, undefined, options)
    .catch((error: unknown) => {
      throw unreachable(issuer, error);
    });
  const metadata = found.serverMetadata();
  const missing = neededAddresses.filter((name) => metadata[name] === undefined);
  if (missing.length === 0) return found;
  throw wrongDocument(issuer, `it has no ${missing.join(' and no ')}`);
}

function unreachable(issuer: string, error: unknown): SignInError {
  if (!isSilent(error)) {
    const cause = error instanceof Error ? error.cause : undefined;
    const other = typeof cause === 'object' && cause !== null && claimOf(cause, 'body.issuer');
    return wrongDocument(issuer, other ? `its issuer is ${String(other)}` : reasonOf(error));
  }
  return new SignInError(
    'unreachable',
    `The identity provider ${issuer} does not answer: ${reasonOf(error)}. Check oidc.issuer, and that this machine reaches it. ${untilThen}`,
  );
}

/** The provider did not answer at all, or not in time. */
function isSilent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isLate = 'code' in error && error.code === 'OAUTH_TIMEOUT';
  return isLate || (error instanceof TypeError && error.message === 'fetch failed');
}

function wrongDocument(issuer: string, why: string): SignInError {
  const document = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  return new SignInError(
    'unreachable',
    `${document} does not describe the identity provider ${issuer}: ${why}. Set oidc.issuer to the issuer of an OpenID Connect provider, exactly as its document names it. ${untilThen}`,
  );
}

const untilThen = 'Until then only the admin token opens the dashboard.';

/** If one is missing in the ID token, the user-info endpoint is read. */
function neededClaims({ claims }: OidcSettings): readonly string[] {
  const { person, name, groups } = claims;
  return [person, name, groups, ...(person === 'email' ? ['email_verified'] : [])];
}

/** A claim by its name, or by a path with dots (`realm_access.roles`). */
export function claimOf(claims: object, name: string): unknown {
  const own: unknown = Object.hasOwn(claims, name) ? Reflect.get(claims, name) : undefined;
  if (own !== undefined) return own;
  let found: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, part))
      return undefined;
    found = Reflect.get(found, part);
  }
  return found;
}

/** The reason of the library, or of the network below it. No body is quoted, since it may contain a token. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const { message, cause } = error;
  if (!(error instanceof TypeError) || !(cause instanceof Error)) return message;
  // A host with several addresses: its error has a code and no message.
  const said = cause.message === '' && 'code' in cause ? String(cause.code) : cause.message;
  return `${message} (${said})`;
}
