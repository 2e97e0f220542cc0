/**
 * The store on PostgreSQL: one book for several gateways. While the server is away everything is refused
 * at once with `unavailable`, and goes on when it is back, without a restart (L1, F88).
 */
import type { LatencyQuery, LatencySamples } from './latency.ts';
import { join } from 'node:path';
import type { SharedPolicy } from '../core/policy.ts';
import type { AnswerStore } from './answers.ts';
import type { ContentStore } from './contents.ts';
import type {
  CallPage,
  CallQuery,
  CallRow,
  OpenCall,
  Retention,
  Spent,
  SpentPage,
  SeriesQuery,
  SeriesRow,
  UsageQuery,
  UsageRow,
} from './calls.ts';
import { PostgresAnswers } from './postgres-answers.ts';
import { PostgresContents } from './postgres-contents.ts';
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
  NotedChange,
} from './records.ts';
import { PostgresChanges } from './postgres-changes.ts';
import { inTurn } from './postgres-turn.ts';
import { layOrphanAside } from './refused-rows.ts';
import { Spool } from './spool.ts';
import { StoreError, type StoreFailure } from './store-error.ts';
import type { Store } from './store.ts';

export interface PostgresStoreOptions extends PostgresServerOptions {
  /** Where finished calls wait while the book is away; a folder of this instance alone. */
  readonly spoolDirectory: string;
}

/**
 * Opens the book, and makes its tables at the first time. A server that is away now is no failure.
 * @throws StoreError `newer_schema`, `failed` (wrong password, no right to make tables, …).
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { spoolDirectory: directory, log } = options;
  const spool = new Spool({ directory, log });
  const server = await makePostgresServer(options);
  const store = new PostgresStore({ server, spool, options });
  try {
    await server.begin();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** What passes: finished calls need not wait for it in memory. */
const passing: ReadonlySet<StoreFailure> = new Set(['unavailable', 'busy', 'full']);
const drainAgainMs = 5000;

function passes(error: unknown): boolean {
  return error instanceof StoreError && passing.has(error.kind);
}

/** Any number: who starts for the first time makes what all share. */
const startTurn = 5_563_204_122;

interface PostgresParts {
  readonly server: PostgresServer;
  readonly spool: Spool;
  readonly options: PostgresStoreOptions;
}

export class PostgresStore implements Store {
  /** Whether it is there; connections for others that keep something in the same database. */
  readonly server: PostgresServer;
  readonly answers: AnswerStore;
  readonly contents: ContentStore;
  readonly #options: PostgresStoreOptions;
  readonly #spool: Spool;
  readonly #keys: PostgresKeys;
  readonly #ledger: PostgresLedger;
  readonly #queries: PostgresQueries;
  #changes: PostgresChanges | undefined;
  #draining: NodeJS.Timeout | undefined;
  #closed = false;
  #onWritten: ((rows: readonly CallRow[]) => void) | undefined;

