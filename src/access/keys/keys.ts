/**
 * The keys of the data plane, all in memory, so that a call is authenticated synchronously. The store is
 * written before a new key works, and after a revoked one has stopped working: a failure in between leaves the
 * safe state.
 */
import { GatewayError, invalidRequest } from '../../core/errors.ts';
import type { Policy } from '../../core/policy.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import type { Secret } from '../../core/secret.ts';
import type { KeyRecord, KeyUse, NotedChange } from '../../store/records.ts';
import type { Store, KeyStore } from '../../store/store.ts';
import {
  type RandomBytes,
  digestOf,
  minSecretLength,
  makeKey,
  makeKeyOf,
  presentedKey,
  readKey,
  requireNotGuessable,
  requireUsableSecret,
} from './key-format.ts';
import {
  KeyIndex,
  KeyEntry,
  matchDummy,
  type Digests,
  type KeySource,
  type KeyState,
  type Match,
} from './key-index.ts';
import {
  changedRecord,
  tooManyChanges,
  requestedOf,
  type KeyChange,
  type KeyInput,
} from './key-input.ts';
import type { Pepper } from './seal-key.ts';
import { noPolicies, type PolicySource } from '../policies.ts';
import type { Principal } from './principal.ts';
import { setTimeout as sleep } from 'node:timers/promises';

export interface KeyRingDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Policies of teams and tags; default: none. */
  readonly policies?: PolicySource;
  readonly pepper?: Pepper;
  readonly log?: Log;
  /** Whether other gateways create keys in the same store. */
  readonly shared?: boolean;
}

export interface NewKey {
  readonly record: KeyRecord;
  readonly id: string;
  /** Shown once and not stored (S4). */
  readonly key: Secret;
}

/** A key as the admin API lists it. */
export interface ListedKey {
  readonly record: KeyRecord;
  readonly state: KeyState;
  readonly source: KeySource;
  readonly lastUsedAt: number | undefined;
  /** Last use of a secret that `rotate` replaced. */
  readonly previousUsedAt: number | undefined;
}

export interface KeyPage {
  readonly keys: readonly ListedKey[];
  /** Pass as `after` for the next page; absent on the last. */
  readonly next?: string;
}

/** Which keys are wanted; absent = any. */
export interface KeyFilter {
  /** Id, name, team, owner or a tag contains it, ignoring case. */
  readonly text?: string;
  readonly team?: string;
  readonly state?: KeyState;
  /** The keys that a caller may see. */
  readonly within?: (record: KeyRecord) => boolean;
}

/** A key before and after it was changed. */
export interface ChangedKey {
  readonly before: ListedKey;
  readonly after: ListedKey;
}

/**
 * Writes a change to the store together with its audit entry; false when it was refused.
 * @throws StoreError
 */
export type WriteKey = (
  change: NotedChange,
  key: { readonly before?: ListedKey; readonly after: ListedKey },
) => Promise<boolean>;

/** A key of the config. Only the hash of its secret is known. */
export interface DeclaredKey extends KeyInput {
  /** Its name in the config; also the id of its calls. */
  readonly id: string;
  /** SHA-256, lower-case hex; the first is the current one. */
  readonly digests: readonly string[];
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

const firstKeyName = 'first key';
/**
 * Policy of the key that the first start creates (S23): more than a single client needs, but bounded. It has no
 * budget, since models without a price could then not be called (decision 0018).
 */
const firstKeyPolicy: Policy = {
  limits: [
    { kind: 'requests', amount: 60_000 },
    { kind: 'concurrent', amount: 3000 },
  ],
  budgets: [],
};

/** Maximum number of tries of a change when another instance was faster. */
const maxTries = 5;

/** One text for missing, malformed, unknown, revoked and expired keys (E4). */
export const keyRefusal =
  'The API key is missing or not valid. Send it as "Authorization: Bearer KEY" or "x-api-key: KEY".';

export class KeyRing {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: RandomBytes;
  readonly #pepper: Pepper | undefined;
  readonly #index: KeyIndex;
  readonly #uses: LastUses;
  readonly #mutex = new KeyedMutex();
  readonly #refresh: CoalescedRefresh | undefined;

