/** What the store's threads say to each other; values travel by structured clone. */
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
import type { LatencyQuery, LatencySamples } from './latency.ts';
import type {
  AuditEntry,
  AuditQuery,
  AuditRecord,
  KeyChanges,
  KeyRecord,
  KeyUse,
  NotedChange,
} from './records.ts';
import type { RefusedOrphan } from './refused-rows.ts';
import type { CallValues } from './sqlite-call-rows.ts';
import type { StoreFailure } from './store-error.ts';

/** `full` loses no call even when the power fails, at the price of a sync of the disk per commit (F83). */
export type Durability = 'normal' | 'full';

export interface WorkerOptions {
  readonly path: string;
  /** A reader opens the file for queries only, so that a long one never holds up a write (L5). */
  readonly readOnly: boolean;
  /** False once the file was open: a thread that replaces a dead one must find it (F87). */
  readonly mayCreate: boolean;
  readonly durability: Durability;
}

export interface OpenValues {
  readonly values: CallValues;
  readonly seenAt: number;
}

export interface SettledOrphans {
  readonly rows: readonly CallRow[];
  /** Those that cannot be recorded; they are still there. */
  readonly refused: readonly RefusedOrphan[];
}

/** What the book does, each in one transaction. A reading thread is asked for queries only. */
export interface BookOperations {
  listKeys(): readonly KeyRecord[];
  addKey(record: KeyRecord): void;
  replaceKey(record: KeyRecord): boolean;
  revokeKey(id: string, at: number): boolean;
  touchKeys(uses: readonly KeyUse[]): void;
  keysSince(stamp: number, most?: number): KeyChanges;
  listPolicies(): readonly SharedPolicy[];
  putPolicy(policy: SharedPolicy): void;
  deletePolicy(kind: SharedPolicy['kind'], name: string): boolean;
  appendAudit(entry: AuditEntry): AuditRecord;
  changeNoted(change: NotedChange, entry: AuditEntry): AuditRecord | undefined;
  listAudit(query: AuditQuery): readonly AuditRecord[];
  readSetting(name: string): string | undefined;
  writeSetting(name: string, value: string): void;
  recordCalls(rows: readonly CallValues[]): void;
  openCalls(calls: readonly OpenValues[]): void;
  settleOrphans(seenBefore: number): SettledOrphans;
  forgetOrphan(id: string): void;
  spent(endingAfter: number, counters?: readonly string[]): readonly Spent[];
  spentPage(endingAfter: number, page: SpentPage): readonly Spent[];
  usage(query: UsageQuery): readonly UsageRow[];
  series(query: SeriesQuery): readonly SeriesRow[];
  sampleLatency(query: LatencyQuery): LatencySamples;
  listCalls(query: CallQuery): CallPage;
  findCall(id: string): CallRow | undefined;
  prune(retention: Retention, most: number): number;
  claimAnswer(wanted: AnswerClaim): Claimed;
  renewAnswers(claims: readonly OwnClaim[], leaseMs: number): void;
  keepAnswer(answer: AnswerToKeep): boolean;
  releaseAnswer(claim: OwnClaim): void;
  releaseAnswers(): void;
  sweepAnswers(most: number, bytes: number): number;
  keepContents(contents: readonly SealedContent[]): void;
  findContent(id: string): SealedContent | undefined;
  contentBytes(): number;
  removeContents(which: ContentToRemove, most: number): RemovedContent;
  forgetContents(keyId: string, before: number): void;
  backup(path: string): void;
  /** @throws StoreError `corrupt` */
  check(): void;
  close(): void;
}

export type BookOperation = keyof BookOperations;

type Operands = { readonly [K in BookOperation]: Parameters<BookOperations[K]> };
type Answers = { readonly [K in BookOperation]: ReturnType<BookOperations[K]> };

export type BookArguments<K extends BookOperation> = Operands[K];
export type BookAnswer<K extends BookOperation> = Answers[K];

/** One request; the mapped form lets the compiler see which arguments belong to which operation. */
export type BookRequest<K extends BookOperation = BookOperation> = {
  [P in K]: { readonly op: P; readonly args: Operands[P] };
}[K];

/** The operations in the form that a request can be dispatched on. */
export type Dispatch = { readonly [K in BookOperation]: (...args: Operands[K]) => Answers[K] };

export interface RequestMessage {
  readonly seq: number;
  readonly request: BookRequest;
}

export interface FailureMessage {
  readonly kind: StoreFailure;
  readonly message: string;
}

/** The answer to `seq`; 0 is the opening of the database. */
export interface ReplyMessage {
  readonly seq: number;
  readonly value?: unknown;
  readonly failure?: FailureMessage;
}
