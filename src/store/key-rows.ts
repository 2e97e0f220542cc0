/** Keys, policies and the audit log as rows: one description of the columns for both engines, and the way back. */
import type { Policy, SharedPolicy } from '../core/policy.ts';
import {
  column,
  namesOf,
  number,
  optionalNumber,
  optionalText,
  present,
  required,
  text,
  readPolicy,
  readTexts,
  readNamedBy,
  readPrevious,
  type Column,
  type Columns,
} from './columns.ts';
import type { AuditRecord, KeyRecord } from './records.ts';

/**
 * Keys with equal texts get one value: reading a key takes 4 µs instead of 12, and it holds 240 bytes instead of 840
 * (100,000 keys of one policy; `node bench/keys.ts KEYS` measures a start with them).
 */
class SharedValues {
  readonly #texts = new Map<string, readonly string[]>();
  readonly #policies = new Map<string, Policy>();

  /** @throws StoreError `corrupt` */
  texts(stored: string): readonly string[] {
    return shared(this.#texts, stored, readTexts);
  }

  /** @throws StoreError `corrupt` */
  policy(stored: string): Policy {
    return shared(this.#policies, stored, readPolicy);
  }
}

function shared<T>(known: Map<string, T>, stored: string, read: (stored: string) => T): T {
  const found = known.get(stored);
  if (found !== undefined) return found;
  const value = read(stored);
  known.set(stored, value);
  return value;
}

/** All columns that a change may write. `id`, `stamp` and the times of use are separate. */
export const keyTable: readonly Column<KeyRecord>[] = [
  required('name', 'text', ({ name }) => name),
  required('digest', 'text', ({ digest }) => digest),
  required('peppered', 'integer', ({ peppered }) => (peppered === true ? 1 : 0)),
  required('previous', 'text', ({ previous }) => JSON.stringify(previous)),
  column('owner', 'text', ({ owner }) => owner ?? null),
  required('models', 'text', ({ models }) => JSON.stringify(models)),
  required('endpoints', 'text', ({ endpoints }) => JSON.stringify(endpoints)),
  required('cidrs', 'text', ({ cidrs }) => JSON.stringify(cidrs)),
  column('team', 'text', ({ team }) => team ?? null),
  required('tags', 'text', ({ tags }) => JSON.stringify(tags)),
  required('policy', 'text', ({ policy }) => JSON.stringify(policy)),
  required('shrink', 'integer', ({ shrink }) => (shrink ? 1 : 0)),
  required('strict', 'integer', ({ strict }) => (strict === true ? 1 : 0)),
  column('cache', 'text', ({ cache }) => cache ?? null),
  required('log_content', 'integer', ({ logContent }) => (logContent === true ? 1 : 0)),
  required('created_at', 'count', ({ createdAt }) => createdAt),
  column('expires_at', 'count', ({ expiresAt }) => expiresAt ?? null),
  column('revoked_at', 'count', ({ revokedAt }) => revokedAt ?? null),
  required('version', 'count', ({ version }) => version),
];

export const auditTable: readonly Column<AuditRecord>[] = [
  required('seq', 'count', ({ seq }) => seq),
  required('at', 'count', ({ at }) => at),
  required('actor', 'text', ({ actor }) => actor),
  column('ip', 'text', ({ ip }) => ip ?? null),
  required('action', 'text', ({ action }) => action),
  required('subject', 'name', ({ subject }) => subject),
  column('was', 'text', ({ before }) => before ?? null),
  column('became', 'text', ({ after }) => after ?? null),
  required('hash', 'text', ({ hash }) => hash),
];

export const keyColumns = namesOf(keyTable);
export const auditColumns = namesOf(auditTable);

export function readKeyRows(rows: readonly Columns[]): readonly KeyRecord[] {
  const shared = new SharedValues();
  return rows.map((row) => ({
    id: text(row, 'id'),
    name: text(row, 'name'),
    digest: text(row, 'digest'),
    ...(number(row, 'peppered') === 1 ? { peppered: true } : {}),
    previous: readPrevious(text(row, 'previous')),
    ...present('owner', optionalText(row, 'owner')),
    models: shared.texts(text(row, 'models')),
    endpoints: shared.texts(text(row, 'endpoints')),
    cidrs: shared.texts(text(row, 'cidrs')),
    ...present('team', optionalText(row, 'team')),
    tags: shared.texts(text(row, 'tags')),
    policy: shared.policy(text(row, 'policy')),
    shrink: number(row, 'shrink') === 1,
    ...(number(row, 'strict') === 1 ? { strict: true } : {}),
    ...(optionalText(row, 'cache') === 'auto' ? { cache: 'auto' } : {}),
    ...(number(row, 'log_content') === 1 ? { logContent: true } : {}),
    createdAt: number(row, 'created_at'),
    ...present('expiresAt', optionalNumber(row, 'expires_at')),
    ...present('revokedAt', optionalNumber(row, 'revoked_at')),
    ...present('lastUsedAt', optionalNumber(row, 'last_used_at')),
    ...present('previousUsedAt', optionalNumber(row, 'previous_used_at')),
    version: number(row, 'version'),
  }));
}

export function readPolicyRow(row: Columns): SharedPolicy {
  const kind = text(row, 'kind') === 'team' ? 'team' : 'tag';
  const policy = text(row, 'policy');
  return { kind, name: text(row, 'name'), ...readPolicy(policy), ...readNamedBy(policy) };
}

/** The members of a shared policy in its column. */
export function policyColumn({ limits, budgets, namedBy }: SharedPolicy): string {
  return JSON.stringify({ limits, budgets, ...(namedBy === undefined ? {} : { namedBy }) });
}

export function readAuditRow(row: Columns): AuditRecord {
  return {
    seq: number(row, 'seq'),
    at: number(row, 'at'),
    actor: text(row, 'actor'),
    ...present('ip', optionalText(row, 'ip')),
    action: text(row, 'action'),
    subject: text(row, 'subject'),
    ...present('before', optionalText(row, 'was')),
    ...present('after', optionalText(row, 'became')),
    hash: text(row, 'hash'),
  };
}
