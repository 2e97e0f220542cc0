/**
 * Keys, policies, settings and the audit log in PostgreSQL. The other gateways are notified of a change of keys or
 * policies.
 */
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
import { type Sql, isDuplicate, rowsText } from './pool.ts';
import type { PostgresServer } from './server.ts';
import { number, text, valuesOf, compareText } from '../columns.ts';
import {
  auditTable,
  keyTable,
  readAuditRow,
  readKeyRows,
  policyColumn,
  readPolicyRow,
} from '../key-rows.ts';
import {
  auditSelection,
  auditStatements,
  keyStatements,
  policyStatements,
  settingStatements,
  type Statement,
} from '../statements.ts';
import { StoreError } from '../store-error.ts';
import type { AuditStore, KeyStore, PolicyStore, SettingStore } from '../store.ts';

/** The notification channels: `keys` or `policies` changed. */
export const changesChannel = 'model_gateway';

/** Any number; writers of keys take turns, so that stamps rise in the order of the commits (S6). */
const keysTurn = 5_563_204_120;
const auditTurn = 5_563_204_121;

const takeTurn: Statement = { name: 'take_turn', text: 'SELECT pg_advisory_xact_lock($1)' };
const tell: Statement = { name: 'tell', text: 'SELECT pg_notify($1, $2)' };
// Sorted: two instances that note the same keys lock them in the same order.
const touchKeys: Statement = {
  name: 'touch_keys',
  text: `UPDATE keys SET last_used_at = greatest(last_used_at, used.last),
    previous_used_at = greatest(previous_used_at, used.previous)
    FROM (SELECT k.id, u.last, u.previous FROM keys k JOIN (
      SELECT r->>0 AS id, max((r->>1)::bigint) FILTER (WHERE (r->>2)::boolean IS FALSE) AS last,
        max((r->>1)::bigint) FILTER (WHERE (r->>2)::boolean) AS previous
      FROM jsonb_array_elements($1::jsonb) AS r GROUP BY 1) u ON u.id = k.id
      ORDER BY k.id FOR UPDATE OF k) used
    WHERE keys.id = used.id`,
};
export class PostgresKeys implements KeyStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async list(): Promise<readonly KeyRecord[]> {
    const records: KeyRecord[] = [];
    for (let from = 0; ;) {
      const { records: some, stamp, more } = await this.since(from);
      for (const record of some) records.push(record);
      if (!more) return inOrder(records);
      from = stamp;
    }
  }

  async add(record: KeyRecord): Promise<void> {
    await makeChange(this.#server, { op: 'addKey', record });
  }

  replace(record: KeyRecord): Promise<boolean> {
    return makeChange(this.#server, { op: 'replaceKey', record });
  }

  revoke(id: string, at: number): Promise<boolean> {
    return makeChange(this.#server, { op: 'revokeKey', id, at });
  }

  async touch(uses: readonly KeyUse[]): Promise<void> {
    if (uses.length === 0) return;
    const rows = rowsText(uses.map(({ id, at, previous }) => [id, Math.round(at), previous]));
    await this.#server.run(touchKeys, [rows]);
  }

  async since(stamp: number, most = keysPortion): Promise<KeyChanges> {
    const { rows } = await this.#server.run(keyStatements.since, [stamp, most]);
    const last = rows.at(-1);
    return {
      records: readKeyRows(rows),
      stamp: last === undefined ? stamp : number(last, 'stamp'),
      more: rows.length === most,
    };
  }
}

export class PostgresPolicies implements PolicyStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async list(): Promise<readonly SharedPolicy[]> {
    return (await this.#server.run(policyStatements.list)).rows.map(readPolicyRow);
  }

  async put(policy: SharedPolicy): Promise<void> {
    await makeChange(this.#server, { op: 'putPolicy', policy });
  }

  delete(kind: SharedPolicy['kind'], name: string): Promise<boolean> {
    return makeChange(this.#server, { op: 'deletePolicy', kind, name });
  }
}

export class PostgresAudit implements AuditStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  append(entry: AuditEntry): Promise<AuditRecord> {
    return this.#server.transaction((sql) => append(sql, entry));
  }

  change(change: NotedChange, entry: AuditEntry): Promise<AuditRecord | undefined> {
    return inChange(this.#server, change, async (sql) =>
      (await apply(sql, change)) ? append(sql, entry) : undefined,
    );
  }

  async newest(before?: number): Promise<AuditRecord | undefined> {
    return (await this.list({ limit: 1, ...(before === undefined ? {} : { before }) }))[0];
  }

  async list(query: AuditQuery): Promise<readonly AuditRecord[]> {
    const { wanted, values } = auditSelection(query);
    const { admin } = this.#server;
    const { rows } = await this.#server.use(() => admin.run(wanted, values));
    return rows.map(readAuditRow);
  }
}

export class PostgresSettings implements SettingStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async read(name: string): Promise<string | undefined> {
    const [row] = (await this.#server.run(settingStatements.read, [name])).rows;
    return row === undefined ? undefined : text(row, 'value');
  }

  async write(name: string, value: string): Promise<void> {
    await this.#server.run(settingStatements.write, [name, value]);
  }
}

function makeChange(server: PostgresServer, change: NotedChange): Promise<boolean> {
  return inChange(server, change, (sql) => apply(sql, change));
}

/** A change that notifies the other gateways with its commit. */
async function inChange<T>(
  server: PostgresServer,
  change: NotedChange,
  work: (sql: Sql) => Promise<T>,
): Promise<T> {
  const isPolicy = change.op === 'putPolicy' || change.op === 'deletePolicy';
  try {
    return await server.transaction(async (sql) => {
      if (!isPolicy) await sql.run(takeTurn, [keysTurn]);
      const result = await work(sql);
      await sql.run(tell, [changesChannel, isPolicy ? 'policies' : 'keys']);
      return result;
    });
  } catch (error) {
    if (change.op !== 'addKey' || !isDuplicate(error)) throw error;
    throw new StoreError('failed', `There is a key with the id ${change.record.id}.`, error);
  }
}

/** False when the change did not fit. */
async function apply(sql: Sql, change: NotedChange): Promise<boolean> {
  switch (change.op) {
    case 'addKey':
    case 'replaceKey': {
      const { record } = change;
      const statement = change.op === 'addKey' ? keyStatements.add : keyStatements.replace;
      return (await sql.run(statement, [record.id, ...valuesOf(keyTable, record)])).count > 0;
    }
    case 'revokeKey': {
      const { count } = await sql.run(keyStatements.revoke, [change.id, change.at]);
      return count > 0 || (await sql.run(keyStatements.has, [change.id])).count > 0;
    }
    case 'putPolicy': {
      const { policy } = change;
      await sql.run(policyStatements.put, [policy.kind, policy.name, policyColumn(policy)]);
      return true;
    }
    case 'deletePolicy':
      return (await sql.run(policyStatements.delete, [change.kind, change.name])).count > 0;
  }
}

/** Instances append one after the other, since a chain has one end. */
async function append(sql: Sql, entry: AuditEntry): Promise<AuditRecord> {
  await sql.run(takeTurn, [auditTurn]);
  const [last] = (await sql.run(auditStatements.last)).rows;
  const record = chained(entry, last === undefined ? undefined : readAuditRow(last));
  await sql.run(auditStatements.append, valuesOf(auditTable, record));
  return record;
}

/** A key that changes while its portion is read comes twice: the later one holds. */
function inOrder(records: readonly KeyRecord[]): readonly KeyRecord[] {
  const latest = new Map(records.map((record) => [record.id, record]));
  return [...latest.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}
