/** Who calls, and what they may do (S7). Everything that is not allowed is denied. */
import type { KeyRecord } from '../store/store.ts';
import { Glob } from './glob.ts';

/** The endpoints that a key can be limited to (interface.md). */
export const endpointScopes = ['chat', 'messages', 'count_tokens', 'models'] as const;

/** Limits and budgets will stand here too, so that a call needs one look-up. */
export interface Principal {
  /** Public id of the key; safe to log. */
  readonly keyId: string;
  readonly name: string;
  readonly team?: string;
  /** Refuse what a translation would drop or change, instead of noting it. */
  readonly strict: boolean;
  /** Whether the client may use this model name, as it wrote it. */
  allowsModel(name: string): boolean;
  /** Whether the client may use this endpoint, by its scope name (`chat`, …). */
  allowsEndpoint(scope: string): boolean;
}

/** What a key record allows, prepared once for all its calls. */
export class KeyPrincipal implements Principal {
  readonly keyId: string;
  readonly name: string;
  readonly team?: string;
  readonly strict: boolean;
  readonly #models: readonly Glob[];
  readonly #endpoints: ReadonlySet<string>;

  constructor(record: KeyRecord) {
    this.keyId = record.id;
    this.name = record.name;
    if (record.team !== undefined) this.team = record.team;
    this.strict = record.strict === true;
    this.#models = record.models.map((pattern) => new Glob(pattern));
    this.#endpoints = new Set(record.endpoints);
  }

  allowsModel(name: string): boolean {
    for (const glob of this.#models) if (glob.matches(name)) return true;
    return false;
  }

  allowsEndpoint(scope: string): boolean {
    return this.#endpoints.has(scope);
  }
}
