/**
 * The store on one SQLite file. A sync of the disk takes up to 389 ms (F83), so the database lives in
 * a worker thread and this is only its front: writes and key look-ups go to one thread, the queries
 * of the admin pages to another that starts when the first one comes.
 */
import { dirname } from 'node:path';
import type { Log } from '../core/runtime.ts';
import { prepareDataDir } from './data-dir.ts';
import { callValues } from './sqlite-rows.ts';
import { SqliteThread } from './sqlite-thread.ts';
import { StoreError } from './store-error.ts';
import type { CallPage, CallRow, KeyRecord, Store, UsageQuery, UsageRow } from './store.ts';

export interface SqliteOptions {
  /** The database file; its directory is made where there is none. */
  readonly path: string;
  readonly log: Log;
}

/**
 * Opens or makes the database, files 0600 in a 0700 directory (S25).
 * @throws StoreError `corrupt` (F86), `newer_schema` (N2), `busy`, `full`, `failed`; the file is left
 * as it is.
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  prepareDataDir(dirname(options.path));
  const store = new SqliteStore(options.path);
  await store.open();
  options.log.debug('store_opened', { path: options.path });
  return store;
}

class SqliteStore implements Store {
  readonly #writer: SqliteThread;
  readonly #reader: SqliteThread;

  constructor(path: string) {
    this.#writer = new SqliteThread({ path, readOnly: false, mayCreate: true });
    this.#reader = new SqliteThread({ path, readOnly: true, mayCreate: false });
  }

  open(): Promise<void> {
    return this.#writer.open();
  }

  listKeys(): Promise<readonly KeyRecord[]> {
    return this.#writer.ask({ op: 'listKeys' });
  }

  addKey(record: KeyRecord): Promise<void> {
    return this.#writer.ask({ op: 'addKey', record });
  }

  revokeKey(id: string, at: number): Promise<boolean> {
    return this.#writer.ask({ op: 'revokeKey', id, at });
  }

  readSetting(name: string): Promise<string | undefined> {
    return this.#writer.ask({ op: 'readSetting', name });
  }

  writeSetting(name: string, value: string): Promise<void> {
    return this.#writer.ask({ op: 'writeSetting', name, value });
  }

  recordCalls(rows: readonly CallRow[]): Promise<void> {
    return this.#writer.ask({ op: 'recordCalls', rows: rows.map(callValues) });
  }

  usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    return this.#reader.ask({ op: 'usage', query });
  }

  async listCalls({ limit }: { readonly limit: number }): Promise<CallPage> {
    return { calls: await this.#reader.ask({ op: 'listCalls', limit }) };
  }

  replaceKey = notYet;
  touchKeys = notYet;
  keysSince = notYet;
  listPolicies = notYet;
  putPolicy = notYet;
  deletePolicy = notYet;
  appendAudit = notYet;
  listAudit = notYet;
  openCalls = notYet;
  settleOrphans = notYet;
  spent = notYet;
  findCall = notYet;
  prune = notYet;
  backup = notYet;

  async close(): Promise<void> {
    await this.#reader.close();
    await this.#writer.close();
  }
}

/** TODO: the next migration. */
function notYet(): Promise<never> {
  return Promise.reject(new StoreError('failed', 'The SQLite store cannot do this yet.'));
}