  constructor(deps: KeyRingDeps) {
    const { store, clock, random, policies = noPolicies, pepper, log = silent } = deps;
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
    this.#pepper = pepper;
    this.#index = new KeyIndex({ store, policies, pepper, log });
    this.#uses = new LastUses(store.keys, log);
    const read = (): Promise<void> => this.#index.loadAnew();
    this.#refresh = deps.shared === true ? new CoalescedRefresh({ read, clock }) : undefined;
  }

  /** Reads all keys of the store, or the new ones. May be repeated after a failure. @throws StoreError */
  load(): Promise<void> {
    return this.#index.load();
  }

  /** The same, but never joins a read that has begun, which may be older than a change. */
  loadAnew(): Promise<void> {
    return this.#index.loadAnew();
  }

  /** Whether the keys of the store are known; before that the gateway is not ready. */
  get loaded(): boolean {
    return this.#index.loaded;
  }

  /** Why the peppered keys of the store cannot be used, as a sentence; undefined when they can. */
  get pepperProblem(): string | undefined {
    return this.#index.pepperProblem;
  }

  /**
   * Authenticates the caller by these headers. Synchronous: about 2 µs, 5 with a pepper.
   * @throws GatewayError `unauthenticated` (E4, one text for all causes), or `store_unavailable` for a
   * well-formed key while the keys are not loaded: never a 401 for a key that may be valid.
   */
  authenticate(authorization: string | undefined, xApiKey: string | undefined): Principal {
    const text = presentedKey(authorization, xApiKey);
    const digests = this.#digestsOf(text);
    const id = readKey(text)?.id;
    const now = this.#clock.wall();
    const entry = id === undefined ? undefined : this.#index.find(id);
    if (entry === undefined) matchDummy(digests);
    const found = entry?.match(digests, now) === undefined ? this.#literal(text, digests) : entry;
    const match = found?.match(digests, now);
    if (found !== undefined && match !== undefined && found.state(now) === 'active') {
      this.#uses.note(found, match, now);
      return found.principal;
    }
    if (!this.#index.loaded && id !== undefined) {
      throw new GatewayError('store_unavailable', 'The keys are not loaded yet; try again soon.');
    }
    throw new GatewayError('unauthenticated', keyRefusal);
  }

  /**
   * Searches for a key that `authenticate` refused: another gateway may just have created or rotated it.
   * @returns undefined when there is nothing to look for; otherwise call `authenticate` again afterwards.
   * @throws GatewayError `store_unavailable` while it is unknown whether the key exists.
   */
  refreshKey(
    authorization: string | undefined,
    xApiKey: string | undefined,
  ): Promise<void> | undefined {
    const id = readKey(presentedKey(authorization, xApiKey))?.id;
    if (id === undefined || this.#index.find(id)?.revoked() === true) return undefined;
    return this.#refresh?.ask()?.catch((error: unknown) => {
      throw new GatewayError('store_unavailable', 'This key cannot be looked up now; try again.', {
        cause: error,
      });
    });
  }

  /**
   * Creates a key; it works once the store has it.
   * @throws GatewayError `invalid_request` with the field, StoreError.
   */
  async create(input: KeyInput, write: WriteKey = this.#write): Promise<NewKey> {
    const now = this.#clock.wall();
    const wished = requestedOf(input, now);
    const { id, key } = this.#makeUnusedKey();
    const record: KeyRecord = {
      id,
      ...wished,
      ...this.#digestFields(key),
      previous: [],
      createdAt: now,
      version: 1,
    };
    const after = { record, source: 'store', state: 'active', ...neverUsed } as const;
    await write({ op: 'addKey', record }, { after });
    this.#index.put(record);
    return { record, id, key };
  }

