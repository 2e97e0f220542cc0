/** What must survive a restart: keys and the ledger. Each method is one transaction. */

/** A key as it is kept: never the secret, only its digest. Times are ms since the epoch. */
export interface KeyRecord {
  /** Public id; for `gw_` keys the 8 characters that stand in the key itself. */
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the whole key, lower-case hex. */
  readonly digest: string;
  /** Globs of model names; an empty list allows nothing. */
  readonly models: readonly string[];
  /** `chat`, `messages`, `count_tokens`, `models`. */
  readonly endpoints: readonly string[];
  readonly team?: string;
  /** What a translation would drop or change is refused; absent = it is noted. */
  readonly strict?: true;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
}

/** Token counts of one call as billed or as reported; absent = not known. */
export interface CountedUsage {
  readonly freshInputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly outputTokens?: number;
  readonly reasoningTokens?: number;
}

/** One row a call, whatever became of it (F8). Durations in ms. */
export interface CallRow {
  readonly id: string;
  readonly startedAt: number;
  readonly keyId: string;
  readonly team?: string;
  /** Dialect of the client. */
  readonly endpoint: string;
  /** The model name that the client asked for. */
  readonly model: string;
  readonly provider?: string;
  readonly upstreamModel?: string;
  readonly mode?: 'relay' | 'translate';
  readonly stream: boolean;
  readonly outcome: 'ok' | 'failed' | 'canceled';
  /** The HTTP status that the client saw; absent when it left before one was sent. */
  readonly status?: number;
  /** ErrorCode of a failed call. */
  readonly error?: string;
  readonly attempts: number;
  readonly reported?: CountedUsage;
  readonly charged: CountedUsage;
  readonly usageSource: 'reported' | 'counted' | 'estimated';
  readonly firstEventMs?: number;
  readonly totalMs: number;
  readonly notes?: string;
}

export type UsageGrouping = 'key' | 'model' | 'provider' | 'team' | 'day';

export interface UsageQuery {
  readonly by: UsageGrouping;
  /** Only calls that started at or after this time. */
  readonly since: number;
}

/** Sums of one group. `inputTokens` holds all three input classes. */
export interface UsageRow {
  readonly group: string;
  readonly calls: number;
  readonly failed: number;
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
}

export interface Store {
  listKeys(): Promise<readonly KeyRecord[]>;
  addKey(record: KeyRecord): Promise<void>;
  /** Marks the key revoked; false when there is no such key. */
  revokeKey(id: string, at: number): Promise<boolean>;
  /** Small settings of the gateway itself, e.g. the digest of the admin token. */
  readSetting(name: string): Promise<string | undefined>;
  writeSetting(name: string, value: string): Promise<void>;
  recordCalls(rows: readonly CallRow[]): Promise<void>;
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** Calls, newest first; for the admin API. */
  listCalls(limit: number): Promise<readonly CallRow[]>;
  close(): Promise<void>;
}
