/** The parts of the store on one SQLite connection, synchronous: each method is called by its name. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { callMethod } from '../remote.ts';
import { StoreError } from '../store-error.ts';
import type { StoreParts } from '../store.ts';
import { SqliteAnswers, SqliteContents, SqliteResponses } from './sealed.ts';
import { writeCopy, requireSound, Statements } from './database.ts';
import { asStoreError } from './thread.ts';
import { SqliteCalls } from './calls.ts';
import { SqlitePeople } from './people.ts';
import { SqliteAudit, SqliteKeys, SqlitePolicies, SqliteSettings } from './keys.ts';

export interface EngineOptions {
  readonly db: DatabaseSync;
  /** Absent: the database is in memory. */
  readonly path?: string;
  /** Monotonic ms, of one origin in all threads: a later engine of the process reads times of this one. */
  now(): number;
  /** Ms since the epoch. */
  wall(): number;
}

/** A part of the store, or the engine itself. */
export type EnginePart = keyof StoreParts | 'engine';

export class SqliteEngine {
  readonly keys: SqliteKeys;
  readonly policies: SqlitePolicies;
  readonly audit: SqliteAudit;
  readonly calls: SqliteCalls;
  readonly answers: SqliteAnswers;
  readonly contents: SqliteContents;
  readonly responses: SqliteResponses;
  readonly people: SqlitePeople;
  readonly settings: SqliteSettings;
  readonly #options: EngineOptions;
  readonly #inode: number | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#inode = this.#readInode();
    const sql = new Statements(options.db, () => this.#requireFile());
    this.keys = new SqliteKeys(sql);
    this.policies = new SqlitePolicies(sql);
    this.audit = new SqliteAudit(sql, this.keys, this.policies);
    this.calls = new SqliteCalls(sql);
    this.answers = new SqliteAnswers(sql, options);
    this.contents = new SqliteContents(sql);
    this.responses = new SqliteResponses(sql, () => options.wall());
    this.people = new SqlitePeople(sql);
    this.settings = new SqliteSettings(sql);
  }

  /** @throws StoreError, whatever the method throws. */
  call(part: EnginePart, method: string, args: readonly unknown[]): unknown {
    try {
      return callMethod(part === 'engine' ? this : this[part], method, args);
    } catch (error) {
      throw asStoreError(error, this.#options.path ?? 'the store in memory');
    }
  }

  /** @throws StoreError `failed` where the database is in memory, or there is a file of this name. */
  backup(path: string): void {
    if (this.#options.path === undefined) {
      throw new StoreError('failed', 'The store is in memory: there is no file to copy.');
    }
    writeCopy(this.#options.db, path);
  }

  /** @throws StoreError `corrupt` */
  check(): void {
    requireSound(this.#options.db, this.#options.path ?? '');
  }

  /** Folds the write-ahead log into the database; safe to skip. */
  close(): void {
    const { db } = this.#options;
    // SQLite leaves the log of a file that was replaced: the next start would apply it to the file that is there now.
    // Where the file was removed with its folder, there is none, and SQLite cannot open it.
    try {
      if (this.#isMoved && this.#readInode() !== undefined)
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // The disk is full or fails: the log stays. An open database would keep the process from its end.
    } finally {
      db.close();
    }
  }

  get #isMoved(): boolean {
    return this.#readInode() !== this.#inode;
  }

  /** SQLite can write to a deleted file without an error, and the rows would be lost (F87). The check takes 3 µs. */
  #requireFile(): void {
    if (this.#isMoved) {
      throw new StoreError(
        'gone',
        `${this.#options.path} was removed or replaced while the gateway runs; put it back or restart.`,
      );
    }
  }

  #readInode(): number | undefined {
    const { path } = this.#options;
    return path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.ino;
  }
}
