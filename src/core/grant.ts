/** What one admitted call may use, as its path sees it; access/admission.ts makes it. */
import { GatewayError, type GatewayErrorOptions } from './errors.ts';
import type { Usage } from './generation.ts';

/** Where a rate limit of the caller stood when the call was admitted. */
export interface Standing {
  readonly limit: number;
  /** What was left behind this call, not below 0. */
  readonly remaining: number;
  /** Ms since the epoch, by the gateway's own clock, at which all of it is there again if nobody calls. */
  readonly fullAt: number;
}

/** The tightest limit of each kind; absent = there is none. */
export interface Standings {
  readonly requests?: Standing;
  readonly tokens?: Standing;
}

export interface Grant {
  readonly standings: Standings;
  /** Output tokens of each choice that were reserved; absent = nobody counts them. */
  readonly outputCap?: number;
  /**
   * Whether a budget pays: then reasoning counts, which some vendors write beside the cap that they are
   * told. A limit of tokens alone takes it as a debt.
   */
  readonly paid: boolean;
  /** The upstream must be told the cap: the client said none, or more. */
  readonly tellsCap: boolean;
  /** False: the budget has room for one request only, so that no second one may run beside it. */
  readonly mayHedge?: boolean;
  /** What the client is told of a cap that is not its own. */
  readonly capNote?: string;
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
  vacate(): void;
}

/** A rate limit or a budget refused the call; the answer tells where the limits stand. */
export class LimitError extends GatewayError {
  readonly standings: Standings;

  constructor(
    code: 'rate_limited' | 'budget_exhausted',
    message: string,
    { standings, ...options }: GatewayErrorOptions & { readonly standings: Standings },
  ) {
    super(code, message, options);
    this.standings = standings;
  }
}
