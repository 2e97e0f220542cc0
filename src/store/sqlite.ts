/**
 * The store on one SQLite file. A sync of the disk takes up to 389 ms (F83), so the database lives in
 * a worker thread and this is only its front: writes and key look-ups go to one thread, the queries
 * of the admin pages to another that starts when the first one comes, backups and checks to one of
 * their own.
 */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SharedPolicy } from '../core/policy.ts';
import type { Log } from '../core/runtime.ts';
import type { AnswerStore } from './answers.ts';
import type { ContentStore } from './contents.ts';
import { prepareDataDir } from './data-dir.ts';
import { layOrphanAside } from './refused-rows.ts';
import { SqliteAnswers } from './sqlite-answers.ts';
import { callValues } from './sqlite-call-rows.ts';
import { SqliteContents } from './sqlite-contents.ts';
import { checkedAtStartBytes } from './sqlite-file.ts';
import type { Durability } from './sqlite-protocol.ts';
import { SqliteThread } from './sqlite-thread.ts';
import { StoreError } from './store-error.ts';
import type {
  AuditEntry,
  AuditQuery,
  AuditRecord,
  CallPage,
  CallQuery,
  CallRow,
  KeyChanges,
  KeyRecord,
  KeyUse,
  NotedChange,
  OpenCall,
  Retention,
  Spent,
  SpentPage,
  Store,
  SeriesQuery,
  SeriesRow,
  LatencyQuery,
  LatencySamples,
  UsageQuery,
  UsageRow,
} from './store.ts';

export interface SqliteOptions {
  /** The database file; its directory is made where there is none. */
  readonly path: string;
  readonly log: Log;
  readonly durability?: Durability;
}

/**
 * Opens or makes the database, files 0600 in a 0700 directory (S25). A large file is read through
 * after that, beside the calls; damage is told in the log.
 * @throws StoreError `corrupt` (F86), `newer_schema` (N2), `busy`, `full`, `failed`; the file is left
 * as it is.
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { path, log, durability = 'normal' } = options;
  prepareDataDir(dirname(path));
  const store = new SqliteStore(path, durability, log);
  await store.open();
  log.debug('store_opened', { path, durability });
  if (statSync(path).size > checkedAtStartBytes) store.checkLater(log);
  return store;
}

/** A command that has the store open for a moment does not read all of it. */
const checkAfterMs = 60_000;

class SqliteStore implements Store {
  readonly answers: AnswerStore;
  readonly contents: ContentStore;
  readonly #path: string;
  readonly #log: Log;
  readonly #writer: SqliteThread;
  readonly #reader: SqliteThread;
  /** Threads that do one long thing. */
  readonly #beside = new Set<SqliteThread>();
  #checking: NodeJS.Timeout | undefined;

