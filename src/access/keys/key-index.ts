/** All keys in memory, by id and by position: keys of the store and fixed keys. */
import { setImmediate } from 'node:timers/promises';
import type { Log } from '../../core/runtime.ts';
import type { KeyRecord } from '../../store/records.ts';
import type { Store } from '../../store/store.ts';
import {
  missingPepper,
  readPepperState,
  writePepperState,
  type Pepper,
  type PepperState,
} from './seal-key.ts';
import type { PolicySource } from '../policies.ts';
import { dummyDigest, sameDigest } from './key-format.ts';
import { KeyPrincipal, type Principal } from './principal.ts';

// A key in memory: its record, what is prepared for calls, and its last use.

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
interface SecretTrust {
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

interface KeyPosition {
  readonly source: KeySource;
  readonly position: number;
  readonly policies: PolicySource;
  readonly trust: SecretTrust;
}

export class KeyEntry {
  readonly source: KeySource;
  /** Index in the order of its source; keys of the store are never removed, so it stays. */
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

  constructor(record: KeyRecord, origin: KeyPosition) {
    this.#record = record;
    this.source = origin.source;
    this.position = origin.position;
    this.#policies = origin.policies;
    this.#trust = origin.trust;
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
    const same = sameDigest(presented ?? dummyDigest, digest) && presented !== undefined;
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
export function matchDummy(digests: Digests): void {
  sameDigest(digests.plain, dummyDigest);
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

export interface KeyIndexDeps {
  readonly store: Store;
  readonly policies: PolicySource;
  readonly pepper: Pepper | undefined;
  readonly log: Log;
}

/** After this many removals, an older page cursor starts from the beginning. */
const maxGone = 10_000;

/** Keys that are peppered in one batch. */
const pepperBatch = 500;

/** Keys that are examined for one page. */
const maxSearched = 50_000;

/** Keys that are ranked without a pause. */
const ranksAtOnce = 20_000;

export class KeyIndex {
  readonly #deps: KeyIndexDeps;
  readonly #entries = new Map<string, KeyEntry>();
  /** Keys of the store, in the order of creation. */
  readonly #stored: KeyEntry[] = [];
  /** Keys of the environment, then those of the config. */
  #fixed: readonly KeyEntry[] = [];
  /** Positions of removed declared keys, so that a page that follows one can continue. */
  readonly #gone = new Map<string, number>();
  /** The fixed keys by digest: their secrets may have any form, so no id can be read from them. */
  #byDigest: ReadonlyMap<string, KeyEntry> = new Map();
  /** Ids of keys of the store by owner, current or former: listing the keys of one person must not scan 500,000. */
  readonly #byOwner = new Map<string, Set<string>>();
  /** Of stored keys; those of the config have no pepper. */
  readonly #trust: SecretTrust = { plain: true };
  readonly #fixedTrust: SecretTrust = { plain: true };
  #stamp = 0;
  #loading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #inTurn: Promise<void> = Promise.resolve();
  #loaded = false;
  #pepperProblem: string | undefined;

  constructor(deps: KeyIndexDeps) {
    this.#deps = deps;
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  get pepperProblem(): string | undefined {
    return this.#pepperProblem;
  }

  get size(): number {
    return this.#stored.length + this.#fixed.length;
  }

  find(id: string): KeyEntry | undefined {
    return this.#entries.get(id);
  }

  byDigest(digest: Buffer): KeyEntry | undefined {
    return this.#byDigest.size === 0 ? undefined : this.#byDigest.get(digest.toString('hex'));
  }

  /** Keys of this owner, in any state; those of the store in the order of creation. */
  ofOwner(owner: string): readonly KeyEntry[] {
    const stored = [...(this.#byOwner.get(owner) ?? [])]
      .flatMap((id) => this.find(id) ?? [])
      .sort((a, b) => a.position - b.position);
    return [...this.#fixed, ...stored].filter(({ record }) => record.owner === owner);
  }

  some(test: (record: KeyRecord) => boolean): boolean {
    const fits = ({ record }: KeyEntry): boolean => test(record);
    return this.#fixed.some(fits) || this.#stored.some(fits);
  }

  /** The oldest key of the store that passes the test. */
  firstStored(test: (record: KeyRecord) => boolean): KeyRecord | undefined {
    return this.#stored.find(({ record }) => test(record))?.record;
  }

  /** Reads what is new in the store; concurrent calls share one read. @throws StoreError */
  load(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** The same, but never joins a read that has begun, which may be older than a change. */
  async loadAnew(): Promise<void> {
    await this.#loading?.catch(() => undefined);
    await this.load();
  }

  /** Adds or replaces a record of the store. */
  put(record: KeyRecord): void {
    const known = this.#entries.get(record.id);
    this.#noteOwner(record);
    if (known?.source === 'store') known.replace(record);
    else if (known === undefined) {
      this.#stored.push(this.#add(record, 'store', this.#stored.length));
    } else {
      this.#deps.log.error('key_hidden', {
        id: record.id,
        reason: 'a key of the config or the environment has the same id; rename that one',
      });
    }
  }

  #noteOwner({ id, owner }: KeyRecord): void {
    if (owner === undefined) return;
    const ids = this.#byOwner.get(owner);
    if (ids === undefined) this.#byOwner.set(owner, new Set([id]));
    else ids.add(id);
  }

  /** @throws Error when the id is taken. */
  addLiteral(record: KeyRecord): void {
    if (this.#entries.has(record.id)) throw new Error(`There is a key with the id ${record.id}.`);
    const literals = this.#fixed.filter(({ source }) => source === 'environment');
    const declared = this.#fixed.filter(({ source }) => source === 'config');
    const added = this.#add(record, 'environment', literals.length);
    this.#setFixed([...literals, added], declared);
  }

  /** @throws Error when an id is taken by a key that is not the config's; nothing is changed then. */
  declare(records: readonly KeyRecord[]): void {
    const old = new Map(
      this.#fixed.filter(({ source }) => source === 'config').map((e) => [e.record.id, e]),
    );
    for (const { id } of records) {
      if (old.has(id) || !this.#entries.has(id)) continue;
      throw new Error(`keys.${id}: another key has this id; give the declared one another name.`);
    }
    const wanted = new Set(records.map(({ id }) => id));
    this.#forgetPositions([...old.values()].filter(({ record }) => !wanted.has(record.id)));
    for (const [id, entry] of old) {
      if (wanted.has(id)) {
        this.#gone.delete(id);
        continue;
      }
      entry.remove();
      this.#entries.delete(id);
    }
    const literals = this.#fixed.filter(({ source }) => source === 'environment');
    const declared = records.map((record, i) => {
      const position = literals.length + i;
      const known = old.get(record.id);
      if (known === undefined) return this.#add(record, 'config', position);
      const { version, createdAt } = known.record;
      known.replace({ ...record, createdAt, version: version + 1 });
      known.position = position;
      return known;
    });
    this.#setFixed(literals, declared);
  }

  /** Undefined when the key `after` does not exist. */
  page(
    limit: number,
    after: string | undefined,
  ): { readonly entries: readonly KeyEntry[]; readonly more: boolean } | undefined {
    const before = after === undefined ? undefined : this.#entries.get(after);
    const gone = after === undefined ? 0 : this.#gone.get(after);
    if (before === undefined && gone === undefined) return undefined;
    const start =
      before === undefined
        ? (gone ?? 0)
        : (before.source === 'store' ? this.#fixed.length + before.position : before.position) + 1;
    const fixed = this.#fixed.slice(start, start + limit);
    const from = Math.max(0, start - this.#fixed.length);
    const stored = this.#stored.slice(from, from + limit - fixed.length);
    return { entries: [...fixed, ...stored], more: start + limit < this.size };
  }

  /**
   * Keys after `after` that match, in the same order. A page may be short or empty although more follow: `last`
   * is where the search stopped.
   */
  search(
    isWanted: (entry: KeyEntry) => boolean,
    { limit, after }: { readonly limit: number; readonly after?: string },
  ): { readonly entries: readonly KeyEntry[]; readonly last?: string } | undefined {
    const found: KeyEntry[] = [];
    const seen = this.page(maxSearched, after);
    if (seen === undefined) return undefined;
    for (const [i, entry] of seen.entries.entries()) {
      if (isWanted(entry)) found.push(entry);
      const isEnd = i === seen.entries.length - 1;
      if (found.length === limit || isEnd) {
        return isEnd && !seen.more ? { entries: found } : { entries: found, last: entry.record.id };
      }
    }
    return { entries: found };
  }

  /**
   * Keys after `after` that match, by rank from the highest; those without a rank come last, in the order of pages. All
   * keys are examined, with pauses for calls. Undefined when the key `after` does not exist.
   */
  async ranked(
    isWanted: (entry: KeyEntry) => boolean,
    rankOf: (entry: KeyEntry) => number | undefined,
    { limit, after }: { readonly limit: number; readonly after?: string },
  ): Promise<{ readonly entries: readonly KeyEntry[]; readonly more: boolean } | undefined> {
    const placed = (entry: KeyEntry): Placed => {
      const before = entry.source === 'store' ? this.#fixed.length : 0;
      return { entry, rank: rankOf(entry) ?? -1, order: before + entry.position };
    };
    const last = after === undefined ? undefined : this.#entries.get(after);
    if (after !== undefined && last === undefined) return undefined;
    const start = last === undefined ? undefined : placed(last);
    let best: Placed[] = [];
    let seen = 0;
    for (const entries of [this.#fixed, this.#stored]) {
      for (const entry of entries) {
        seen += 1;
        if (seen % ranksAtOnce === 0) await setImmediate();
        if (!isWanted(entry)) continue;
        const each = placed(entry);
        if (start !== undefined && byRank(each, start) <= 0) continue;
        best.push(each);
        if (best.length > 2 * limit) best = best.sort(byRank).slice(0, limit + 1);
      }
    }
    best.sort(byRank);
    return { entries: best.slice(0, limit).map(({ entry }) => entry), more: best.length > limit };
  }

  /** Positions of the keys after them move up. */
  #forgetPositions(removed: readonly KeyEntry[]): void {
    const positions = removed.map(({ position }) => position);
    const movedUp = (from: number): number =>
      from - positions.filter((position) => position < from).length;
    for (const [id, position] of this.#gone) this.#gone.set(id, movedUp(position));
    for (const { record, position } of removed) this.#gone.set(record.id, movedUp(position));
    for (const id of this.#gone.keys()) {
      if (this.#gone.size <= maxGone) break;
      this.#gone.delete(id);
    }
  }

  #add(record: KeyRecord, source: KeySource, position: number): KeyEntry {
    const trust = source === 'store' ? this.#trust : this.#fixedTrust;
    const { policies } = this.#deps;
    const entry = new KeyEntry(record, { source, position, policies, trust });
    this.#entries.set(record.id, entry);
    return entry;
  }

  #setFixed(literals: readonly KeyEntry[], declared: readonly KeyEntry[]): void {
    this.#fixed = [...literals, ...declared];
    this.#byDigest = new Map(
      this.#fixed.flatMap((entry) =>
        [entry.record, ...entry.record.previous].map(({ digest }) => [digest, entry] as const),
      ),
    );
  }

  async #load(): Promise<void> {
    await this.#readNew();
    if (this.#loaded) return;
    // Portions come in the order of changes; pages of keys are in the order of creation.
    this.#stored.sort(({ record: a }, { record: b }) => {
      return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
    });
    for (const [position, entry] of this.#stored.entries()) entry.position = position;
    await this.#checkPepper();
    this.#loaded = true;
  }

  /** In portions, so that half a million keys are never in memory twice. */
  async #readNew(): Promise<void> {
    for (let more = true; more;) {
      const changes = await this.#deps.store.keys.since(this.#stamp);
      for (const record of changes.records) this.put(record);
      this.#stamp = changes.stamp;
      ({ more } = changes);
    }
  }

  async #checkPepper(): Promise<void> {
    const { store, pepper } = this.#deps;
    const somePeppered = this.#stored.some(({ record }) => record.peppered === true);
    const read = await readPepperState(store.settings, pepper);
    this.#pepperProblem = 'problem' in read ? read.problem : undefined;
    if (pepper === undefined) {
      if (somePeppered) this.#pepperProblem ??= missingPepper;
      return;
    }
    if ('problem' in read) return;
    // The pepper mark was removed. An attacker who can do that could also plant keys without the pepper.
    const state: PepperState = read.state === 'none' && somePeppered ? 'done' : read.state;
    if (state !== 'done') await this.#pepperAll(pepper);
    this.#trust.plain = false;
    this.#reportForged();
  }

  /** Adds the pepper to older keys, once. From then on a key without it is rejected as forged. */
  async #pepperAll(pepper: Pepper): Promise<void> {
    const { store, log } = this.#deps;
    await writePepperState(store.settings, pepper, 'begun');
    const plain = this.#stored.filter(({ record }) => !isPeppered(record));
    for (let at = 0; at < plain.length; at += pepperBatch) {
      const batch = plain.slice(at, at + pepperBatch);
      await Promise.all(batch.map((entry) => this.#pepperOne(entry, pepper)));
    }
    await writePepperState(store.settings, pepper, 'done');
    if (plain.length > 0) log.info('keys_peppered', { keys: plain.length });
  }

  async #pepperOne(entry: KeyEntry, pepper: Pepper): Promise<void> {
    const { store } = this.#deps;
    const record = withPepper(entry.record, pepper);
    if (await store.keys.replace(record)) {
      entry.replace(record);
      return;
    }
    // Another instance was faster, with the same pepper or with a change that starts from it.
    const { version } = entry.record;
    await this.#readAgain();
    if (entry.record.version === version || isPeppered(entry.record)) return;
    await this.#pepperOne(entry, pepper);
  }

  /** Callers that arrive before the read has begun share it. */
  #readAgain(): Promise<void> {
    this.#next ??= this.#inTurn.then(() => {
      this.#next = undefined;
      return this.#readNew();
    });
    this.#inTurn = this.#next.catch(() => undefined);
    return this.#next;
  }

  #reportForged(): void {
    const forged = this.#stored.filter(({ record }) => !isPeppered(record));
    if (forged.length === 0) return;
    this.#deps.log.error('keys_without_pepper_refused', {
      keys: forged.length,
      ids: forged
        .slice(0, 10)
        .map(({ record }) => record.id)
        .join(','),
    });
  }
}

interface Placed {
  readonly entry: KeyEntry;
  /** -1: none. */
  readonly rank: number;
  readonly order: number;
}

function byRank(a: Placed, b: Placed): number {
  return b.rank - a.rank || a.order - b.order;
}

function isPeppered({ peppered, previous }: KeyRecord): boolean {
  return peppered === true && previous.every((secret) => secret.peppered === true);
}

function withPepper(record: KeyRecord, pepper: Pepper): KeyRecord {
  const over = <S extends { readonly digest: string; readonly peppered?: true }>(secret: S): S =>
    secret.peppered === true
      ? secret
      : {
          ...secret,
          digest: pepper.over(Buffer.from(secret.digest, 'hex')).toString('hex'),
          peppered: true,
        };
  return {
    ...over(record),
    previous: record.previous.map((secret) => over(secret)),
    version: record.version + 1,
  };
}