  constructor({ server, spool, options }: PostgresParts) {
    this.server = server;
    this.#options = options;
    this.#spool = spool;
    this.answers = new PostgresAnswers(server);
    this.contents = new PostgresContents(server);
    this.#keys = new PostgresKeys(server);
    this.#ledger = new PostgresLedger(server);
    this.#queries = new PostgresQueries(server);
    server.onUp(() => void this.#drain());
  }

  /** The address without user and password. */
  get shown(): string {
    return this.#options.address.shown;
  }

  /** Finished calls that wait on the disk of this instance. */
  get spooled(): number {
    return this.#spool.rows;
  }

  /** Calls `onChange` when keys or policies may have changed; it must not throw. */
  watch(onChange: () => void): void {
    // A start that waited for its turn may get so far while the gateway stops.
    if (this.#closed) return;
    const { address, log, random } = this.#options;
    const onBroken = (): void => this.server.look();
    this.#changes ??= new PostgresChanges({ address, log, random, onChange, onBroken });
  }

  /** Runs `work` while no other instance does the same. @throws StoreError, or what `work` throws. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return inTurn(this.#options.address, startTurn, work);
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

  keysSince(stamp: number, most?: number): Promise<KeyChanges> {
    return this.#keys.since(stamp, most);
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

  changeNoted(change: NotedChange, entry: AuditEntry): Promise<AuditRecord | undefined> {
    return this.#keys.changeNoted(change, entry);
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

  /** Calls `tell` with calls that are in the book from now on. */
  onWritten(tell: (rows: readonly CallRow[]) => void): void {
    this.#onWritten = tell;
  }

  /** On the disk of this instance while the book is away (F88). @throws StoreError */
  async recordCalls(rows: readonly CallRow[]): Promise<void> {
    try {
      await this.#record(rows);
    } catch (error) {
      if (!passes(error)) throw error;
      await this.#spool.append(rows);
      this.#drainLater();
    }
  }

  /** While the book is away nothing is noted, and nobody is held up: the next sign of life counts. */
  async openCalls(calls: readonly OpenCall[]): Promise<readonly string[]> {
    try {
      return await this.#ledger.open(calls);
    } catch (error) {
      if (!passes(error)) throw error;
      return [];
    }
  }

  settleOrphans(seenBefore: number): Promise<readonly CallRow[]> {
    return this.#ledger.settleOrphans(seenBefore, async (orphan) => {
      const path = join(this.#options.spoolDirectory, 'orphans.unread');
      await layOrphanAside(path, orphan);
      const { id: call, reason } = orphan;
      this.#options.log.error('orphan_refused', { call, path, reason });
    });
  }

  /**
   * Records calls of which nothing else is known, unless they run or have a row.
   * @returns what those that do not run have cost, by id
   * @throws StoreError
   */
  recordLost(rows: readonly CallRow[]): Promise<ReadonlyMap<string, number>> {
    return this.#ledger.recordLost(rows);
  }

  spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]> {
    return this.#ledger.spent(endingAfter, counters);
  }

  spentPage(endingAfter: number, page: SpentPage): Promise<readonly Spent[]> {
    return this.#ledger.spentPage(endingAfter, page);
  }

  usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    return this.#queries.usage(query);
  }

  series(query: SeriesQuery): Promise<readonly SeriesRow[]> {
    return this.#queries.series(query);
  }

  sampleLatency(query: LatencyQuery): Promise<LatencySamples> {
    return this.#queries.sampleLatency(query);
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

  /** The gateway stops: from now on a server that is silent is not waited for. */
  stopping(): void {
    this.server.stopping();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#draining);
    const cut = await Promise.all([this.#changes?.close(), this.server.close()]);
    await this.#spool.close();
    if (cut.includes(true)) this.#tellSilence();
  }

  #tellSilence(): void {
    const { spoolDirectory, log } = this.#options;
    const calls = this.#spool.rows;
    const left = `${calls} finished calls wait in ${spoolDirectory} for the next start with this data directory.`;
    const reason = `${this.shown} did not answer any more: its connections were cut. ${left}`;
    log.warn('store_silent_at_stop', { spooled: calls, reason });
  }

  async #drain(): Promise<void> {
    try {
      await this.#spool.drain((rows) => this.#record(rows));
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      if (this.server.up) this.#options.log.error('spool_not_written', { reason });
      if (!(error instanceof StoreError) || error.kind !== 'closed') this.#drainLater();
    }
  }

  async #record(rows: readonly CallRow[]): Promise<void> {
    await this.#ledger.record(rows);
    this.#onWritten?.(rows);
  }

  /** Besides at each return of the server: a book may be slow, or full, and never be away. */
  #drainLater(): void {
    if (this.#draining !== undefined || this.#closed) return;
    this.#draining = setTimeout(() => {
      this.#draining = undefined;
      if (this.#spool.rows > 0) void this.#drain();
    }, drainAgainMs);
  }
}
