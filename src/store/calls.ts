/** The ledger: one row a call, its attempts, and sums of them. Times are ms since the epoch, durations ms. */
import type { Failure, Fault, FaultKind } from '../core/faults.ts';
import type { Cost, Price } from '../core/money.ts';
import type { CountedUsage, SummedRow } from '../core/token-classes.ts';

export type CallOutcome = 'ok' | 'failed' | 'canceled';

/** One upstream try of a call. */
export interface AttemptRow {
  readonly provider: string;
  readonly upstreamModel: string;
  /** Name of the credential; absent where the provider has only one. */
  readonly credential?: string;
  readonly startedAt: number;
  readonly ms: number;
  /** HTTP status of the upstream; absent when none came. */
  readonly status?: number;
  readonly outcome: CallOutcome;
  /** ErrorCode of a failed attempt. */
  readonly error?: string;
  /** Why it failed, with the provider's text if there is one. */
  readonly failure?: Failure;
  readonly reported?: CountedUsage;
  /** Sent, and no answer came: the vendor may bill it (R5). */
  readonly maybeBilled?: true;
}

/** A budget in one of its calendar windows; names as in counters.ts. */
export interface BudgetWindow {
  readonly counter: string;
  readonly window: string;
  /** Absent = never. */
  readonly endsAt?: number;
  /** The instance whose lease pays, where several gateways share budgets. */
  readonly lease?: string;
}

/** One row a call, with any outcome. */
export interface CallRow {
  readonly id: string;
  readonly startedAt: number;
  readonly keyId: string;
  readonly team?: string;
  readonly tags: readonly string[];
  /** The client's own name for its user (`user`, `metadata.user_id`, a header). */
  readonly user?: string;
  /** JSON text, at most 2 KB. */
  readonly metadata?: string;
  /** Dialect of the client. */
  readonly endpoint: string;
  /** The model name that the client requested. */
  readonly model: string;
  readonly provider?: string;
  readonly upstreamModel?: string;
  readonly mode?: 'relay' | 'translate';
  readonly stream: boolean;
  readonly outcome: CallOutcome;
  /** The HTTP status that the client saw; absent when it left before one was sent. */
  readonly status?: number;
  /** ErrorCode of a failed call. */
  readonly error?: string;
  /** Why it failed, with the text that the client got. Only for failed calls. */
  readonly failure?: Failure;
  readonly attempts: number;
  /** In their order; pages of calls leave them out. */
  readonly attemptRows: readonly AttemptRow[];
  readonly reported?: CountedUsage;
  readonly charged: CountedUsage;
  readonly usageSource: 'reported' | 'counted' | 'estimated';
  /** Absent = the price is unknown; never 0 instead. */
  readonly cost?: Cost;
  /**
   * Nanodollars that the prompt would have cost more without a cache, by the price of the call; negative where writing
   * cost more than reading saved. Absent = nothing was cached, or the price is unknown.
   */
  readonly cacheSaved?: number;
  /** The price that `cost` was computed with: old bills never change. */
  readonly price?: Price;
  /** Budgets that `cost.total` counts for. */
  readonly budgets: readonly BudgetWindow[];
  readonly reservedNanodollars?: number;
  /** The upstream's usage cannot be so: a count that is not a count, or fewer tokens than the text has. */
  readonly suspect?: true;
  /** Cost more than was reserved. */
  readonly overrun?: true;
  readonly firstEventMs?: number;
  readonly totalMs: number;
  readonly notes?: string;
  /** Of the trace that the call belongs to; for the log and metrics, not stored. */
  readonly traceId?: string;
  /** Its spans are exported, so an exemplar can name the trace. Not stored. */
  readonly sampled?: true;
}

/**
 * A running call, as the row that it becomes if its process dies now: `failed`,
 * `interrupted`, `estimated`, charged what is known so far (F81).
 */
export interface OpenCall {
  readonly row: CallRow;
  /** When it was last known to run. */
  readonly seenAt: number;
}

/** A portion of what budgets have spent, by counter and window. */
export interface SpentPage {
  readonly limit: number;
  /** The last one of the portion before; absent = the first portion. */
  readonly after?: Pick<Spent, 'counter' | 'window'>;
}

export interface Spent {
  readonly counter: string;
  readonly window: string;
  readonly nanodollars: number;
}

/** `user` reads the calls themselves, those that have expired omitted: for a bounded number of calls only. */
export type UsageGrouping =
  'key' | 'model' | 'answered' | 'provider' | 'team' | 'tag' | 'user' | 'day' | 'hour';

