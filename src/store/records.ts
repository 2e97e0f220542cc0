/** Records of the store that are not the ledger: keys and the audit log. Times are ms since the epoch. */
import { hash } from 'node:crypto';
import type { Policy, SharedPolicy } from '../core/policy.ts';

/** A secret that `rotate` replaced, and that stays valid for a while (S5). */
export interface PreviousSecret {
  readonly digest: string;
  readonly peppered?: true;
  /** When `rotate` replaced it. */
  readonly replacedAt: number;
  readonly validUntil: number;
}

/** A stored key: only the digest of its secret. */
export interface KeyRecord {
  /** Public id; for `gw_` keys the 8 characters that are in the key itself. */
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the whole key, or HMAC-SHA-256 of it with the pepper; lower-case hex. */
  readonly digest: string;
  /** The digest is made with the pepper (S2). */
  readonly peppered?: true;
  /** Newest first. */
  readonly previous: readonly PreviousSecret[];
  readonly owner?: string;
  /** Globs of model names; an empty list allows nothing. */
  readonly models: readonly string[];
  /** `chat`, `messages`, `count_tokens`, `models`. */
  readonly endpoints: readonly string[];
  /** Addresses that may use it (`10.0.0.0/8`); empty = anywhere. */
  readonly cidrs: readonly string[];
  readonly team?: string;
  readonly tags: readonly string[];
  readonly policy: Policy;
  /** Whether a call that does not fit its budget gets a smaller answer instead of a refusal. */
  readonly shrink: boolean;
  /** Requests that a translation would change are refused; absent = changes are noted. */
  readonly strict?: true;
  /** Its prompts are marked for the provider's cache (docs/user/routing.md); absent = as the route says. */
  readonly cache?: 'auto';
  /** The content of its calls is stored (docs/user/content.md); absent = it is not. */
  readonly logContent?: true;
  /** Comes from the config; is in no store. */
  readonly declared?: true;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  /** Written by `touchKeys`; `replaceKey` does not write them. */
  readonly lastUsedAt?: number;
  readonly previousUsedAt?: number;
  /** 1 for a new key, rises with every change: a late write never brings an old record back. */
  readonly version: number;
}

export interface KeyUse {
  readonly id: string;
  readonly at: number;
  /** Whether it was a secret that `rotate` replaced. */
  readonly previous: boolean;
}

/** The maximum number of keys that `keysSince` returns at once. */
export const keysPortion = 5000;

export interface KeyChanges {
  readonly records: readonly KeyRecord[];
  /** Ask from here on the next time. */
  readonly stamp: number;
  /** Whether there may be more after these. */
  readonly more: boolean;
}

/** An action through the admin plane, without secrets. */
export interface AuditEntry {
  readonly at: number;
  /** `admin`, `command`, `config`, … */
  readonly actor: string;
  readonly ip?: string;
  /** Noun and verb: `key.create`, `team.update`. */
  readonly action: string;
  /** The object of the action: `key:a1b2c3d4`. */
  readonly subject: string;
  /** JSON text. */
  readonly before?: string;
  /** JSON text. */
  readonly after?: string;
}

/** An entry of the chain: `hash` covers the entry and the hash before it (S24). */
export interface AuditRecord extends AuditEntry {
  /** 1, 2, 3, … without gaps. */
  readonly seq: number;
  /** SHA-256, lower-case hex. */
  readonly hash: string;
}

/** A change that is written together with its entry of the audit log. */
export type NotedChange =
  | { readonly op: 'addKey'; readonly record: KeyRecord }
  | { readonly op: 'replaceKey'; readonly record: KeyRecord }
  | { readonly op: 'revokeKey'; readonly id: string; readonly at: number }
  | { readonly op: 'putPolicy'; readonly policy: SharedPolicy }
  | {
      readonly op: 'deletePolicy';
      readonly kind: SharedPolicy['kind'];
      readonly name: string;
    };

export interface AuditQuery {
  readonly limit: number;
  /** Only entries before this `seq`. */
  readonly before?: number;
  readonly subject?: string;
  readonly actor?: string;
  /** An action, or the noun of several: `key` finds `key.create`, too. */
  readonly action?: string;
  /** Ms since the epoch; `until` itself is not among them. */
  readonly since?: number;
  readonly until?: number;
}

const beforeFirst = '';

/** The entry after the last one of the chain. */
export function chained(entry: AuditEntry, last: AuditRecord | undefined): AuditRecord {
  const seq = (last?.seq ?? 0) + 1;
  return { ...entry, seq, hash: hashOf(entry, seq, last?.hash ?? beforeFirst) };
}

/**
 * The first `seq` at which a section of the log, in rising order, differs from the written one: changed,
 * missing or in a wrong position. Undefined = nothing was tampered with.
 * @param before the record just before the section; absent = it begins with the first one.
 */
export function brokenAt(
  records: readonly AuditRecord[],
  before?: AuditRecord,
): number | undefined {
  let last = before;
  for (const record of records) {
    const { seq, hash: found, ...entry } = record;
    const expected = chained(entry, last);
    if (seq !== expected.seq || found !== expected.hash) return expected.seq;
    last = record;
  }
  return undefined;
}

function hashOf(entry: AuditEntry, seq: number, before: string): string {
  const { at, actor, ip, action, subject, before: was, after: is } = entry;
  const text = JSON.stringify([
    before,
    seq,
    at,
    actor,
    ip ?? null,
    action,
    subject,
    was ?? null,
    is ?? null,
  ]);
  return hash('sha256', text);
}
