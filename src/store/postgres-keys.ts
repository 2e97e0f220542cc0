/** Keys, policies, settings and the audit log in PostgreSQL. */
import type { SharedPolicy } from '../core/policy.ts';
import { chained } from './audit-chain.ts';
import { isDuplicate } from './postgres-failure.ts';
import type { Row, Sql, SqlValue, Statement } from './postgres-pool.ts';
import { rowsText } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
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
import { number, text } from './sqlite-columns.ts';
import {
  auditColumns,
  auditValues,
  keyColumns,
  keyValues,
  readAuditRow,
  readKeyRows,
  readPolicyRow,
} from './sqlite-key-rows.ts';
import { StoreError } from './store-error.ts';
import { compareText } from './text-order.ts';

/** What listeners are told on: `keys` or `policies` changed. */
export const changesChannel = 'model_gateway';

/** Any number; writers of keys take turns, so that stamps rise in the order of the commits (S6). */
const keysTurn = 5_563_204_120;
const auditTurn = 5_563_204_121;

const parameters = (count: number, from = 1): string =>
  Array.from({ length: count }, (_, i) => `$${i + from}`).join(', ');

const takeTurn: Statement = { name: 'take_turn', text: 'SELECT pg_advisory_xact_lock($1)' };
const tell: Statement = { name: 'tell', text: 'SELECT pg_notify($1, $2)' };
const nextStamp = '(SELECT coalesce(max(stamp), 0) + 1 FROM keys)';

const addKey: Statement = {
  name: 'add_key',
  text: `INSERT INTO keys (id, ${keyColumns.join(', ')}, stamp)
    VALUES (${parameters(keyColumns.length + 1)}, ${nextStamp})`,
};
const replaceKey: Statement = {
  name: 'replace_key',
  text: `UPDATE keys SET (${keyColumns.join(', ')}) = (${parameters(keyColumns.length, 2)}),
    stamp = ${nextStamp} WHERE id = $1 AND version = $${keyColumns.length + 1} - 1`,
};
const revokeKey: Statement = {
  name: 'revoke_key',
  text: `UPDATE keys SET revoked_at = $2, version = version + 1, stamp = ${nextStamp}
    WHERE id = $1 AND revoked_at IS NULL`,
};
const hasKey: Statement = { name: 'has_key', text: 'SELECT version FROM keys WHERE id = $1' };
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
const keysSince: Statement = {
  name: 'keys_since',
  text: 'SELECT * FROM keys WHERE stamp > $1 ORDER BY stamp LIMIT $2',
};

const listPolicies: Statement = {
  name: 'list_policies',
  text: 'SELECT kind, name, policy FROM policies ORDER BY kind, name',
};
const putPolicy: Statement = {
  name: 'put_policy',
  text: `INSERT INTO policies (kind, name, policy) VALUES ($1, $2, $3)
    ON CONFLICT (kind, name) DO UPDATE SET policy = excluded.policy`,
};
const deletePolicy: Statement = {
  name: 'delete_policy',
  text: 'DELETE FROM policies WHERE kind = $1 AND name = $2',
};

const lastAudit: Statement = {
  name: 'last_audit',
  text: 'SELECT * FROM audit ORDER BY seq DESC LIMIT 1',
};
const appendAudit: Statement = {
  name: 'append_audit',
  text: `INSERT INTO audit (${auditColumns.join(', ')}) VALUES (${parameters(auditColumns.length)})`,
};
const listAudit: Statement = {
  name: 'list_audit',
  text: 'SELECT * FROM audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2',
};
const listAuditOf: Statement = {
  name: 'list_audit_of',
  text: 'SELECT * FROM audit WHERE subject = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2',
};

