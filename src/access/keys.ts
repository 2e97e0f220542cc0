/**
 * The keys of the data plane, all in memory, so that a call is authenticated without a promise or a
 * look-up elsewhere. The store is written before a new key works, and told after a revoked one has
 * stopped working: a failure in between leaves the safe side (K8).
 */
import { GatewayError, invalidRequest } from '../core/errors.ts';
import { endpointScopes } from '../core/policy.ts';
import type { Clock } from '../core/runtime.ts';
import type { Secret } from '../core/secret.ts';
import { plainKey, type GivenKey, type KeyRecord } from '../store/records.ts';
import type { Store } from '../store/store.ts';
import { digestOf, nobodysDigest, requireUsableSecret, sameDigest } from './digest.ts';
import { makeKey, readKey, type RandomBytes } from './key-format.ts';
import { presentedKey } from './presented-key.ts';
import { KeyPrincipal, type Principal } from './principal.ts';

export interface KeyRingParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

/** What a new key is for. Limits and budgets come here. */
export interface KeyWish {
  readonly name: string;
  /** Globs; required, `*` must be said (S7). */
  readonly models: readonly string[];
  /** Default: all endpoints that there are. */
  readonly endpoints?: readonly string[];
  readonly team?: string;
  /** Refuse what a translation would drop or change. */
  readonly strict?: boolean;
  /** Ms since the epoch. */
  readonly expiresAt?: number;
}

export interface NewKey {
  readonly record: KeyRecord;
  readonly id: string;
  /** Shown once, kept nowhere (S4). */
  readonly key: Secret;
}

export type KeyState = 'active' | 'expired' | 'revoked';

/** A key as the admin API lists it. */
export interface ListedKey {
  readonly record: KeyRecord;
  readonly state: KeyState;
  /** `environment`: given from outside at start, in no store. */
  readonly source: 'store' | 'environment';
}

export interface KeyPage {
  readonly keys: readonly ListedKey[];
  /** Pass as `after` for the next page; absent on the last. */
  readonly next?: string;
}

interface Entry {
  record: KeyRecord;
  readonly literal: boolean;
  /** Place in the order of creation; keys are never removed, so it stays (L5). */
  readonly position: number;
  /** Made at the first call: most of 500,000 keys sleep. */
  access: { readonly digest: Buffer; readonly principal: Principal } | undefined;
}

/** One text for missing, malformed, unknown, revoked and expired keys (E4). */
const refusal =
  'The API key is missing or not valid. Send it as "Authorization: Bearer KEY" or "x-api-key: KEY".';

export class KeyRing {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: RandomBytes;
  readonly #entries = new Map<string, Entry>();
  readonly #order: Entry[] = [];
  readonly #literals: Entry[] = [];
  #loaded = false;

