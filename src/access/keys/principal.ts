/** The caller and its permissions (S7). Everything that is not allowed is denied. */
import { AddressRange } from '../../core/addresses.ts';
import type { Policy } from '../../core/policy.ts';
import type { KeyRecord } from '../../store/records.ts';
import { Glob } from '../../core/model-names.ts';
import { noPolicies, type HeldPolicy, type Holder, type PolicySource } from '../policies.ts';

/** The properties of a key that a call needs, so that it needs one lookup. */
export interface Principal {
  /** Public id of the key; safe to log. */
  readonly keyId: string;
  readonly name: string;
  readonly team?: string;
  /** Tags that the key's calls count for. */
  readonly tags: readonly string[];
  /** Refuse requests that translation would change or drop parts of. */
  readonly strict: boolean;
  /** Set cache marks in its prompts if the client sets none. */
  readonly cache?: 'auto';
  /** Whether the content of its calls is stored. */
  readonly logsContent: boolean;
  /** Whether the output limit of a call may be lowered to what is left of the budget. */
  readonly shrink: boolean;
  /**
   * The policies that limit the key: its own, its team's, and those of its tags, without empty ones. The same
   * array until something changes, so that it is cheap and can serve as a cache key.
   */
  policies(): readonly HeldPolicy[];
  /** Whether the client may use this model name, as written. */
  allowsModel(name: string): boolean;
  /** Whether the client may use this endpoint, by its scope name (`chat`, …). */
  allowsEndpoint(scope: string): boolean;
  /** Whether every address is allowed. */
  readonly anywhere: boolean;
  /** Whether the client may call from this address; undefined when the socket is closed. */
  allowsAddress(address: string | undefined): boolean;
  /**
   * Whether the key was revoked meanwhile: running calls are cut (S6). An expiry does not count: calls that
   * began before it may end.
   */
  revoked(): boolean;
}

/** The environment of a record: its policies and state. */
export interface KeyStanding {
  readonly policies: PolicySource;
  revoked(): boolean;
}

/** The permissions of a key record, prepared once for all its calls. */
export class KeyPrincipal implements Principal {
  readonly keyId: string;
  readonly name: string;
  readonly team?: string;
  readonly tags: readonly string[];
  readonly strict: boolean;
  readonly cache?: 'auto';
  readonly logsContent: boolean;
  readonly shrink: boolean;
  readonly anywhere: boolean;
  readonly #policy: Policy;
  readonly #models: readonly Glob[];
  readonly #endpoints: ReadonlySet<string>;
  readonly #ranges: readonly AddressRange[];
  readonly #standing: KeyStanding;
  #held: readonly HeldPolicy[] | undefined;
  #heldVersion = -1;

  constructor(
    record: KeyRecord,
    standing: KeyStanding = { policies: noPolicies, revoked: () => false },
  ) {
    this.keyId = record.id;
    this.name = record.name;
    if (record.team !== undefined) this.team = record.team;
    this.tags = record.tags;
    this.strict = record.strict === true;
    if (record.cache !== undefined) this.cache = record.cache;
    this.logsContent = record.logContent === true;
    this.shrink = record.shrink;
    this.#policy = record.policy;
    this.#models = record.models.map((pattern) => new Glob(pattern));
    this.#endpoints = new Set(record.endpoints);
    this.#ranges = record.cidrs.map((range) => new AddressRange(range));
    this.anywhere = record.cidrs.length === 0;
    this.#standing = standing;
  }

  policies(): readonly HeldPolicy[] {
    const { version } = this.#standing.policies;
    if (this.#held === undefined || this.#heldVersion !== version) {
      this.#held = this.#resolve();
      this.#heldVersion = version;
    }
    return this.#held;
  }

  allowsModel(name: string): boolean {
    for (const glob of this.#models) if (glob.matches(name)) return true;
    return false;
  }

  allowsEndpoint(scope: string): boolean {
    return this.#endpoints.has(scope);
  }

  allowsAddress(address: string | undefined): boolean {
    if (this.anywhere) return true;
    return address !== undefined && this.#ranges.some((range) => range.holds(address));
  }

  revoked(): boolean {
    return this.#standing.revoked();
  }

  #resolve(): readonly HeldPolicy[] {
    const { policies } = this.#standing;
    const held = (holder: Holder, policy: Policy | undefined): readonly HeldPolicy[] =>
      policy === undefined || policy.limits.length + policy.budgets.length === 0
        ? []
        : [{ holder, policy }];
    const shared = (kind: 'team' | 'tag', name: string): readonly HeldPolicy[] =>
      held({ kind, name }, policies.find(kind, name));
    return [
      ...held({ kind: 'key', name: this.keyId }, this.#policy),
      ...(this.team === undefined ? [] : shared('team', this.team)),
      ...this.tags.flatMap((tag) => shared('tag', tag)),
    ];
  }
}