const readSetting: Statement = {
  name: 'read_setting',
  text: 'SELECT value FROM settings WHERE name = $1',
};
const writeSetting: Statement = {
  name: 'write_setting',
  text: `INSERT INTO settings (name, value) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
};

export class PostgresKeys {
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
    await this.#changeOne({ op: 'addKey', record });
  }

  async replace(record: KeyRecord): Promise<boolean> {
    return this.#changeOne({ op: 'replaceKey', record });
  }

  async revoke(id: string, at: number): Promise<boolean> {
    return this.#changeOne({ op: 'revokeKey', id, at });
  }

  async touch(uses: readonly KeyUse[]): Promise<void> {
    if (uses.length === 0) return;
    const rows = rowsText(uses.map(({ id, at, previous }) => [id, Math.round(at), previous]));
    await this.#server.use(() => this.#server.data.run(touchKeys, [rows]));
  }

  async since(stamp: number, most = keysPortion): Promise<KeyChanges> {
    const rows = await this.#read(keysSince, [stamp, most]);
    const last = rows.at(-1);
    return {
      records: readKeyRows(rows),
      stamp: last === undefined ? stamp : number(last, 'stamp'),
      more: rows.length === most,
    };
  }

  async policies(): Promise<readonly SharedPolicy[]> {
    return (await this.#read(listPolicies)).map(readPolicyRow);
  }

  async putPolicy(policy: SharedPolicy): Promise<void> {
    await this.#changeOne({ op: 'putPolicy', policy });
  }

  async deletePolicy(kind: SharedPolicy['kind'], name: string): Promise<boolean> {
    return this.#changeOne({ op: 'deletePolicy', kind, name });
  }

  async appendAudit(entry: AuditEntry): Promise<AuditRecord> {
    return this.#server.use(() => this.#server.data.transaction((sql) => append(sql, entry)));
  }

  async changeNoted(change: NotedChange, entry: AuditEntry): Promise<AuditRecord | undefined> {
    return this.#change(change, async (sql) =>
      (await apply(sql, change)) ? append(sql, entry) : undefined,
    );
  }

  async listAudit({ limit, before, subject }: AuditQuery): Promise<readonly AuditRecord[]> {
    const values: SqlValue[] = [before ?? Number.MAX_SAFE_INTEGER, limit];
    const { admin } = this.#server;
    const { rows } = await this.#server.use(() =>
      subject === undefined
        ? admin.run(listAudit, values)
        : admin.run(listAuditOf, [...values, subject]),
    );
    return rows.map(readAuditRow);
  }

  async readSetting(name: string): Promise<string | undefined> {
    const [row] = await this.#read(readSetting, [name]);
    return row === undefined ? undefined : text(row, 'value');
  }

  async writeSetting(name: string, value: string): Promise<void> {
    await this.#server.use(() => this.#server.data.run(writeSetting, [name, value]));
  }

  async #read(statement: Statement, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return (await this.#server.use(() => this.#server.data.run(statement, values))).rows;
  }

  #changeOne(change: NotedChange): Promise<boolean> {
    return this.#change(change, (sql) => apply(sql, change));
  }

  /** A change that the other instances are told with its commit. */
  async #change<T>(change: NotedChange, work: (sql: Sql) => Promise<T>): Promise<T> {
    const isPolicy = change.op === 'putPolicy' || change.op === 'deletePolicy';
    try {
      return await this.#server.use(() =>
        this.#server.data.transaction(async (sql) => {
          if (!isPolicy) await sql.run(takeTurn, [keysTurn]);
          const result = await work(sql);
          await sql.run(tell, [changesChannel, isPolicy ? 'policies' : 'keys']);
          return result;
        }),
      );
    } catch (error) {
      if (change.op !== 'addKey' || !isDuplicate(error)) throw error;
      throw new StoreError('failed', `There is a key with the id ${change.record.id}.`, error);
    }
  }
}

/** False when the change did not fit. */
async function apply(sql: Sql, change: NotedChange): Promise<boolean> {
  switch (change.op) {
    case 'addKey':
    case 'replaceKey': {
      const { record } = change;
      const statement = change.op === 'addKey' ? addKey : replaceKey;
      return (await sql.run(statement, [record.id, ...keyValues(record)])).count > 0;
    }
    case 'revokeKey': {
      const { count } = await sql.run(revokeKey, [change.id, change.at]);
      return count > 0 || (await sql.run(hasKey, [change.id])).count > 0;
    }
    case 'putPolicy': {
      const { kind, name, limits, budgets } = change.policy;
      await sql.run(putPolicy, [kind, name, JSON.stringify({ limits, budgets })]);
      return true;
    }
    case 'deletePolicy':
      return (await sql.run(deletePolicy, [change.kind, change.name])).count > 0;
  }
}

/** Instances take turns: a chain has one end. */
async function append(sql: Sql, entry: AuditEntry): Promise<AuditRecord> {
  await sql.run(takeTurn, [auditTurn]);
  const [last] = (await sql.run(lastAudit)).rows;
  const record = chained(entry, last === undefined ? undefined : readAuditRow(last));
  await sql.run(appendAudit, auditValues(record));
  return record;
}

/** A key that changes while its portion is read comes twice: the later one holds. */
function inOrder(records: readonly KeyRecord[]): readonly KeyRecord[] {
  const latest = new Map(records.map((record) => [record.id, record]));
  return [...latest.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}
