/** Keys, policies, settings and the audit log in SQLite. */
import type { SharedPolicy } from '../../core/policy.ts';
import {
  chained,
  keysPortion,
  type AuditEntry,
  type AuditQuery,
  type AuditRecord,
  type KeyChanges,
  type KeyRecord,
  type KeyUse,
  type NotedChange,
} from '../records.ts';
import { number, text, valuesOf } from '../columns.ts';
import {
  auditTable,
  keyTable,
  readAuditRow,
  readKeyRows,
  policyColumn,
  readPolicyRow,
} from '../key-rows.ts';
import type { Synchronous } from '../remote.ts';
import type { AuditStore, KeyStore, PolicyStore, SettingStore } from '../store.ts';
import type { Statements } from './database.ts';
import {
  auditSelection,
  auditStatements,
  keyStatements,
  policyStatements,
  settingStatements,
} from '../statements.ts';
import { StoreError } from '../store-error.ts';

const touchKey = `UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?`;
const touchPrevious = `UPDATE keys
  SET previous_used_at = max(coalesce(previous_used_at, 0), ?) WHERE id = ?`;

export class SqliteKeys implements Synchronous<KeyStore> {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  list(): readonly KeyRecord[] {
    return readKeyRows(this.#sql.of('SELECT * FROM keys ORDER BY created_at, id').all());
  }

  add(record: KeyRecord): void {
    this.#sql.write(() => {
      if (this.#has(record.id)) {
        throw new StoreError('failed', `There is a key with the id ${record.id}.`);
      }
      this.#sql.of(keyStatements.add).run(record.id, ...valuesOf(keyTable, record));
    });
  }

  replace(record: KeyRecord): boolean {
    const replace = this.#sql.of(keyStatements.replace);
    const done = this.#sql.write(() => replace.run(record.id, ...valuesOf(keyTable, record)));
    return Number(done.changes) > 0;
  }

  revoke(id: string, at: number): boolean {
    return this.#sql.write(() => {
      const done = this.#sql.of(keyStatements.revoke).run(id, at);
      return Number(done.changes) > 0 || this.#has(id);
    });
  }

  touch(uses: readonly KeyUse[]): void {
    this.#sql.write(() => {
      for (const { id, at, previous } of uses) {
        this.#sql.of(previous ? touchPrevious : touchKey).run(at, id);
      }
    });
  }

  since(stamp: number, most = keysPortion): KeyChanges {
    const rows = this.#sql.of(keyStatements.since).all(stamp, most);
    const last = rows.at(-1);
    return {
      records: readKeyRows(rows),
      stamp: last === undefined ? stamp : number(last, 'stamp'),
      more: rows.length === most,
    };
  }

  #has(id: string): boolean {
    return this.#sql.of(keyStatements.has).get(id) !== undefined;
  }
}

export class SqlitePolicies implements Synchronous<PolicyStore> {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  list(): readonly SharedPolicy[] {
    return this.#sql.of(policyStatements.list).all().map(readPolicyRow);
  }

  put(policy: SharedPolicy): void {
    const { kind, name } = policy;
    this.#sql.write(() => this.#sql.of(policyStatements.put).run(kind, name, policyColumn(policy)));
  }

  delete(kind: SharedPolicy['kind'], name: string): boolean {
    const removed = this.#sql.write(() => this.#sql.of(policyStatements.delete).run(kind, name));
    return Number(removed.changes) > 0;
  }
}

export class SqliteSettings implements Synchronous<SettingStore> {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  read(name: string): string | undefined {
    const row = this.#sql.of(settingStatements.read).get(name);
    return row === undefined ? undefined : text(row, 'value');
  }

  write(name: string, value: string): void {
    this.#sql.write(() => this.#sql.of(settingStatements.write).run(name, value));
  }
}

export class SqliteAudit implements Synchronous<AuditStore> {
  readonly #sql: Statements;
  readonly #keys: SqliteKeys;
  readonly #policies: SqlitePolicies;

  constructor(sql: Statements, keys: SqliteKeys, policies: SqlitePolicies) {
    this.#sql = sql;
    this.#keys = keys;
    this.#policies = policies;
  }

  append(entry: AuditEntry): AuditRecord {
    return this.#sql.write(() => {
      const last = this.#sql.of(auditStatements.last).get();
      const record = chained(entry, last === undefined ? undefined : readAuditRow(last));
      this.#sql.of(auditStatements.append).run(...valuesOf(auditTable, record));
      return record;
    });
  }

  change(change: NotedChange, entry: AuditEntry): AuditRecord | undefined {
    return this.#sql.write(() => (this.#apply(change) ? this.append(entry) : undefined));
  }

  newest(before?: number): AuditRecord | undefined {
    return this.list({ limit: 1, ...(before === undefined ? {} : { before }) })[0];
  }

  list(query: AuditQuery): readonly AuditRecord[] {
    const { wanted, values } = auditSelection(query);
    return this.#sql
      .of(wanted)
      .all(...values)
      .map(readAuditRow);
  }

  #apply(change: NotedChange): boolean {
    switch (change.op) {
      case 'addKey':
        this.#keys.add(change.record);
        return true;
      case 'replaceKey':
        return this.#keys.replace(change.record);
      case 'revokeKey':
        return this.#keys.revoke(change.id, change.at);
      case 'putPolicy':
        this.#policies.put(change.policy);
        return true;
      case 'deletePolicy':
        return this.#policies.delete(change.kind, change.name);
    }
  }
}