  /**
   * Changes a key; running calls are not affected. `change` may be called again with a newer record when
   * another instance was faster.
   * @returns undefined when there is no such key.
   * @throws GatewayError `invalid_request`, also for a key that cannot be changed; StoreError.
   */
  async update(
    id: string,
    change: (record: KeyRecord) => KeyChange,
    write: WriteKey = this.#write,
  ): Promise<ChangedKey | undefined> {
    const next = (record: KeyRecord): KeyRecord =>
      changedRecord(record, change(record), this.#clock.wall());
    return this.#replace(id, { next, write });
  }

  /**
   * Gives a key another secret. The previous one works for another `overlapMs`, and older ones no longer than
   * it; 0 ends them all at once (S5).
   * @returns undefined when there is no such key.
   * @throws GatewayError `invalid_request` for a key that cannot be changed; StoreError.
   */
  async rotate(
    id: string,
    overlapMs: number,
    write: WriteKey = this.#write,
  ): Promise<(ChangedKey & { readonly key: Secret }) | undefined> {
    const key = makeKeyOf(id, this.#random);
    const digestFields = this.#digestFields(key);
    const next = (record: KeyRecord): KeyRecord => ({
      ...record,
      ...digestFields,
      previous: previousOf(record, { now: this.#clock.wall(), overlapMs }),
      version: record.version + 1,
    });
    const changed = await this.#replace(id, { next, write });
    const entry = this.#index.find(id);
    if (changed === undefined || entry === undefined) return undefined;
    if (entry.lastUsedAt !== undefined) this.#uses.note(entry, 'previous', entry.lastUsedAt);
    return { ...changed, after: this.#listed(entry), key };
  }

  /**
   * Revokes at once in this process, then in the store; a second time changes nothing. The key stays refused
   * here even when the store fails: then repeat the call. Running calls are cut (S6).
   * @returns undefined when there is no such key.
   * @throws GatewayError `invalid_request` for a key that is not in the store, StoreError.
   */
  async revoke(id: string, write: WriteKey = this.#write): Promise<ChangedKey | undefined> {
    const entry = this.#index.find(id);
    if (entry === undefined) return undefined;
    requireStored(entry);
    const before = this.#listed(entry);
    const revokedAt = entry.record.revokedAt ?? this.#clock.wall();
    entry.replace({ ...entry.record, revokedAt, version: entry.record.version + 1 });
    const after = this.#listed(entry);
    await write({ op: 'revokeKey', id, at: revokedAt }, { before, after });
    return { before, after };
  }

  /**
   * Adds a secret of any form, kept in memory only (MODEL_GATEWAY_KEY).
   * @throws Error when it is too short or not valid in a header.
   */
  addLiteralKey(secret: Secret, input: Omit<DeclaredKey, 'digests'>): void {
    requireUsableSecret('MODEL_GATEWAY_KEY', secret.reveal());
    requireNotGuessable('MODEL_GATEWAY_KEY', secret.reveal());
    const digests = [digestOf(secret.reveal()).toString('hex')];
    this.#index.addLiteral(fixedRecord({ ...input, digests }, this.#clock.wall()));
  }

  /**
   * Replaces the keys of the config. Keys that are no longer declared are refused and their calls are cut (S6).
   * All or nothing.
   * @throws Error that names a key which is not valid.
   */
  declare(keys: readonly DeclaredKey[]): void {
    const now = this.#clock.wall();
    this.#index.declare(keys.map((key) => fixedRecord(key, now)));
  }

  /**
   * The key of the first start (S10): created when there has never been a key and none comes from the
   * environment or the config. It may call every model.
   * @param lost id of a revoked first key that was never shown: it counts as never made
   */
  async ensureFirstKey(write: WriteKey = this.#write, lost?: string): Promise<NewKey | undefined> {
    if (!this.#index.loaded) await this.load();
    if (!this.wantsFirstKey(lost)) return undefined;
    return this.create({ name: firstKeyName, models: ['*'], policy: firstKeyPolicy }, write);
  }

  /** Whether `ensureFirstKey` would make one of the loaded keys. */
  wantsFirstKey(lost?: string): boolean {
    return this.#index.size === (lost === undefined ? 0 : 1);
  }

  /** Id of the first key, where no call was made with it. */
  unusedFirstKey(): string | undefined {
    return this.#index.firstStored(
      ({ name, revokedAt, lastUsedAt }) =>
        name === firstKeyName && revokedAt === undefined && lastUsedAt === undefined,
    )?.id;
  }

  /** Whether this secret belongs to one of the keys, in any state. */
  holds(secret: Secret): boolean {
    const { plain, peppered } = this.#digestsOf(secret.reveal());
    const texts = [plain.toString('hex'), peppered?.toString('hex')];
    return this.#index.some(({ digest }) => texts.includes(digest));
  }

  /**
   * The permissions of the key with this id; undefined unless the key is active. For callers that do not have
   * its secret.
   */
  principalOf(id: string): Principal | undefined {
    const entry = this.#index.find(id);
    return entry?.state(this.#clock.wall()) === 'active' ? entry.principal : undefined;
  }

  find(id: string): ListedKey | undefined {
    const entry = this.#index.find(id);
    return entry === undefined ? undefined : this.#listed(entry);
  }

  /** All keys of this owner, in any state. */
  ofOwner(owner: string): readonly ListedKey[] {
    return this.#index.ofOwner(owner).map((entry) => this.#listed(entry));
  }

  /**
   * A page: fixed keys first, then those of the store in the order of creation. Undefined when there is no key
   * `after`.
   */
  list(page: { readonly limit: number; readonly after?: string }): KeyPage | undefined {
    const found = this.#index.page(page.limit, page.after);
    if (found === undefined) return undefined;
    const last = found.entries.at(-1);
    return {
      keys: found.entries.map((entry) => this.#listed(entry)),
      ...(found.more && last !== undefined ? { next: last.record.id } : {}),
    };
  }

  /** The same, for the keys of a filter. */
  search(
    filter: KeyFilter,
    page: { readonly limit: number; readonly after?: string },
  ): KeyPage | undefined {
    const found = this.#index.search(this.#testOf(filter), page);
    if (found === undefined) return undefined;
    return {
      keys: found.entries.map((entry) => this.#listed(entry)),
      ...(found.last === undefined ? {} : { next: found.last }),
    };
  }

  /** The same, those with the highest rank first; keys without a rank follow in the usual order. */
  async ranked(
    filter: KeyFilter,
    rankOf: (key: ListedKey) => number | undefined,
    page: { readonly limit: number; readonly after?: string },
  ): Promise<KeyPage | undefined> {
    const rank = (entry: KeyEntry): number | undefined => rankOf(this.#listed(entry));
    const found = await this.#index.ranked(this.#testOf(filter), rank, page);
    const last = found?.entries.at(-1);
    if (found === undefined) return undefined;
    return {
      keys: found.entries.map((entry) => this.#listed(entry)),
      ...(found.more && last !== undefined ? { next: last.record.id } : {}),
    };
  }

  #testOf({ text, team, state, within }: KeyFilter): (entry: KeyEntry) => boolean {
    const part = text?.toLowerCase();
    const now = this.#clock.wall();
    return (entry) =>
      (within === undefined || within(entry.record)) &&
      (team === undefined || entry.record.team === team) &&
      (state === undefined || entry.state(now) === state) &&
      (part === undefined || holdsText(entry.record, part));
  }

  /** Records uses of keys by other processes for the store. */
  heardUses(uses: readonly KeyUse[]): void {
    for (const { id, at, previous } of uses) {
      const entry = this.#index.find(id);
      const known = previous ? entry?.previousUsedAt : entry?.lastUsedAt;
      if (known === undefined || known < at) entry?.used(at, previous ? 'previous' : 'current');
    }
  }

  /** Writes to the store when keys were last used. Never rejects. */
  flushUses(): Promise<void> {
    return this.#uses.flush();
  }

  /**
   * A declared key whose secret may have any form. Texts below the minimum length never match, so the hash of a
   * short word opens nothing (S7).
   */
  #literal(text: string, { plain }: Digests): KeyEntry | undefined {
    return text.length < minSecretLength ? undefined : this.#index.byDigest(plain);
  }

  #replace(id: string, change: Replacement): Promise<ChangedKey | undefined> {
    return this.#mutex.run(id, () => this.#replaceNow(id, change));
  }

  async #replaceNow(id: string, { next, write }: Replacement): Promise<ChangedKey | undefined> {
    for (let tries = 0; tries < maxTries; tries++) {
      const entry = this.#index.find(id);
      if (entry === undefined) return undefined;
      requireStored(entry);
      if (entry.revoked()) throw invalidRequest('This key is revoked; it cannot be changed.');
      const before = this.#listed(entry);
      const record = next(entry.record);
      const after = { ...before, record, state: this.#stateOf(record) };
      if (await write({ op: 'replaceKey', record }, { before, after })) {
        this.#index.put(record);
        return { before, after: this.#listed(entry) };
      }
      await this.#index.load();
    }
    throw tooManyChanges();
  }

  /** State of a record that is not revoked. */
  #stateOf({ expiresAt }: KeyRecord): KeyState {
    return expiresAt !== undefined && expiresAt <= this.#clock.wall() ? 'expired' : 'active';
  }

  /** Without an audit entry: for changes by the gateway itself. */
  readonly #write: WriteKey = async (change) => {
    if (change.op === 'replaceKey') return this.#store.keys.replace(change.record);
    if (change.op === 'revokeKey') return this.#store.keys.revoke(change.id, change.at);
    if (change.op === 'addKey') await this.#store.keys.add(change.record);
    return true;
  };

  #digestsOf(text: string): Digests {
    const plain = digestOf(text);
    return { plain, peppered: this.#pepper?.over(plain) };
  }

  /**
   * The stored form of a new secret.
   * @throws GatewayError `invalid_request` when the store's keys have a pepper that is missing here.
   */
  #digestFields(key: Secret): Pick<KeyRecord, 'digest' | 'peppered'> {
    if (this.pepperProblem !== undefined) throw invalidRequest(this.pepperProblem);
    const { plain, peppered } = this.#digestsOf(key.reveal());
    return peppered === undefined
      ? { digest: plain.toString('hex') }
      : { digest: peppered.toString('hex'), peppered: true };
  }

  #listed(entry: KeyEntry): ListedKey {
    return {
      record: entry.record,
      state: entry.state(this.#clock.wall()),
      source: entry.source,
      lastUsedAt: entry.lastUsedAt,
      previousUsedAt: entry.previousUsedAt,
    };
  }

  #makeUnusedKey(): { readonly id: string; readonly key: Secret } {
    for (;;) {
      const made = makeKey(this.#random);
      if (this.#index.find(made.id) === undefined) return made;
    }
  }
}

interface Replacement {
  next(record: KeyRecord): KeyRecord;
  readonly write: WriteKey;
}

const neverUsed = { lastUsedAt: undefined, previousUsedAt: undefined };

function requireStored({ source }: KeyEntry): void {
  if (source === 'store') return;
  throw invalidRequest(
    source === 'config'
      ? 'This key is declared in the config; change it there.'
      : 'This key comes from the environment; unset it there and restart.',
  );
}

function previousOf(
  { digest, peppered, previous }: KeyRecord,
  { now, overlapMs }: { readonly now: number; readonly overlapMs: number },
): KeyRecord['previous'] {
  if (overlapMs === 0) return [];
  const validUntil = now + overlapMs;
  const replaced = { digest, ...(peppered === true ? { peppered } : {}), replacedAt: now };
  return [
    { ...replaced, validUntil },
    ...previous
      .filter((secret) => secret.validUntil > now)
      .map((secret) => ({ ...secret, validUntil: Math.min(secret.validUntil, validUntil) })),
  ].slice(0, maxPrevious);
}

/** Maximum number of rotations within one overlap; beyond it the oldest secret ends earlier. */
const maxPrevious = 5;

/** A key outside the store. */
function fixedRecord({ id, digests, ...input }: DeclaredKey, now: number): KeyRecord {
  const { expiresAt, ...rest } = input;
  const [digest = '', ...others] = digests;
  return {
    id,
    ...requestedOf(rest, now),
    // An expiry in the past is not an error: the key is listed as expired.
    ...(expiresAt === undefined ? {} : { expiresAt }),
    digest,
    previous: others.map((other) => ({ digest: other, replacedAt: 0, validUntil: Infinity })),
    declared: true,
    createdAt: now,
    version: 1,
  };
}

function holdsText({ id, name, team = '', owner = '', tags }: KeyRecord, part: string): boolean {
  return [id, name, team, owner, ...tags].some((text) => text.toLowerCase().includes(part));
}

/** Runs the changes of one thing one after the other: two at the same time would each start from the old state. */
class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` once all work that was given under this name before has settled. */
  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const current = before === undefined ? work() : before.then(work, work);
    this.#last.set(name, current);
    const over = (): void => {
      if (this.#last.get(name) === current) this.#last.delete(name);
    };
    current.then(over, over);
    return current;
  }
}

// Reads a shared store for keys that are not known here: another instance may have made them a moment ago. Requests
// that ask at the same time share one read, and reads are at least 250 ms apart.

interface CoalescedRefreshOptions {
  /** Reads what is new. */
  read(): Promise<void>;
  readonly clock: Pick<Clock, 'now'>;
}

const pauseMs = 250;
/** Requests beyond these are refused without a read. */
const maxWaiting = 1000;

export class CoalescedRefresh {
  readonly #options: CoalescedRefreshOptions;
  /** The read that has not begun yet: what it finds is newer than the question. */
  #next: Promise<void> | undefined;
  #waiting = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(options: CoalescedRefreshOptions) {
    this.#options = options;
  }

  /** Undefined when too many requests wait already. @throws what `read` throws. */
  ask(): Promise<void> | undefined {
    if (this.#waiting >= maxWaiting) return undefined;
    this.#waiting += 1;
    this.#next ??= this.#soon();
    return this.#next.finally(() => {
      this.#waiting -= 1;
    });
  }

  async #soon(): Promise<void> {
    const { read, clock } = this.#options;
    // Awaited without a pause, too: `ask` must have stored this promise before the read begins.
    await sleep(Math.max(0, this.#lastAt + pauseMs - clock.now()));
    this.#next = undefined;
    this.#lastAt = clock.now();
    await read();
  }
}

// When keys were last used: noted in memory with each call, written to the store every ten seconds.

/** A crash loses the uses of this time. They are information for people; nothing depends on them. */
const writeEveryMs = 10_000;

class LastUses {
  readonly #store: Pick<KeyStore, 'touch'>;
  readonly #log: Log;
  #current = new Set<KeyEntry>();
  #previous = new Set<KeyEntry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<KeyStore, 'touch'>, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  note(entry: KeyEntry, match: Match, now: number): void {
    entry.used(now, match);
    if (entry.source !== 'store') return;
    (match === 'previous' ? this.#previous : this.#current).add(entry);
    this.#timer ??= setTimeout(() => void this.flush(), writeEveryMs).unref();
  }

  /** Writes them to the store; those of a failed write are written with the next ones. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [current, previous] = [this.#current, this.#previous];
    if (current.size + previous.size === 0) return;
    this.#current = new Set();
    this.#previous = new Set();
    const uses = [
      ...[...current].map(({ record, lastUsedAt = 0 }) => ({
        id: record.id,
        at: lastUsedAt,
        previous: false,
      })),
      ...[...previous].map(({ record, previousUsedAt = 0 }) => ({
        id: record.id,
        at: previousUsedAt,
        previous: true,
      })),
    ];
    try {
      await this.#store.touch(uses);
    } catch (error) {
      for (const entry of current) this.#current.add(entry);
      for (const entry of previous) this.#previous.add(entry);
      const reason = error instanceof Error ? error.message : 'unknown';
      this.#log.warn('key_uses_not_written', { keys: uses.length, reason });
    }
  }
}