  constructor(parts: KeyRingParts) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#random = parts.random;
  }

  /** Reads all keys of the store. May be repeated after a failure. @throws StoreError */
  async load(): Promise<void> {
    for (const record of await this.#store.listKeys()) {
      if (!this.#entries.has(record.id)) this.#add(record, false);
    }
    this.#loaded = true;
  }

  /** Whether the keys of the store are known; before that the gateway is not ready (L1). */
  get loaded(): boolean {
    return this.#loaded;
  }

  /**
   * Who sent these headers. Synchronous: about 2 µs.
   * @throws GatewayError `unauthenticated` (E4, one text for all causes), or `store_unavailable` for a
   * well-formed key while the keys are not loaded: never a 401 for a key that may be valid (L1).
   */
  authenticate(authorization: string | undefined, xApiKey: string | undefined): Principal {
    const text = presentedKey(authorization, xApiKey);
    const digest = digestOf(text);
    const id = readKey(text)?.id;
    const entry = id === undefined ? undefined : this.#entries.get(id);
    const found = this.#matches(digest, entry) ? entry : this.#findLiteral(digest);
    if (found !== undefined && this.#state(found.record) === 'active') {
      return accessOf(found).principal;
    }
    if (!this.#loaded && id !== undefined) {
      throw new GatewayError('store_unavailable', 'The keys are not loaded yet; try again soon.');
    }
    throw new GatewayError('unauthenticated', refusal);
  }

  /**
   * Makes a key; it works once the store has it.
   * @throws GatewayError `invalid_request` with the field, StoreError.
   */
  async create(wish: KeyWish): Promise<NewKey> {
    const now = this.#clock.wall();
    requireWish(wish, now);
    const { id, key } = this.#makeUnusedKey();
    const record: KeyRecord = {
      ...plainKey,
      id,
      name: wish.name,
      digest: digestOf(key.reveal()).toString('hex'),
      models: wish.models,
      endpoints: wish.endpoints ?? endpointScopes,
      ...(wish.team === undefined ? {} : { team: wish.team }),
      ...(wish.strict === true ? { strict: true } : {}),
      createdAt: now,
      ...(wish.expiresAt === undefined ? {} : { expiresAt: wish.expiresAt }),
    };
    await this.#store.addKey(record);
    this.#add(record, false);
    return { record, id, key };
  }

  /**
   * Revokes at once in this process, then in the store; a second time changes nothing. The key stays
   * refused here even when the store fails: then repeat it.
   * @returns undefined when there is no such key.
   * @throws GatewayError `invalid_request` for a key from the environment, StoreError.
   */
  async revoke(id: string): Promise<ListedKey | undefined> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    if (entry.literal) {
      throw invalidRequest('This key comes from the environment; unset it there and restart.');
    }
    const revokedAt = entry.record.revokedAt ?? this.#clock.wall();
    entry.record = { ...entry.record, revokedAt };
    await this.#store.revokeKey(id, revokedAt);
    return this.#listed(entry);
  }

  /**
   * Lets a secret of any form in, kept in memory only (MODEL_GATEWAY_KEY).
   * @throws Error when it is too short or cannot stand in a header.
   */
  addLiteralKey(secret: Secret, record: GivenKey): void {
    requireUsableSecret('MODEL_GATEWAY_KEY', secret.reveal());
    if (this.#entries.has(record.id)) throw new Error(`There is a key with the id ${record.id}.`);
    const digest = digestOf(secret.reveal()).toString('hex');
    this.#literals.push(
      this.#add({ ...plainKey, ...record, digest, createdAt: this.#clock.wall() }, true),
    );
  }

  /**
   * The key of the first start (S10): made when there has never been a key and none came from the
   * environment. It may call every model.
   */
  async ensureFirstKey(): Promise<NewKey | undefined> {
    if (!this.#loaded) await this.load();
    if (this.#order.length > 0) return undefined;
    return this.create({ name: 'first key', models: ['*'] });
  }

  /** Whether this is one of the keys, whatever its state. */
  holds(secret: Secret): boolean {
    const digest = digestOf(secret.reveal()).toString('hex');
    return this.#order.some((entry) => entry.record.digest === digest);
  }

  find(id: string): ListedKey | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined ? undefined : this.#listed(entry);
  }

  /** A page in the order of creation; undefined when there is no key `after`. */
  list(page: { readonly limit: number; readonly after?: string }): KeyPage | undefined {
    const before = page.after === undefined ? undefined : this.#entries.get(page.after);
    if (page.after !== undefined && before === undefined) return undefined;
    const start = before === undefined ? 0 : before.position + 1;
    const entries = this.#order.slice(start, start + page.limit);
    const last = entries.at(-1);
    const more = last !== undefined && start + page.limit < this.#order.length;
    return {
      keys: entries.map((entry) => this.#listed(entry)),
      ...(more ? { next: last.record.id } : {}),
    };
  }

  #add(record: KeyRecord, literal: boolean): Entry {
    const entry: Entry = { record, literal, position: this.#order.length, access: undefined };
    this.#order.push(entry);
    this.#entries.set(record.id, entry);
    return entry;
  }

  #matches(digest: Buffer, entry: Entry | undefined): entry is Entry {
    const expected = entry === undefined ? nobodysDigest : accessOf(entry).digest;
    return sameDigest(digest, expected) && entry !== undefined;
  }

  #findLiteral(digest: Buffer): Entry | undefined {
    for (const entry of this.#literals) {
      if (sameDigest(digest, accessOf(entry).digest)) return entry;
    }
    return undefined;
  }

  #state(record: KeyRecord): KeyState {
    if (record.revokedAt !== undefined) return 'revoked';
    if (record.expiresAt !== undefined && record.expiresAt <= this.#clock.wall()) return 'expired';
    return 'active';
  }

  #listed(entry: Entry): ListedKey {
    return {
      record: entry.record,
      state: this.#state(entry.record),
      source: entry.literal ? 'environment' : 'store',
    };
  }

  #makeUnusedKey(): { readonly id: string; readonly key: Secret } {
    for (;;) {
      const made = makeKey(this.#random);
      if (!this.#entries.has(made.id)) return made;
    }
  }
}

function accessOf(entry: Entry): { readonly digest: Buffer; readonly principal: Principal } {
  entry.access ??= {
    digest: Buffer.from(entry.record.digest, 'hex'),
    principal: new KeyPrincipal(entry.record),
  };
  return entry.access;
}

/** Default-deny (S7): no model list, no key; an endpoint that does not exist is no endpoint. */
function requireWish(wish: KeyWish, now: number): void {
  if (wish.models.length === 0) {
    throw invalidRequest('Say which models the key may use; "*" means all.', ['models']);
  }
  const known: readonly string[] = endpointScopes;
  const unknown = wish.endpoints?.find((endpoint) => !known.includes(endpoint));
  if (unknown !== undefined || wish.endpoints?.length === 0) {
    throw invalidRequest(`The endpoints are ${known.join(', ')}.`, ['endpoints']);
  }
  if (wish.expiresAt !== undefined && wish.expiresAt <= now) {
    throw invalidRequest('The expiry is in the past.', ['expires_at']);
  }
}
