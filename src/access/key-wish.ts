/** What is wanted of a key, new or changed, and the record that comes of it. Default-deny (S7). */
import { rangeProblem } from '../core/addresses.ts';
import { GatewayError, invalidRequest } from '../core/errors.ts';
import { endpointScopes, noPolicy, type Policy } from '../core/policy.ts';
import type { KeyRecord } from '../store/records.ts';

/** What a new key is for. */
export interface KeyWish {
  readonly name: string;
  /** Globs; required, `*` must be said (S7). */
  readonly models: readonly string[];
  /** Default: all endpoints that there are. */
  readonly endpoints?: readonly string[];
  readonly owner?: string;
  readonly team?: string;
  readonly tags?: readonly string[];
  /** Addresses that may use it; default and empty: anywhere. */
  readonly cidrs?: readonly string[];
  /** Default: no limits. */
  readonly policy?: Policy;
  /** Lower a call's output limit to what the budget still has; default true. */
  readonly shrink?: boolean;
  /** Refuse what a translation would drop or change. */
  readonly strict?: boolean;
  /** Mark its prompts for the provider's cache (docs/user/routing.md); default: do not. */
  readonly cache?: 'auto';
  /** Keep what its calls say (docs/user/content.md); default: do not. */
  readonly logContent?: boolean;
  /** Ms since the epoch. */
  readonly expiresAt?: number;
}

/** A change: what is absent stays, null takes away. */
export type KeyChange = { readonly [K in keyof KeyWish]?: KeyWish[K] | null };

/** What of a record a wish decides. */
type Wished = Omit<
  KeyRecord,
  'id' | 'digest' | 'peppered' | 'previous' | 'createdAt' | 'revokedAt' | 'version'
>;

/** @throws GatewayError `invalid_request` with the field. */
export function wishedOf(wish: KeyWish, now: number): Wished {
  requireUsable(wish);
  requireFuture(wish.expiresAt, now);
  return {
    name: wish.name,
    models: wish.models,
    endpoints: wish.endpoints ?? endpointScopes,
    ...(wish.owner === undefined ? {} : { owner: wish.owner }),
    ...(wish.team === undefined ? {} : { team: wish.team }),
    tags: wish.tags ?? [],
    cidrs: wish.cidrs ?? [],
    policy: wish.policy ?? noPolicy,
    shrink: wish.shrink ?? true,
    ...(wish.strict === true ? { strict: true } : {}),
    ...(wish.cache === undefined ? {} : { cache: wish.cache }),
    ...(wish.logContent === true ? { logContent: true } : {}),
    ...(wish.expiresAt === undefined ? {} : { expiresAt: wish.expiresAt }),
  };
}

/**
 * The record after a change, one version on.
 * @throws GatewayError `invalid_request` with the field.
 */
export function changedRecord(record: KeyRecord, change: KeyChange, now: number): KeyRecord {
  if (change.name === null) throw invalidRequest('A key must have a name.', ['name']);
  if (change.models === null) throw invalidRequest(modelsHint, ['models']);
  const { team, owner, strict, cache, logContent, expiresAt, lastUsedAt, previousUsedAt, ...rest } =
    record;
  void [lastUsedAt, previousUsedAt];
  const wish: KeyWish = {
    name: change.name ?? record.name,
    models: change.models ?? record.models,
    ...kept('endpoints', change.endpoints, record.endpoints),
    ...kept('owner', change.owner, owner),
    ...kept('team', change.team, team),
    ...kept('tags', change.tags, record.tags),
    ...kept('cidrs', change.cidrs, record.cidrs),
    ...kept('policy', change.policy, record.policy),
    ...kept('shrink', change.shrink, record.shrink),
    ...kept('strict', change.strict, strict),
    ...kept('cache', change.cache, cache),
    ...kept('logContent', change.logContent, logContent),
    // An expiry that has passed already is no mistake of this change.
    ...kept('expiresAt', change.expiresAt, undefined),
  };
  return {
    ...rest,
    ...wishedOf(wish, now),
    ...kept('expiresAt', change.expiresAt, expiresAt),
    version: record.version + 1,
  };
}

/** A member after a change; none where it is taken away or was not there. */
function kept<N extends keyof KeyWish, V>(
  name: N,
  change: V | null | undefined,
  old: V | undefined,
): { readonly [K in N]?: V } {
  const value = change === undefined ? old : (change ?? undefined);
  const member: { [K in N]?: V } = {};
  if (value !== undefined) member[name] = value;
  return member;
}

const modelsHint = 'Say which models the key may use; "*" means all.';

/** An endpoint that does not exist is no endpoint; a range that cannot be read would let nobody in. */
function requireUsable(wish: KeyWish): void {
  if (wish.models.length === 0) throw invalidRequest(modelsHint, ['models']);
  const known: readonly string[] = endpointScopes;
  const unknown = wish.endpoints?.find((endpoint) => !known.includes(endpoint));
  if (unknown !== undefined || wish.endpoints?.length === 0) {
    throw invalidRequest(`The endpoints are ${known.join(', ')}.`, ['endpoints']);
  }
  for (const range of wish.cidrs ?? []) {
    const problem = rangeProblem(range);
    if (problem !== undefined) throw invalidRequest(`${range} ${problem}`, ['cidrs']);
  }
}

function requireFuture(expiresAt: number | undefined, now: number): void {
  if (expiresAt !== undefined && expiresAt <= now) {
    throw invalidRequest('The expiry is in the past.', ['expires_at']);
  }
}

/** A change that two made at the same time, again and again. */
export function tooManyChanges(): GatewayError {
  return new GatewayError('store_unavailable', 'The key is being changed elsewhere; try again.');
}