/** Sums over time: one row for each step in which there were calls, and each group. */
export interface SeriesQuery {
  /** `minute` reads the calls themselves: for a few hours only. */
  readonly step: 'minute' | 'hour' | 'day';
  /**
   * Absent = one group with the name ''. `user` reads the calls themselves, as `minute` does. A call counts for each of
   * its tags.
   */
  readonly by?: 'key' | 'model' | 'answered' | 'provider' | 'team' | 'tag' | 'user';
  readonly since: number;
  readonly until: number;
  readonly filter?: UsageFilter;
  /** The number of groups with the most calls. Others have no rows. */
  readonly groups: number;
}

/** `group` as in UsageRow; `at` is the beginning of the step. */
export interface SeriesRow extends UsageRow {
  readonly at: number;
}

export interface UsageFilter {
  readonly key?: string;
  /** '' = has none; also of provider and tag. */
  readonly team?: string;
  readonly model?: string;
  readonly provider?: string;
  readonly tag?: string;
  /** Only calls of these keys or teams; two empty lists are no calls. */
  readonly within?: CallsWithin;
}

/** The rows of the ledger that a person may see. */
export interface CallsWithin {
  readonly keys: readonly string[];
  readonly teams: readonly string[];
}

export interface UsageQuery {
  readonly by: UsageGrouping;
  /** Only calls that started at or after this time. */
  readonly since: number;
  /** Only calls that started before this time; absent = up to now. */
  readonly until?: number;
  readonly filter?: UsageFilter;
}

type SummedUsage = { readonly [C in SummedRow['member'] | FaultKind['member']]: number };

/**
 * Sums of one group; `group` is '' for calls that have none, `2026-11-21` or `2026-11-21T13:00Z` in
 * UTC. A call counts for each of its tags. `inputTokens` holds all three input classes, their audio, images and video
 * included.
 */
export interface UsageRow extends SummedUsage {
  readonly group: string;
  readonly calls: number;
  readonly failed: number;
  readonly inputTokens: number;
  /** Calls with a cost; 0 = the cost of the group is unknown. */
  readonly pricedCalls: number;
  /** Calls that were charged tokens at an unknown price. */
  readonly unpricedCalls: number;
  /** Sum over the priced calls. */
  readonly nanodollars: number;
  /** What caches saved of them, nanodollars. */
  readonly cacheSaved: number;
}

/** Position of a call in the order of pages. */
export interface CallCursor {
  readonly startedAt: number;
  readonly id: string;
}

export interface CallQuery extends UsageFilter {
  readonly limit: number;
  /** `next` of the page before. */
  readonly before?: CallCursor;
  readonly since?: number;
  readonly until?: number;
  readonly outcome?: CallOutcome;
  readonly endpoint?: string;
  readonly user?: string;
  /** The HTTP status that the client saw. */
  readonly status?: number;
  readonly mode?: 'relay' | 'translate';
  /** Part of the notes, in upper or lower case. */
  readonly notes?: string;
  /** Only failed calls of this kind. */
  readonly fault?: Fault;
  /** ErrorCode. */
  readonly error?: string;
  /** Named reason of the failure. */
  readonly reason?: string;
  /** The model that answered, by its provider's name. */
  readonly upstreamModel?: string;
  /** Only calls whose cost is known and at least this. */
  readonly minNanodollars?: number;
  /** Only calls that took at least this. */
  readonly minMs?: number;
}

/** Failed calls of a period. If there are too many, only the newest. */
export interface FailureQuery {
  readonly since: number;
  readonly until: number;
  readonly filter?: UsageFilter;
  readonly fault?: Fault;
}

/** Failed calls that are alike. '' = none, as in UsageRow. */
export interface FailureGroup {
  readonly fault: string;
  readonly error: string;
  readonly reason: string;
  readonly limit: string;
  readonly status?: number;
  readonly key: string;
  readonly team: string;
  /** '' = unknown. */
  readonly model: string;
  readonly provider: string;
  /** As in `UsageGroup`. */
  readonly answered: string;
  readonly calls: number;
  /** The newest of them. */
  readonly last: { readonly at: number; readonly id: string; readonly message: string };
}

export interface FailureGroups {
  readonly groups: readonly FailureGroup[];
  /** There are more failed calls than were examined: only the newest are counted. */
  readonly isCut: boolean;
}

export interface CallPage {
  /** Without their `attemptRows`. */
  readonly calls: readonly CallRow[];
  /** Absent on the last page. A page may be shorter than requested, even empty, and have one. */
  readonly next?: CallCursor;
}

/** The time limits of retention: rows of that time and later stay. */
export interface Retention {
  readonly callsBefore: number;
  /** Sums by hour; whole UTC days. Sums by day stay for ever. */
  readonly hoursBefore: number;
}
