/**
 * What must survive a restart, in parts: keys, policies, the audit log, the ledger, answers, contents,
 * responses, people with their sessions, and settings.
 * Each method is one transaction. The records are in records.ts (keys, policies, audit) and calls.ts (ledger, usage).
 *
 * SQLite (`sqlite/`) and PostgreSQL (`postgres/`) implement the parts. Arguments and results are plain data: a method
 * is called by its name in the thread of SQLite, and from worker processes (`remote.ts`).
 */
import type { SharedPolicy } from '../core/policy.ts';
import type { AnswerStore, ContentStore, ResponseStore } from './sealed.ts';
import type {
  CallPage,
  CallQuery,
  CallRow,
  FailureGroups,
  FailureQuery,
  OpenCall,
  Retention,
  Spent,
  SpentPage,
  SeriesQuery,
  SeriesRow,
  UsageQuery,
  UsageRow,
} from './calls.ts';
import type { PeopleStore } from './people.ts';
import type { LatencyQuery, LatencySamples } from './roll-up.ts';
import type {
  AuditEntry,
  AuditQuery,
  AuditRecord,
  KeyChanges,
  KeyRecord,
  KeyUse,
  NotedChange,
} from './records.ts';

export type * from './sealed.ts';
export type * from './calls.ts';
export type * from './roll-up.ts';
export type * from './records.ts';
export type * from './people.ts';

export interface KeyStore {
  /** In the order of creation. */
  list(): Promise<readonly KeyRecord[]>;
  /** @throws StoreError `failed` when there is a key with this id. */
  add(record: KeyRecord): Promise<void>;
  /**
   * Replaces the version just before a changed key (`record.version - 1`).
   * @returns false when there is no such key or its version is another one: read again.
   */
  replace(record: KeyRecord): Promise<boolean>;
  /** Marks the key revoked whatever its version, which rises; false when there is no such key. */
  revoke(id: string, at: number): Promise<boolean>;
  /** Remembers when keys were last used; is not a change of them. Unknown ids and older times are skipped. */
  touch(uses: readonly KeyUse[]): Promise<void>;
  /**
   * The next portion of keys added, replaced or revoked after `stamp` (0 = all), the earliest change
   * first (S6): half a million in one message would be two gigabytes. A key that changes while portions
   * are read comes again, later.
   * @param most keys; default `keysPortion`
   */
  since(stamp: number, most?: number): Promise<KeyChanges>;
}

export interface PolicyStore {
  /** By kind and name. */
  list(): Promise<readonly SharedPolicy[]>;
  /** Makes or replaces. */
  put(policy: SharedPolicy): Promise<void>;
  /** False when there is none. */
  delete(kind: SharedPolicy['kind'], name: string): Promise<boolean>;
}

export interface AuditStore {
  /** Adds an entry to the end of the chain (S24). */
  append(entry: AuditEntry): Promise<AuditRecord>;
  /**
   * A change and its entry, both or neither (S24), with the errors of the method that makes the change.
   * @returns undefined when the change did not fit (false there): nothing is written then.
   */
  change(change: NotedChange, entry: AuditEntry): Promise<AuditRecord | undefined>;
  /** Newest first. */
  list(query: AuditQuery): Promise<readonly AuditRecord[]>;
  /** The newest entry, or the newest one before this number. A start needs it: on SQLite no thread is made for it. */
  newest(before?: number): Promise<AuditRecord | undefined>;
}

export interface CallStore {
  /**
   * Writes finished calls with their attempts, adds them to roll-ups and spending and closes their
   * open rows, all or nothing. A call that is there already changes nothing anywhere.
   */
  record(rows: readonly CallRow[]): Promise<void>;
  /**
   * Makes or refreshes the rows of running calls (F81); a call that has its final row is skipped.
   * @returns the ids of those, where others than this process may have settled them.
   */
  open(calls: readonly OpenCall[]): Promise<readonly string[]>;
  /**
   * Records running calls that were last seen before this time as they are: the process that served them
   * is gone (F81). At a start on SQLite that is all of them (`Infinity`).
   * @returns the rows of those calls.
   */
  settleOrphans(seenBefore: number): Promise<readonly CallRow[]>;
  /**
   * What budgets have spent, in windows that end after this time or never.
   * @param counters only of these: a look at one key must not read those of 500,000.
   */
  spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]>;
  /** The same of all in portions, by counter and window: half a million at once would hold up all calls. */
  spentPage(endingAfter: number, page: SpentPage): Promise<readonly Spent[]>;
  /** Sums by group, in the order of the groups' UTF-8 bytes. */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** Sums over time, by group. */
  series(query: SeriesQuery): Promise<readonly SeriesRow[]>;
  /** How long calls took, of some thousand at most. */
  sampleLatency(query: LatencyQuery): Promise<LatencySamples>;
  /** Failed calls by what they have in common; at most the newest 50,000 are examined. */
  failures(query: FailureQuery): Promise<FailureGroups>;
  /** Newest first. */
  list(query: CallQuery): Promise<CallPage>;
  find(id: string): Promise<CallRow | undefined>;
  /**
   * Removes at most `most` rows that are older than they are kept, with what hangs on them; sums stay.
   * @returns how many; fewer than `most` = done.
   */
  prune(retention: Retention, most: number): Promise<number>;
}

/** Small settings of the gateway itself, e.g. the digest of the admin token. */
export interface SettingStore {
  read(name: string): Promise<string | undefined>;
  write(name: string, value: string): Promise<void>;
}

export interface StoreParts {
  readonly keys: KeyStore;
  readonly policies: PolicyStore;
  readonly audit: AuditStore;
  readonly calls: CallStore;
  /** By `Idempotency-Key`. */
  readonly answers: AnswerStore;
  /** What calls said, of keys whose content is logged. */
  readonly contents: ContentStore;
  /** Responses that clients may refer to. */
  readonly responses: ResponseStore;
  /** Who signed in to the dashboard, and the sessions of browsers. */
  readonly people: PeopleStore;
  readonly settings: SettingStore;
}

export interface Store extends StoreParts {
  /**
   * Writes a complete copy while the store is in use.
   * @param path where no file is yet, on the machine of the gateway.
   * @throws StoreError `failed` when there is one, or the store has no file.
   */
  backup(path: string): Promise<void>;
  close(): Promise<void>;
}
