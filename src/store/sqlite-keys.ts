/** Keys, policies, settings and the audit log on SQLite. SQL stands here as constants (S21). */
import type { SharedPolicy } from '../core/policy.ts';
import { chained } from './audit-chain.ts';
import {
  keysPortion,
  type AuditEntry,
  type AuditQuery,
  type AuditRecord,
  type KeyChanges,
  type KeyRecord,
  type KeyUse,
  type NotedChange,
} from './records.ts';
import { insertInto, number, text } from './sqlite-columns.ts';
import {
  auditColumns,
  auditValues,
  keyColumns,
  keyValues,
  readAuditRow,
  readKeyRows,
  readPolicyRow,
} from './sqlite-key-rows.ts';
import type { Statements } from './sqlite-statements.ts';
import { StoreError } from './store-error.ts';

const insertKey = insertInto('keys', ['stamp', 'id', ...keyColumns]);
const updateKey = `UPDATE keys SET stamp = ?, ${keyColumns.map((name) => `${name} = ?`).join(', ')}
  WHERE id = ? AND version = ?`;
const keysSince = 'SELECT * FROM keys WHERE stamp > ? ORDER BY stamp LIMIT ?';
const nextStamp = 'SELECT coalesce(max(stamp), 0) + 1 AS stamp FROM keys';
const revokeKey = `UPDATE keys SET stamp = ?, revoked_at = ?, version = version + 1
  WHERE id = ? AND revoked_at IS NULL`;
const touchKey = `UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?`;
const touchPrevious = `UPDATE keys
  SET previous_used_at = max(coalesce(previous_used_at, 0), ?) WHERE id = ?`;
const putPolicy = `INSERT INTO policies (kind, name, policy) VALUES (?, ?, ?)
  ON CONFLICT (kind, name) DO UPDATE SET policy = excluded.policy`;
const writeSetting = `INSERT INTO settings (name, value) VALUES (?, ?)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
const listAudit = `SELECT * FROM audit WHERE seq < $before ORDER BY seq DESC LIMIT $limit`;
const listAuditOf = `SELECT * FROM audit WHERE subject = $subject AND seq < $before
  ORDER BY seq DESC LIMIT $limit`;

export class SqliteKeys {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  list(): readonly KeyRecord[] {
    return readKeyRows(this.#sql.of('SELECT * FROM keys ORDER BY created_at, id').all());
  }

  add(record: KeyRecord): void {
    this.#sql.write(() => this.#add(record));
  }

  replace(record: KeyRecord): boolean {
    return this.#sql.write(() => this.#replace(record));
  }

  revoke(id: string, at: number): boolean {
    return this.#sql.write(() => this.#revoke(id, at));
  }

  touch(uses: readonly KeyUse[]): void {
    this.#sql.write(() => {
      for (const { id, at, previous } of uses) {
        this.#sql.of(previous ? touchPrevious : touchKey).run(at, id);
      }
    });
  }

  since(stamp: number, most = keysPortion): KeyChanges {
    const rows = this.#sql.of(keysSince).all(stamp, most);
    const last = rows.at(-1);
    return {
      records: readKeyRows(rows),
      stamp: last === undefined ? stamp : number(last, 'stamp'),
      more: rows.length === most,
    };
  }

  listPolicies(): readonly SharedPolicy[] {
    return this.#sql.of('SELECT * FROM policies ORDER BY kind, name').all().map(readPolicyRow);
  }

  putPolicy({ kind, name, limits, budgets }: SharedPolicy): void {
    this.#sql.of(putPolicy).run(kind, name, JSON.stringify({ limits, budgets }));
  }

  deletePolicy(kind: SharedPolicy['kind'], name: string): boolean {
    const remove = 'DELETE FROM policies WHERE kind = ? AND name = ?';
    return Number(this.#sql.of(remove).run(kind, name).changes) > 0;
  }

  appendAudit(entry: AuditEntry): AuditRecord {
    return this.#sql.write(() => this.#append(entry));
  }

  changeNoted(change: NotedChange, entry: AuditEntry): AuditRecord | undefined {
    return this.#sql.write(() => (this.#apply(change) ? this.#append(entry) : undefined));
  }

  listAudit(query: AuditQuery): readonly AuditRecord[] {
    const { limit, subject, before = Number.MAX_SAFE_INTEGER } = query;
    const rows =
      subject === undefined
        ? this.#sql.of(listAudit).all({ limit, before })
        : this.#sql.of(listAuditOf).all({ limit, before, subject });
    return rows.map(readAuditRow);
  }

  readSetting(name: string): string | undefined {
    const row = this.#sql.of('SELECT value FROM settings WHERE name = ?').get(name);
    return row === undefined ? undefined : text(row, 'value');
  }

  writeSetting(name: string, value: string): void {
    this.#sql.of(writeSetting).run(name, value);
  }

  #apply(change: NotedChange): boolean {
    switch (change.op) {
      case 'addKey':
        this.#add(change.record);
        return true;
      case 'replaceKey':
        return this.#replace(change.record);
      case 'revokeKey':
        return this.#revoke(change.id, change.at);
      case 'putPolicy':
        this.putPolicy(change.policy);
        return true;
      case 'deletePolicy':
        return this.deletePolicy(change.kind, change.name);
    }
  }

  /** @throws StoreError `failed` when its id is taken, as every store does */
  #add(record: KeyRecord): void {
    if (this.#sql.of('SELECT 1 FROM keys WHERE id = ?').get(record.id) !== undefined) {
      throw new StoreError('failed', `There is a key with the id ${record.id}.`);
    }
    this.#sql.of(insertKey).run(this.#nextStamp(), record.id, ...keyValues(record));
  }

  #replace(record: KeyRecord): boolean {
    const update = this.#sql.of(updateKey);
    const values = keyValues(record);
    const done = update.run(this.#nextStamp(), ...values, record.id, record.version - 1);
    return Number(done.changes) > 0;
  }

  #revoke(id: string, at: number): boolean {
    const done = this.#sql.of(revokeKey).run(this.#nextStamp(), at, id);
    if (Number(done.changes) > 0) return true;
    return this.#sql.of('SELECT 1 FROM keys WHERE id = ?').get(id) !== undefined;
  }

  #append(entry: AuditEntry): AuditRecord {
    const last = this.#sql.of('SELECT * FROM audit ORDER BY seq DESC LIMIT 1').get();
    const record = chained(entry, last === undefined ? undefined : readAuditRow(last));
    this.#sql.of(insertInto('audit', auditColumns)).run(...auditValues(record));
    return record;
  }

  #nextStamp(): number {
    const row = this.#sql.of(nextStamp).get();
    return row === undefined ? 1 : number(row, 'stamp');
  }
}
