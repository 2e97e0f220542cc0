/**
 * The store on PostgreSQL: one book for several gateways. While the server is away everything is refused
 * at once with `unavailable`, and goes on when it is back, without a restart (L1, F88).
 */
import type { SharedPolicy } from '../core/policy.ts';
import type {
  CallPage,
  CallQuery,
  CallRow,
  OpenCall,
  Retention,
  Spent,
  UsageQuery,
  UsageRow,
} from './calls.ts';
import { PostgresKeys } from './postgres-keys.ts';
import { PostgresLedger } from './postgres-ledger.ts';
import { PostgresQueries } from './postgres-queries.ts';
import {
  makePostgresServer,
  type PostgresServer,
  type PostgresServerOptions,
} from './postgres-server.ts';
import type {
  AuditEntry,
  AuditQuery,
  AuditRecord,
  KeyChanges,
  KeyRecord,
  KeyUse,
} from './records.ts';
import { StoreError } from './store-error.ts';
import type { Store } from './store.ts';

/**
 * Opens the book, and makes its tables at the first time. A server that is away now is no failure.
 * @throws StoreError `newer_schema`, `failed` (wrong password, no right to make tables, …).
 */
export async function openPostgresStore(options: PostgresServerOptions): Promise<PostgresStore> {
  const server = await makePostgresServer(options);
  try {
    await server.begin();
    return new PostgresStore(server);
  } catch (error) {
    await server.close();
    throw error;
  }
}

export class PostgresStore implements Store {
  /** Whether it is there; connections for others that keep something in the same database. */
  readonly server: PostgresServer;
  readonly #keys: PostgresKeys;
  readonly #ledger: PostgresLedger;
  readonly #queries: PostgresQueries;

  constructor(server: PostgresServer) {
    this.server = server;
    this.#keys = new PostgresKeys(server);
    this.#ledger = new PostgresLedger(server);
    this.#queries = new PostgresQueries(server);
  }

  listKeys(): Promise<readonly KeyRecord[]> {
    return this.#keys.list();
  }

  addKey(record: KeyRecord): Promise<void> {
    return this.#keys.add(record);
  }

  replaceKey(record: KeyRecord): Promise<boolean> {
    return this.#keys.replace(record);
  }

  revokeKey(id: string, at: number): Promise<boolean> {
    return this.#keys.revoke(id, at);
  }

  touchKeys(uses: readonly KeyUse[]): Promise<void> {
    return this.#keys.touch(uses);
  }

  keysSince(stamp: number): Promise<KeyChanges> {
    return this.#keys.since(stamp);
  }

  listPolicies(): Promise<readonly SharedPolicy[]> {
    return this.#keys.policies();
  }

  putPolicy(policy: SharedPolicy): Promise<void> {
    return this.#keys.putPolicy(policy);
  }

  deletePolicy(kind: SharedPolicy['kind'], name: string): Promise<boolean> {
    return this.#keys.deletePolicy(kind, name);
  }

  appendAudit(entry: AuditEntry): Promise<AuditRecord> {
    return this.#keys.appendAudit(entry);
  }

  listAudit(query: AuditQuery): Promise<readonly AuditRecord[]> {
    return this.#keys.listAudit(query);
  }

  readSetting(name: string): Promise<string | undefined> {
    return this.#keys.readSetting(name);
  }

  writeSetting(name: string, value: string): Promise<void> {
    return this.#keys.writeSetting(name, value);
  }

  recordCalls(rows: readonly CallRow[]): Promise<void> {
    return this.#ledger.record(rows);
  }

  openCalls(calls: readonly OpenCall[]): Promise<void> {
    return this.#ledger.open(calls);
  }

  settleOrphans(seenBefore: number): Promise<readonly CallRow[]> {
    return this.#ledger.settleOrphans(seenBefore);
  }

  spent(endingAfter: number): Promise<readonly Spent[]> {
    return this.#ledger.spent(endingAfter);
  }

  usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    return this.#queries.usage(query);
  }

  listCalls(query: CallQuery): Promise<CallPage> {
    return this.#queries.list(query);
  }

  findCall(id: string): Promise<CallRow | undefined> {
    return this.#queries.find(id);
  }

  prune(retention: Retention, most: number): Promise<number> {
    return this.#ledger.prune(retention, most);
  }

  async backup(): Promise<void> {
    throw new StoreError(
      'failed',
      'The book is in PostgreSQL: back it up with its own tools (pg_dump, base backups).',
    );
  }

  close(): Promise<void> {
    return this.server.close();
  }
}
