/**
 * The store in one SQLite database. A sync of the disk takes up to 389 ms (F83), so a file is opened in worker
 * threads and this is only their front: writes and key look-ups go to one thread, the queries of the admin pages to
 * another that starts when the first one comes, backups and checks to one of their own.
 */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Log } from '../../core/runtime.ts';
import { callValues } from '../call-rows.ts';
import { prepareDataDir } from '../data-dir.ts';
import { quarantineOrphan, type RefusedOrphan } from '../refused-rows.ts';
import { remotePart, remoteParts, type Asynchronous } from '../remote.ts';
import { StoreError } from '../store-error.ts';
import { type ResponseStore, responseColumns } from '../sealed.ts';
import type { CallStore, Store, StoreParts } from '../store.ts';
import type { SqliteCalls } from './calls.ts';
import type { EnginePart } from './engine.ts';
import type { SqliteResponses } from './sealed.ts';
import { checkedAtStartBytes, SqliteThread, type Durability } from './thread.ts';

export interface SqliteOptions {
  /** The database file; its directory is made where there is none. */
  readonly path: string;
  readonly log: Log;
  readonly durability?: Durability;
}

/**
 * Opens or creates the database, files 0600 in a 0700 directory (S25). A large file is checked afterwards,
 * while calls run; damage is logged.
 * @throws StoreError `corrupt` (F86), `newer_schema`, `older_schema`, `busy`, `full`, `failed`; the file is
 * left unchanged.
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { path, log, durability = 'normal' } = options;
  prepareDataDir(dirname(path));
  const threads = new Threads(path, durability, log);
  await threads.open();
  log.debug('store_opened', { path, durability });
  if (statSync(path).size > checkedAtStartBytes) threads.checkLater();
  return {
    ...partsBy(
      (...call) => threads.call(...call),
      (orphan) => threads.setAside(orphan),
    ),
    backup: (to) => threads.backup(to),
    close: () => threads.close(),
  };
}

export type Call = (part: EnginePart, method: string, args: readonly unknown[]) => Promise<unknown>;

/**
 * The parts of an engine that is elsewhere: calls go there as flat values.
 * @param setAside takes an orphan that cannot be recorded; it is forgotten then, and holds up no other
 */
export function partsBy(
  call: Call,
  setAside: (orphan: RefusedOrphan) => Promise<void>,
): StoreParts {
  const send = (method: string, args: readonly unknown[]): Promise<unknown> =>
    call('calls', method, args);
  const engine = remotePart<Asynchronous<SqliteCalls>>(send);
  const toResponses: typeof send = (method, args) => call('responses', method, args);
  const responses = remotePart<Asynchronous<SqliteResponses>>(toResponses);
  return {
    ...remoteParts(call),
    calls: remotePart<CallStore>(send, {
      record: (rows) => engine.record(rows.map(callValues)),
      open: (calls) =>
        engine.open(calls.map(({ row, seenAt }) => ({ values: callValues(row), seenAt }))),
      async settleOrphans(seenBefore) {
        const { rows, refused } = await engine.settleOrphans(seenBefore);
        for (const orphan of refused) {
          await setAside(orphan);
          await engine.forgetOrphan(orphan.id);
        }
        return rows;
      },
    }),
    responses: remotePart<ResponseStore>(toResponses, {
      keep: (given) => responses.keep(responseColumns(given)),
    }),
  };
}

/** A command that has the store open for a moment does not read all of it. */
const checkAfterMs = 60_000;

/** Queries that may take long run on a reader thread, so that no call waits for them. */
const reads: ReadonlySet<string> = new Set([
  'audit.list',
  'calls.usage',
  'calls.series',
  'calls.sampleLatency',
  'calls.failures',
  'calls.list',
  'calls.find',
  'contents.find',
]);

/** The threads of one file. */
class Threads {
  readonly #path: string;
  readonly #log: Log;
  readonly #writer: SqliteThread;
  readonly #reader: SqliteThread;
  /** Threads that do one long thing. */
  readonly #extra = new Set<SqliteThread>();
  #checking: NodeJS.Timeout | undefined;

  constructor(path: string, durability: Durability, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#writer = new SqliteThread({ path, durability, readOnly: false, mayCreate: true });
    this.#reader = this.#newReader();
  }

  open(): Promise<void> {
    return this.#writer.open();
  }

  call(part: EnginePart, method: string, args: readonly unknown[]): Promise<unknown> {
    const thread = reads.has(`${part}.${method}`) ? this.#reader : this.#writer;
    return thread.call(part, method, args);
  }

  /** Beside the file. */
  async setAside(orphan: RefusedOrphan): Promise<void> {
    const path = join(dirname(this.#path), 'orphans.unread');
    await quarantineOrphan(path, orphan);
    const { id: call, reason } = orphan;
    this.#log.error('orphan_refused', { call, path, reason });
  }

  async backup(path: string): Promise<void> {
    await this.#inExtra('backup', [path]);
  }

  /** Reads all pages once the start is over, and logs what it found. */
  checkLater(): void {
    this.#checking = setTimeout(() => {
      const began = performance.now();
      this.#inExtra('check', []).then(
        () => this.#log.info('store_checked', { ms: Math.round(performance.now() - began) }),
        (error: unknown) => {
          if (!(error instanceof StoreError) || error.kind !== 'corrupt') return;
          this.#log.error('store_damaged', { reason: error.message });
        },
      );
    }, checkAfterMs).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.#checking);
    await Promise.all([...this.#extra].map((thread) => thread.stop()));
    await this.#reader.close();
    await this.#writer.close();
  }

  async #inExtra(method: string, args: readonly unknown[]): Promise<void> {
    const thread = this.#newReader();
    this.#extra.add(thread);
    try {
      await thread.call('engine', method, args);
    } finally {
      this.#extra.delete(thread);
      await thread.close();
    }
  }

  #newReader(): SqliteThread {
    const options = { durability: 'normal', readOnly: true, mayCreate: false } as const;
    return new SqliteThread({ path: this.#path, ...options });
  }
}
