/** A key in memory: its record, what is prepared for calls, and its last use. */
import type { KeyRecord } from '../store/records.ts';
import { nobodysDigest, sameDigest } from './digest.ts';
import type { PolicySource } from './policies.ts';
import { KeyPrincipal, type Principal } from './principal.ts';

export type KeyState = 'active' | 'expired' | 'revoked';

/** `config`: declared there; `environment`: set at the start. Only `store` keys can be changed. */
export type KeySource = 'store' | 'config' | 'environment';

/** Digests of a presented secret. */
export interface Digests {
  readonly plain: Buffer;
  /** Absent where no pepper is set. */
  readonly peppered: Buffer | undefined;
}

/** Whether a secret stored without a pepper is accepted; turned off once all have one (S2). */
export interface SecretTrust {
  plain: boolean;
}

/** Which secret of a key was presented. */
export type Match = 'current' | 'previous' | undefined;

interface Known {
  readonly digest: Buffer;
  readonly peppered: boolean;
  readonly validUntil: number;
}

interface Prepared {
  readonly principal: Principal;
  readonly current: Known;
  readonly previous: readonly Known[];
}

export interface KeyPlace {
  readonly source: KeySource;
  readonly position: number;
  readonly policies: PolicySource;
  readonly trust: SecretTrust;
}

export class KeyEntry {
  readonly source: KeySource;
  /** Place in the order of its source; keys of the store are never removed, so it stays. */
  position: number;
  /** Kept outside the record, since they do not change the key. */
  lastUsedAt: number | undefined;
  previousUsedAt: number | undefined;
  #record: KeyRecord;
  readonly #policies: PolicySource;
  readonly #trust: SecretTrust;
  /** Created at the first call, since most of 500,000 keys are never used. */
  #prepared: Prepared | undefined;
  #removed = false;

  constructor(record: KeyRecord, place: KeyPlace) {
    this.#record = record;
    this.source = place.source;
    this.position = place.position;
    this.#policies = place.policies;
    this.#trust = place.trust;
    this.lastUsedAt = record.lastUsedAt;
    this.previousUsedAt = record.previousUsedAt;
  }

  get record(): KeyRecord {
    return this.#record;
  }

  get principal(): Principal {
    return this.#prepare().principal;
  }

  /** Takes a newer record; an older one, or one that revives a revoked key, changes nothing. */
  replace(record: KeyRecord): void {
    const mine = this.#record;
    if (record.version <= mine.version) return;
    const revokedAt = mine.revokedAt ?? record.revokedAt;
    this.#record = { ...record, ...(revokedAt === undefined ? {} : { revokedAt }) };
    this.lastUsedAt = later(this.lastUsedAt, record.lastUsedAt);
    this.previousUsedAt = later(this.previousUsedAt, record.previousUsedAt);
    this.#prepared = undefined;
  }

  /** The declaration was removed from the config: as if revoked. */
  remove(): void {
    this.#removed = true;
  }

  used(at: number, match: Match): void {
    if (match === 'previous') this.previousUsedAt = at;
    else this.lastUsedAt = at;
  }

  state(now: number): KeyState {
    const { revokedAt, expiresAt } = this.#record;
    if (this.revoked()) return 'revoked';
    return revokedAt === undefined && expiresAt !== undefined && expiresAt <= now
      ? 'expired'
      : 'active';
  }

  revoked(): boolean {
    return this.#removed || this.#record.revokedAt !== undefined;
  }

  /** Which of the key's secrets was presented. Compares all of them, to take constant time (S3). */
  match(digests: Digests, now: number): Match {
    const { current, previous } = this.#prepare();
    let found: Match = this.#fits(current, digests) ? 'current' : undefined;
    for (const known of previous) {
      if (this.#fits(known, digests) && known.validUntil > now) found ??= 'previous';
    }
    return found;
  }

  #fits({ digest, peppered }: Known, digests: Digests): boolean {
    const presented = peppered ? digests.peppered : digests.plain;
    const same = sameDigest(presented ?? nobodysDigest, digest) && presented !== undefined;
    return same && (peppered || this.#trust.plain);
  }

  #prepare(): Prepared {
    const record = this.#record;
    this.#prepared ??= {
      principal: new KeyPrincipal(record, {
        policies: this.#policies,
        revoked: () => this.revoked(),
      }),
      current: known(record, Infinity),
      previous: record.previous.map((secret) => known(secret, secret.validUntil)),
    };
    return this.#prepared;
  }
}

/** Does the work of a comparison for an unknown id, so that timing does not show which ids exist. */
export function matchNobody(digests: Digests): void {
  sameDigest(digests.plain, nobodysDigest);
}

function known(
  secret: { readonly digest: string; readonly peppered?: true },
  validUntil: number,
): Known {
  return {
    digest: Buffer.from(secret.digest, 'hex'),
    peppered: secret.peppered === true,
    validUntil,
  };
}

function later(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}
