/**
 * The store's operations on SQLite, synchronous: runs in a worker thread, where waiting for the disk
 * holds up no call.
 */
import type { LatencyQuery, LatencySamples } from './latency.ts';
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { SharedPolicy } from '../core/policy.ts';
import type { AnswerClaim, AnswerToKeep, Claimed, OwnClaim } from './answers.ts';
import type {
  CallPage,
  CallQuery,
  CallRow,
  Retention,
  Spent,
  SpentPage,
  SeriesQuery,
  SeriesRow,
  UsageQuery,
  UsageRow,
} from './calls.ts';
import type { ContentToRemove, RemovedContent, SealedContent } from './contents.ts';
import type {
  AuditEntry,
  AuditQuery,
  AuditRecord,
  KeyChanges,
  KeyRecord,
  KeyUse,
  NotedChange,
} from './records.ts';
import { SqliteAnswerBook } from './sqlite-answers.ts';
import { writeCopy } from './sqlite-backup.ts';
import { SqliteContentBook } from './sqlite-contents.ts';
import type { CallValues } from './sqlite-call-rows.ts';
import { asStoreError } from './sqlite-failure.ts';
import { requireSound } from './sqlite-file.ts';
import { SqliteKeys } from './sqlite-keys.ts';
import { SqliteLedger } from './sqlite-ledger.ts';
import type { BookOperations, OpenValues, SettledOrphans } from './sqlite-protocol.ts';
import { SqliteQueries } from './sqlite-queries.ts';
import { Statements } from './sqlite-statements.ts';
import { StoreError } from './store-error.ts';

/** How often the file is looked for while rows are written to it (F87). */
const fileCheckMs = 10_000;

export interface BookParts {
  readonly db: DatabaseSync;
  readonly path: string;
  /** Monotonic ms. */
  now(): number;
}

export class SqliteBook implements BookOperations {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #now: () => number;
  readonly #inode: number;
  readonly #keys: SqliteKeys;
  readonly #ledger: SqliteLedger;
  readonly #queries: SqliteQueries;
  readonly #answers: SqliteAnswerBook;
  readonly #contents: SqliteContentBook;
  #checkedAt: number;

  constructor(parts: BookParts) {
    this.#db = parts.db;
    this.#path = parts.path;
    this.#now = () => parts.now();
    this.#inode = statSync(parts.path).ino;
    this.#checkedAt = this.#now();
    const sql = new Statements(parts.db);
    this.#keys = new SqliteKeys(sql);
    this.#ledger = new SqliteLedger(sql);
    this.#queries = new SqliteQueries(sql);
    this.#answers = new SqliteAnswerBook(sql);
    this.#contents = new SqliteContentBook(sql);
  }

  listKeys(): readonly KeyRecord[] {
    return this.#keys.list();
  }

  addKey(record: KeyRecord): void {
    this.#requireFile();
    this.#keys.add(record);
  }

  replaceKey(record: KeyRecord): boolean {
    this.#requireFile();
    return this.#keys.replace(record);
  }

  revokeKey(id: string, at: number): boolean {
    this.#requireFile();
    return this.#keys.revoke(id, at);
  }

  touchKeys(uses: readonly KeyUse[]): void {
    this.#requireFile();
    this.#keys.touch(uses);
  }

  keysSince(stamp: number, most?: number): KeyChanges {
    return this.#keys.since(stamp, most);
  }

  listPolicies(): readonly SharedPolicy[] {
    return this.#keys.listPolicies();
  }

  putPolicy(policy: SharedPolicy): void {
    this.#requireFile();
    this.#keys.putPolicy(policy);
  }

  deletePolicy(kind: SharedPolicy['kind'], name: string): boolean {
    this.#requireFile();
    return this.#keys.deletePolicy(kind, name);
  }

  appendAudit(entry: AuditEntry): AuditRecord {
    this.#requireFile();
    return this.#keys.appendAudit(entry);
  }

  changeNoted(change: NotedChange, entry: AuditEntry): AuditRecord | undefined {
    this.#requireFile();
    return this.#keys.changeNoted(change, entry);
  }

