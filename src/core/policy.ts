/** What a key, a team or a tag may use: rate limits and budgets. Absent = no limit of that kind. */

/** Who a policy is for. A call counts for its key, for the key's team, and for each of its tags. */
export type HolderKind = 'key' | 'team' | 'tag';

/** A rate limit (reliability.md §6). */
export interface RateLimit {
  /** `requests` and `tokens` are a minute; `concurrent` are calls at a time. */
  readonly kind: 'requests' | 'tokens' | 'concurrent';
  /** A positive integer. */
  readonly amount: number;
  /**
   * Glob of model names that this limit counts alone, whatever the client calls them
   * (core/model-names.ts); absent = all together.
   */
  readonly model?: string;
}

export type BudgetPeriod = 'day' | 'week' | 'month' | 'ever';

/** How much may be spent in a calendar period. Hard: settled + open reservations never exceed it (Q1). */
export interface Budget {
  /** An integer, at least 0. */
  readonly nanodollars: number;
  readonly per: BudgetPeriod;
  /** IANA name of the zone in which days begin; weeks begin on Monday (ISO 8601). */
  readonly timeZone: string;
}

export interface Policy {
  readonly limits: readonly RateLimit[];
  readonly budgets: readonly Budget[];
}

/** A named policy that several keys share. */
export interface SharedPolicy extends Policy {
  readonly kind: Exclude<HolderKind, 'key'>;
  readonly name: string;
}

export const noPolicy: Policy = { limits: [], budgets: [] };

/** The endpoints that a key can be limited to (interface.md). */
export const endpointScopes = ['chat', 'messages', 'count_tokens', 'models'] as const;
