/** The requested properties of a new or changed key, and the resulting record. Default-deny (S7). */
import { rangeProblem } from '../../core/addresses.ts';
import { GatewayError, invalidRequest } from '../../core/errors.ts';
import { endpointScopes, noPolicy, type Policy } from '../../core/policy.ts';
import type { KeyRecord } from '../../store/records.ts';

/** Properties of a new key. */
export interface KeyInput {
  readonly name: string;
  /** Globs; required. `*` must be given explicitly (S7). */
  readonly models: readonly string[];
  /** Default: all endpoints. */
  readonly endpoints?: readonly string[];
  readonly owner?: string;
  readonly team?: string;
  readonly tags?: readonly string[];
  /** Addresses that may use it; default and empty: all. */
  readonly cidrs?: readonly string[];
  /** Default: no limits. */
  readonly policy?: Policy;
  /** Lower a call's output limit to what is left of the budget; default true. */
  readonly shrink?: boolean;
  /** Refuse requests that translation would change or drop parts of. */
  readonly strict?: boolean;
  /** Set cache marks in its prompts (docs/user/routing.md); default: no. */
  readonly cache?: 'auto';
  /** Store the content of its calls (docs/user/content.md); default: no. */
  readonly logContent?: boolean;
  /** Ms since the epoch. */
  readonly expiresAt?: number;
}

/** A change: absent members stay, null removes. */
export type KeyChange = { readonly [K in keyof KeyInput]?: KeyInput[K] | null };

/** The part of a record that these properties determine. */
type Requested = Omit<
  KeyRecord,
  'id' | 'digest' | 'peppered' | 'previous' | 'createdAt' | 'revokedAt' | 'version'
>;

/** @throws GatewayError `invalid_request` with the field. */
export function requestedOf(input: KeyInput, now: number): Requested {
  requireUsable(input);
  const expiresAt = input.expiresAt;
  if (expiresAt !== undefined && expiresAt <= now) {
    throw invalidRequest('The expiry is in the past.', ['expires_at']);
  }
  return {
    name: input.name,
    models: input.models,
    endpoints: input.endpoints ?? endpointScopes,
    ...(input.owner === undefined ? {} : { owner: input.owner }),
    ...(input.team === undefined ? {} : { team: input.team }),
    tags: input.tags ?? [],
    cidrs: input.cidrs ?? [],
    policy: input.policy ?? noPolicy,
    shrink: input.shrink ?? true,
    ...(input.strict === true ? { strict: true } : {}),
    ...(input.cache === undefined ? {} : { cache: input.cache }),
    ...(input.logContent === true ? { logContent: true } : {}),
    ...(input.expiresAt === undefined ? {} : { expiresAt: input.expiresAt }),
  };
}

/**
 * The record after a change, with the next version.
 * @throws GatewayError `invalid_request` with the field.
 */
export function changedRecord(record: KeyRecord, change: KeyChange, now: number): KeyRecord {
  if (change.name === null) throw invalidRequest('A key must have a name.', ['name']);
  if (change.models === null) throw invalidRequest(modelsHint, ['models']);
  const { team, owner, strict, cache, logContent, expiresAt, lastUsedAt, previousUsedAt, ...rest } =
    record;
  void [lastUsedAt, previousUsedAt];
  const input: KeyInput = {
    name: change.name ?? record.name,
    models: change.models ?? record.models,
    ...carriedOver('endpoints', change.endpoints, record.endpoints),
    ...carriedOver('owner', change.owner, owner),
    ...carriedOver('team', change.team, team),
    ...carriedOver('tags', change.tags, record.tags),
    ...carriedOver('cidrs', change.cidrs, record.cidrs),
    ...carriedOver('policy', change.policy, record.policy),
    ...carriedOver('shrink', change.shrink, record.shrink),
    ...carriedOver('strict', change.strict, strict),
    ...carriedOver('cache', change.cache, cache),
    ...carriedOver('logContent', change.logContent, logContent),
    // An expiry in the past is not an error of this change.
    ...carriedOver('expiresAt', change.expiresAt, undefined),
  };
  return {
    ...rest,
    ...requestedOf(input, now),
    ...carriedOver('expiresAt', change.expiresAt, expiresAt),
    version: record.version + 1,
  };
}

/** A member after a change; absent if it is removed or was not set. */
function carriedOver<N extends keyof KeyInput, V>(
  name: N,
  change: V | null | undefined,
  old: V | undefined,
): { readonly [K in N]?: V } {
  const value = change === undefined ? old : (change ?? undefined);
  const member: { [K in N]?: V } = {};
  if (value !== undefined) member[name] = value;
  return member;
}

const modelsHint = 'List the models that the key may use; "*" means all.';

/** Unknown endpoints and unreadable address ranges are refused: the key would never be usable. */
function requireUsable(input: KeyInput): void {
  if (input.models.length === 0) throw invalidRequest(modelsHint, ['models']);
  const known: readonly string[] = endpointScopes;
  const unknown = input.endpoints?.find((endpoint) => !known.includes(endpoint));
  if (unknown !== undefined || input.endpoints?.length === 0) {
    throw invalidRequest(`The endpoints are ${known.join(', ')}.`, ['endpoints']);
  }
  for (const range of input.cidrs ?? []) {
    const problem = rangeProblem(range);
    if (problem !== undefined) throw invalidRequest(`${range} ${problem}`, ['cidrs']);
  }
}

/** The change collided with other changes on every try. */
export function tooManyChanges(): GatewayError {
  return new GatewayError('store_unavailable', 'The key is being changed elsewhere; try again.');
}
