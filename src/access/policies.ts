/**
 * The policies of teams and tags, all in memory. Policies of the config take precedence over those of the store
 * with the same name, and cannot be changed here.
 */
import { invalidRequest } from '../core/errors.ts';
import type { CommonPolicy, HolderKind, Policy, SharedPolicy } from '../core/policy.ts';
import type { NotedChange } from '../store/records.ts';
import type { PolicyStore } from '../store/store.ts';

/** The holder of a policy: for a key its public id. */
export interface Holder {
  readonly kind: HolderKind;
  readonly name: string;
}

/** A policy that applies to a call, and its holder: counters are per holder. */
export interface HeldPolicy {
  readonly holder: Holder;
  readonly policy: Policy;
}

export type SharedKind = SharedPolicy['kind'];

/** Looks up the policies of a team and tags. */
export interface PolicySource {
  /** Rises with every change, so that a lookup can be cached until then. */
  readonly version: number;
  find(kind: SharedKind, name: string): CommonPolicy | undefined;
}

/** For keys whose team and tags have no policies. */
export const noPolicies: PolicySource = { version: 0, find: () => undefined };

/**
 * Writes a change to the store together with its audit entry; false when it was refused.
 * @throws StoreError
 */
export type WritePolicy = (
  change: NotedChange,
  before: SharedPolicy | undefined,
) => Promise<boolean>;

/** The source of a policy; declared ones come from the config. */
export interface ListedPolicy {
  readonly policy: SharedPolicy;
  readonly source: 'store' | 'config';
}

export class Policies implements PolicySource {
  readonly #store: PolicyStore;
  #stored = new Map<string, SharedPolicy>();
  #declared: ReadonlyMap<string, SharedPolicy> = new Map();
  /** All of a kind by name; created for the first page, kept until something changes. */
  readonly #sorted = new Map<SharedKind, readonly SharedPolicy[]>();
  #version = 1;

  constructor(store: PolicyStore) {
    this.#store = store;
  }

  get version(): number {
    return this.#version;
  }

  /**
   * Reads the policies of the store. May be repeated, e.g. when another instance changed one. @throws
   * StoreError
   */
  async load(): Promise<void> {
    this.#stored = byName(await this.#store.list());
    this.#changed();
  }

  /** Replaces the policies of the config. */
  declare(policies: readonly SharedPolicy[]): void {
    this.#declared = byName(policies);
    this.#changed();
  }

  find(kind: SharedKind, name: string): SharedPolicy | undefined {
    const key = keyOf(kind, name);
    return this.#declared.get(key) ?? this.#stored.get(key);
  }

  listed(kind: SharedKind, name: string): ListedPolicy | undefined {
    const policy = this.find(kind, name);
    return policy === undefined ? undefined : this.#listed(policy);
  }

  /** By name, after `after`. */
  list(kind: SharedKind, page: { readonly limit: number; readonly after?: string }): PolicyPage {
    const { limit, after } = page;
    const all = this.#byName(kind);
    const found = after === undefined ? 0 : all.findIndex(({ name }) => name > after);
    const start = found === -1 ? all.length : found;
    const policies = all.slice(start, start + limit).map((policy) => this.#listed(policy));
    const last = policies.at(-1)?.policy.name;
    const more = start + limit < all.length && last !== undefined;
    return { policies, ...(more ? { next: last } : {}) };
  }

  /**
   * Creates or replaces a policy; it applies once the store has it.
   * @throws GatewayError `invalid_request` for one of the config, StoreError.
   */
  async put(policy: SharedPolicy, write?: WritePolicy): Promise<SharedChange> {
    const before = this.#requireOurs(policy.kind, policy.name);
    if (write === undefined) await this.#store.put(policy);
    else await write({ op: 'putPolicy', policy }, before);
    this.#stored.set(keyOf(policy.kind, policy.name), policy);
    this.#changed();
    return { before, after: policy };
  }

  /**
   * @returns undefined when there is none.
   * @throws GatewayError `invalid_request` for one of the config, StoreError.
   */
  async delete(
    kind: SharedKind,
    name: string,
    write?: WritePolicy,
  ): Promise<SharedChange | undefined> {
    const before = this.#requireOurs(kind, name);
    const existed =
      write === undefined
        ? await this.#store.delete(kind, name)
        : await write({ op: 'deletePolicy', kind, name }, before);
    this.#stored.delete(keyOf(kind, name));
    this.#changed();
    return existed || before !== undefined ? { before, after: undefined } : undefined;
  }

  #requireOurs(kind: SharedKind, name: string): SharedPolicy | undefined {
    if (this.#declared.has(keyOf(kind, name))) {
      throw invalidRequest(`This ${kind} is declared in the config; change it there.`);
    }
    return this.#stored.get(keyOf(kind, name));
  }

  #changed(): void {
    this.#version += 1;
    this.#sorted.clear();
  }

  #byName(kind: SharedKind): readonly SharedPolicy[] {
    let sorted = this.#sorted.get(kind);
    if (sorted === undefined) {
      sorted = [...new Map([...this.#stored, ...this.#declared]).values()]
        .filter((policy) => policy.kind === kind)
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      this.#sorted.set(kind, sorted);
    }
    return sorted;
  }

  #listed(policy: SharedPolicy): ListedPolicy {
    const isDeclared = this.#declared.get(keyOf(policy.kind, policy.name)) === policy;
    return { policy, source: isDeclared ? 'config' : 'store' };
  }
}

export interface PolicyPage {
  readonly policies: readonly ListedPolicy[];
  /** Pass as `after` for the next page; absent on the last. */
  readonly next?: string;
}

export interface SharedChange {
  readonly before: SharedPolicy | undefined;
  readonly after: SharedPolicy | undefined;
}

function keyOf(kind: SharedKind, name: string): string {
  return `${kind}:${name}`;
}

function byName(policies: readonly SharedPolicy[]): Map<string, SharedPolicy> {
  return new Map(policies.map((policy) => [keyOf(policy.kind, policy.name), policy]));
}