  constructor(path: string, durability: Durability, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#writer = new SqliteThread({ path, durability, readOnly: false, mayCreate: true });
    this.#reader = this.#newReader();
    this.answers = new SqliteAnswers(this.#writer);
    this.contents = new SqliteContents(this.#writer, this.#reader);
  }

  open(): Promise<void> {
    return this.#writer.open();
  }

  listKeys(): Promise<readonly KeyRecord[]> {
    return this.#writer.ask('listKeys');
  }

  addKey(record: KeyRecord): Promise<void> {
    return this.#writer.ask('addKey', record);
  }

  replaceKey(record: KeyRecord): Promise<boolean> {
    return this.#writer.ask('replaceKey', record);
  }

  revokeKey(id: string, at: number): Promise<boolean> {
    return this.#writer.ask('revokeKey', id, at);
  }

  touchKeys(uses: readonly KeyUse[]): Promise<void> {
    return this.#writer.ask('touchKeys', uses);
  }

  keysSince(stamp: number, most?: number): Promise<KeyChanges> {
    return this.#writer.ask('keysSince', stamp, most);
  }

  listPolicies(): Promise<readonly SharedPolicy[]> {
    return this.#writer.ask('listPolicies');
  }

  putPolicy(policy: SharedPolicy): Promise<void> {
    return this.#writer.ask('putPolicy', policy);
  }

  deletePolicy(kind: SharedPolicy['kind'], name: string): Promise<boolean> {
    return this.#writer.ask('deletePolicy', kind, name);
  }

  appendAudit(entry: AuditEntry): Promise<AuditRecord> {
    return this.#writer.ask('appendAudit', entry);
  }

  changeNoted(change: NotedChange, entry: AuditEntry): Promise<AuditRecord | undefined> {
    return this.#writer.ask('changeNoted', change, entry);
  }

  listAudit(query: AuditQuery): Promise<readonly AuditRecord[]> {
    return this.#reader.ask('listAudit', query);
  }

  readSetting(name: string): Promise<string | undefined> {
    return this.#writer.ask('readSetting', name);
  }

  writeSetting(name: string, value: string): Promise<void> {
    return this.#writer.ask('writeSetting', name, value);
  }

  recordCalls(rows: readonly CallRow[]): Promise<void> {
    return this.#writer.ask('recordCalls', rows.map(callValues));
  }

  async openCalls(calls: readonly OpenCall[]): Promise<readonly string[]> {
    const values = calls.map(({ row, seenAt }) => ({ values: callValues(row), seenAt }));
    await this.#writer.ask('openCalls', values);
    return [];
  }

  /** An orphan that cannot be recorded is laid aside beside the file, and holds up no other. */
  async settleOrphans(seenBefore: number): Promise<readonly CallRow[]> {
    const { rows, refused } = await this.#writer.ask('settleOrphans', seenBefore);
    const path = join(dirname(this.#path), 'orphans.unread');
    for (const orphan of refused) {
      await layOrphanAside(path, orphan);
      const { id: call, reason } = orphan;
      this.#log.error('orphan_refused', { call, path, reason });
      await this.#writer.ask('forgetOrphan', call);
    }
    return rows;
  }

  spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]> {
    return this.#writer.ask('spent', endingAfter, counters);
  }

  spentPage(endingAfter: number, page: SpentPage): Promise<readonly Spent[]> {
    return this.#writer.ask('spentPage', endingAfter, page);
  }

  usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    return this.#reader.ask('usage', query);
  }

  series(query: SeriesQuery): Promise<readonly SeriesRow[]> {
    return this.#reader.ask('series', query);
  }

  sampleLatency(query: LatencyQuery): Promise<LatencySamples> {
    return this.#reader.ask('sampleLatency', query);
  }

  listCalls(query: CallQuery): Promise<CallPage> {
    return this.#reader.ask('listCalls', query);
  }

  findCall(id: string): Promise<CallRow | undefined> {
    return this.#reader.ask('findCall', id);
  }

  prune(retention: Retention, most: number): Promise<number> {
    return this.#writer.ask('prune', retention, most);
  }

  backup(path: string): Promise<void> {
    return this.#aside((thread) => thread.ask('backup', path));
  }

  /** Reads all pages once the start is over, and tells the log what it found. */
  checkLater(log: Log): void {
    this.#checking = setTimeout(() => {
      const began = performance.now();
      this.#aside((thread) => thread.ask('check')).then(
        () => log.info('store_checked', { ms: Math.round(performance.now() - began) }),
        (error: unknown) => {
          if (!(error instanceof StoreError) || error.kind !== 'corrupt') return;
          log.error('store_damaged', { reason: error.message });
        },
      );
    }, checkAfterMs).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.#checking);
    await Promise.all([...this.#beside].map((thread) => thread.stop()));
    await this.#reader.close();
    await this.#writer.close();
  }

  async #aside(work: (thread: SqliteThread) => Promise<void>): Promise<void> {
    const thread = this.#newReader();
    this.#beside.add(thread);
    try {
      await work(thread);
    } finally {
      this.#beside.delete(thread);
      await thread.close();
    }
  }

  #newReader(): SqliteThread {
    const options = { durability: 'normal', readOnly: true, mayCreate: false } as const;
    return new SqliteThread({ path: this.#path, ...options });
  }
}
