/** Statements that both engines run as they are: constants with parameters (S21). */
import { auditColumns, keyColumns } from './key-rows.ts';
import type { AuditQuery } from './records.ts';
import { totalKinds } from './roll-up.ts';

/** `$1` is the first parameter, in either engine. PostgreSQL prepares a named statement once in each connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export function statement(name: string, text: string): Statement {
  return { name, text };
}

/** `$2, $3, …` */
export function parameters(count: number, from = 1): string {
  return Array.from({ length: count }, (_, i) => `$${i + from}`).join(', ');
}

/** Counts the changes of all keys (S6). */
const nextStamp = '(SELECT coalesce(max(stamp), 0) + 1 FROM keys)';

export const keyStatements = {
  has: statement('has_key', 'SELECT version FROM keys WHERE id = $1'),
  /** The id, then the columns. */
  add: statement(
    'add_key',
    `INSERT INTO keys (id, ${keyColumns.join(', ')}, stamp)
     VALUES (${parameters(keyColumns.length + 1)}, ${nextStamp})`,
  ),
  /** The same; `version` is the last column. */
  replace: statement(
    'replace_key',
    `UPDATE keys SET (${keyColumns.join(', ')}) = (${parameters(keyColumns.length, 2)}),
     stamp = ${nextStamp} WHERE id = $1 AND version = $${keyColumns.length + 1} - 1`,
  ),
  revoke: statement(
    'revoke_key',
    `UPDATE keys SET revoked_at = $2, version = version + 1, stamp = ${nextStamp}
     WHERE id = $1 AND revoked_at IS NULL`,
  ),
  since: statement('keys_since', 'SELECT * FROM keys WHERE stamp > $1 ORDER BY stamp LIMIT $2'),
} as const;

export const policyStatements = {
  list: statement('list_policies', 'SELECT kind, name, policy FROM policies ORDER BY kind, name'),
  put: statement(
    'put_policy',
    `INSERT INTO policies (kind, name, policy) VALUES ($1, $2, $3)
     ON CONFLICT (kind, name) DO UPDATE SET policy = excluded.policy`,
  ),
  delete: statement('delete_policy', 'DELETE FROM policies WHERE kind = $1 AND name = $2'),
} as const;

export const auditStatements = {
  last: statement('last_audit', 'SELECT * FROM audit ORDER BY seq DESC LIMIT 1'),
  append: statement(
    'append_audit',
    `INSERT INTO audit (${auditColumns.join(', ')}) VALUES (${parameters(auditColumns.length)})`,
  ),
  list: statement('list_audit', 'SELECT * FROM audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2'),
  listOf: statement(
    'list_audit_of',
    'SELECT * FROM audit WHERE subject = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2',
  ),
  /** An empty text fits all. Reads from the newest entry on, without an index: changes are few. */
  find: statement(
    'find_audit',
    `SELECT * FROM audit
     WHERE seq < $1 AND ($3 = '' OR subject = $3) AND ($4 = '' OR actor = $4)
       AND ($5 = '' OR action = $5 OR substr(action, 1, length($5) + 1) = $5 || '.')
       AND at >= $6 AND at < $7
     ORDER BY seq DESC LIMIT $2`,
  ),
} as const;

/** The statement of a query of the audit log, and its parameters. */
export function auditSelection({
  limit,
  before = Number.MAX_SAFE_INTEGER,
  subject,
  actor,
  action,
  since,
  until,
}: AuditQuery): { readonly wanted: Statement; readonly values: (string | number)[] } {
  const rest = [actor, action, since, until];
  if (rest.every((each) => each === undefined)) {
    return subject === undefined
      ? { wanted: auditStatements.list, values: [before, limit] }
      : { wanted: auditStatements.listOf, values: [before, limit, subject] };
  }
  const texts = [subject ?? '', actor ?? '', action ?? ''];
  const times = [since ?? 0, until ?? Number.MAX_SAFE_INTEGER];
  return { wanted: auditStatements.find, values: [before, limit, ...texts, ...times] };
}

export const settingStatements = {
  read: statement('read_setting', 'SELECT value FROM settings WHERE name = $1'),
  write: statement(
    'write_setting',
    `INSERT INTO settings (name, value) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  ),
  /** A number that only rises. */
  raise: statement(
    'raise_setting',
    `INSERT INTO settings (name, value) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value
     WHERE CAST(excluded.value AS bigint) > CAST(settings.value AS bigint)`,
  ),
} as const;

export const callStatements = {
  find: statement(
    'find_call',
    `SELECT calls.*, prices.price FROM calls LEFT JOIN prices ON prices.id = calls.price_id
     WHERE calls.id = $1`,
  ),
  close: statement('close_call', 'DELETE FROM open_calls WHERE id = $1'),
  pruneHours: statement(
    'prune_hours',
    `DELETE FROM usage_hours WHERE (at, group_id) IN
     (SELECT at, group_id FROM usage_hours WHERE at < $1 LIMIT $2)`,
  ),
  pruneTotals: statement(
    'prune_totals',
    `DELETE FROM total_hours WHERE (kind, at, name) IN
     (SELECT kind, at, name FROM total_hours
      WHERE kind IN (${totalKinds.map((kind) => `'${kind}'`).join(', ')}) AND at < $1 LIMIT $2)`,
  ),
  pruneSpending: statement(
    'prune_spending',
    `DELETE FROM spending WHERE (counter, period) IN
     (SELECT counter, period FROM spending WHERE ends_at <= $1 LIMIT $2)`,
  ),
} as const;

/** What goes with the hours, in this order. */
export const prunedByHour = [
  callStatements.pruneHours,
  callStatements.pruneTotals,
  callStatements.pruneSpending,
] as const;