  listAudit(query: AuditQuery): readonly AuditRecord[] {
    return this.#keys.listAudit(query);
  }

  readSetting(name: string): string | undefined {
    return this.#keys.readSetting(name);
  }

  writeSetting(name: string, value: string): void {
    this.#requireFile();
    this.#keys.writeSetting(name, value);
  }

  recordCalls(rows: readonly CallValues[]): void {
    this.#requireFile();
    this.#ledger.record(rows);
  }

  openCalls(calls: readonly OpenValues[]): void {
    this.#requireFile();
    this.#ledger.open(calls);
  }

  settleOrphans(seenBefore: number): SettledOrphans {
    this.#requireFile();
    const { settled, refused } = this.#ledger.settleOrphans(seenBefore);
    const rows = settled.map((id) => this.#queries.find(id)).filter((row) => row !== undefined);
    return { rows, refused };
  }

  forgetOrphan(id: string): void {
    this.#ledger.forgetOrphan(id);
  }

  spent(endingAfter: number, counters?: readonly string[]): readonly Spent[] {
    return this.#ledger.spent(endingAfter, counters);
  }

  spentPage(endingAfter: number, page: SpentPage): readonly Spent[] {
    return this.#ledger.spentPage(endingAfter, page);
  }

  usage(query: UsageQuery): readonly UsageRow[] {
    return this.#queries.usage(query);
  }

  series(query: SeriesQuery): readonly SeriesRow[] {
    return this.#queries.series(query);
  }

  sampleLatency(query: LatencyQuery): LatencySamples {
    return this.#queries.sampleLatency(query);
  }

  listCalls(query: CallQuery): CallPage {
    return this.#queries.list(query);
  }

  findCall(id: string): CallRow | undefined {
    return this.#queries.find(id);
  }

  prune(retention: Retention, most: number): number {
    this.#requireFile();
    return this.#ledger.prune(retention, most);
  }

  claimAnswer(wanted: AnswerClaim): Claimed {
    this.#requireFile();
    return this.#answers.claim(wanted);
  }

  renewAnswers(claims: readonly OwnClaim[], leaseMs: number): void {
    this.#requireFile();
    this.#answers.renew(claims, leaseMs);
  }

  keepAnswer(answer: AnswerToKeep): boolean {
    this.#requireFile();
    return this.#answers.keep(answer);
  }

  releaseAnswer(claim: OwnClaim): void {
    this.#answers.release(claim);
  }

  releaseAnswers(): void {
    this.#answers.releaseAll();
  }

  sweepAnswers(most: number, bytes: number): number {
    this.#requireFile();
    return this.#answers.sweep(most, bytes);
  }

  keepContents(contents: readonly SealedContent[]): void {
    this.#requireFile();
    this.#contents.keep(contents);
  }

  findContent(id: string): SealedContent | undefined {
    return this.#contents.find(id);
  }

  contentBytes(): number {
    return this.#contents.bytes();
  }

  removeContents(which: ContentToRemove, most: number): RemovedContent {
    this.#requireFile();
    return this.#contents.remove(which, most);
  }

  forgetContents(keyId: string, before: number): void {
    this.#requireFile();
    this.#contents.forget(keyId, before);
  }

  backup(path: string): void {
    writeCopy(this.#db, path);
  }

  check(): void {
    requireSound(this.#db, this.#path);
  }

  /** Folds the write-ahead log into the database; safe to skip. */
  close(): void {
    this.#db.close();
  }

  /** The thrown value as the StoreError that the other thread is told. */
  failure(thrown: unknown): StoreError {
    return asStoreError(thrown, this.#path);
  }

  /** A deleted file can be written to for ever without an error; nobody would find the rows. */
  #requireFile(): void {
    const now = this.#now();
    if (now - this.#checkedAt < fileCheckMs) return;
    if (statSync(this.#path, { throwIfNoEntry: false })?.ino !== this.#inode) {
      throw new StoreError(
        'gone',
        `${this.#path} was removed or replaced while the gateway runs; put it back or restart.`,
      );
    }
    this.#checkedAt = now;
  }
}
