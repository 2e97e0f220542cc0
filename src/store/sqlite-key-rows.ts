/** Keys, policies and the audit log as SQLite columns and back. */
import type { SharedPolicy } from '../core/policy.ts';
import { readPolicy, readPrevious } from './kept-json.ts';
import type { AuditRecord, KeyRecord } from './records.ts';
import { SharedValues } from './shared-values.ts';
import {
  number,
  optionalNumber,
  optionalText,
  present,
  text,
  type Columns,
  type Value,
} from './sqlite-columns.ts';

/** All that a change may write, in the order of `keyValues`. */
export const keyColumns = [
  'name',
  'digest',
  'peppered',
  'previous',
  'owner',
  'models',
  'endpoints',
  'cidrs',
  'team',
  'tags',
  'policy',
  'shrink',
  'strict',
  'log_content',
  'created_at',
  'expires_at',
  'revoked_at',
  'version',
] as const;

export function keyValues(record: KeyRecord): Value[] {
  return [
    record.name,
    record.digest,
    record.peppered === true ? 1 : 0,
    JSON.stringify(record.previous),
    record.owner ?? null,
    JSON.stringify(record.models),
    JSON.stringify(record.endpoints),
    JSON.stringify(record.cidrs),
    record.team ?? null,
    JSON.stringify(record.tags),
    JSON.stringify(record.policy),
    record.shrink ? 1 : 0,
    record.strict === true ? 1 : 0,
    record.logContent === true ? 1 : 0,
    record.createdAt,
    record.expiresAt ?? null,
    record.revokedAt ?? null,
    record.version,
  ];
}

export function readKeyRows(rows: readonly Columns[]): readonly KeyRecord[] {
  const shared = new SharedValues();
  return rows.map((row) => readKeyRow(row, shared));
}

function readKeyRow(row: Columns, shared: SharedValues): KeyRecord {
  return {
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
    ...(number(row, 'log_content') === 1 ? { logContent: true } : {}),
    createdAt: number(row, 'created_at'),
    ...present('expiresAt', optionalNumber(row, 'expires_at')),
    ...present('revokedAt', optionalNumber(row, 'revoked_at')),
    ...present('lastUsedAt', optionalNumber(row, 'last_used_at')),
    ...present('previousUsedAt', optionalNumber(row, 'previous_used_at')),
    version: number(row, 'version'),
  };
}

export function readPolicyRow(row: Columns): SharedPolicy {
  const kind = text(row, 'kind') === 'team' ? 'team' : 'tag';
  return { kind, name: text(row, 'name'), ...readPolicy(text(row, 'policy')) };
}

export const auditColumns = [
  'seq',
  'at',
  'actor',
  'ip',
  'action',
  'subject',
  'was',
  'became',
  'hash',
] as const;

export function auditValues(record: AuditRecord): Value[] {
  return [
    record.seq,
    record.at,
    record.actor,
    record.ip ?? null,
    record.action,
    record.subject,
    record.before ?? null,
    record.after ?? null,
    record.hash,
  ];
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
