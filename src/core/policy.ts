/**
 * The limits of a key, a team or a tag (rate limits and budgets; absent = no limit), and the grant of one admitted
 * call.
 */
import { GatewayError, type GatewayErrorOptions } from './errors.ts';
import type { Usage } from './generation.ts';

/** Who a policy is for. A call counts for its key, for the key's team, and for each of its tags. */
export type HolderKind = 'key' | 'team' | 'tag';

/** A rate limit. */
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

/** Keys that may count for a tag by naming it in a request, in addition to those that have it. */
export interface NamedBy {
  /** Ids of keys; `*` = all. */
  readonly keys: readonly string[];
  /** Names of teams; `*` = all that have one. */
  readonly teams: readonly string[];
}

/** A policy that several keys share. */
export interface CommonPolicy extends Policy {
  /** For a tag: the keys that may name it; absent = no other key. */
  readonly namedBy?: NamedBy;
}

/** A named policy that several keys share. */
export interface SharedPolicy extends CommonPolicy {
  readonly kind: Exclude<HolderKind, 'key'>;
  readonly name: string;
}

export const noPolicy: Policy = { limits: [], budgets: [] };

/** The endpoints that a key can be limited to (docs/user/keys.md). */
export const endpointScopes = ['chat', 'messages', 'responses', 'count_tokens', 'models'] as const;

/** State of one of the caller's rate limits when the call was admitted. */
export interface Standing {
  readonly limit: number;
  /** The remaining amount after this call, at least 0. */
  readonly remaining: number;
  /** Ms since the epoch, by the gateway's clock, when the whole limit is available again without further calls. */
  readonly fullAt: number;
}

/** The tightest limit of each kind; absent = there is none. */
export interface Standings {
  readonly requests?: Standing;
  readonly tokens?: Standing;
}

/** The grant of one admitted call, as its path sees it; access/admission.ts makes it. */
export interface Grant {
  readonly standings: Standings;
  /** Output tokens of each choice that were reserved; absent = they are not counted. */
  readonly outputCap?: number;
  /**
   * Whether a budget applies: then reasoning counts, which some vendors produce beyond the cap that they
   * receive. A token limit alone takes it as a debt.
   */
  readonly paid: boolean;
  /** The upstream request must contain the cap: the client set none, or a higher one. */
  readonly sendsCap: boolean;
  /** False: the budget has room for one request only, so that no hedge may run. */
  readonly mayHedge?: boolean;
  /** Note for the client about a cap that the gateway set. */
  readonly capNote?: string;
  /** Tokens of the prompt by its characters; undefined = the reservation did not need them. */
  readonly promptGuess?: number | undefined;
  /**
   * How many output tokens of all choices the budget pays for, now that the upstream has reported its
   * count of the prompt; undefined = as many as were reserved (F64). Never throws.
   */
  outputAfter(usage: Usage): number | undefined | Promise<number | undefined>;
  /**
   * The same before a further request of a paused turn is sent (Q1).
   * @param usage of all requests, with what the further one reads again
   */
  outputOfRound(usage: Usage): number | undefined | Promise<number | undefined>;
  /** The client is gone and the call runs on: it counts as one of its key's calls no more. Never throws. */
  releaseSlots(): void;
}

/** A rate limit or a budget refused the call; the answer says what is left of the limits. */
export class LimitError extends GatewayError {
  readonly standings: Standings;
  /** The counter that refused: `key:a1b2c3d4:requests`, `team:research:month`. */
  readonly limit: string;

  constructor(
    code: 'rate_limited' | 'budget_exhausted',
    message: string,
    {
      standings,
      limit,
      ...options
    }: GatewayErrorOptions & { readonly standings: Standings; readonly limit: string },
  ) {
    super(code, message, options);
    this.standings = standings;
    this.limit = limit;
  }
}

/** The cost that members of a request may add to that of its prompt, its cap and its price. */
export interface RaisedCost {
  /** Tokens of each answer, whatever the client's cap says. */
  readonly outputAtLeast: number;
  /** Tokens of each answer that are not under the client's cap. */
  readonly extraOutput: number;
  /** Tokens that the provider's tools may read. */
  readonly prompt: number;
  /** Answers that are generated; the client may get fewer of them. */
  readonly answers: number;
  /** Requests that are billed for one. */
  readonly requests: number;
  /** The member that requests an answer in audio or images. */
  readonly sound?: string;
  readonly pictures?: string;
  /** The member whose cost has no known bound. */
  readonly unbounded?: string;
}
