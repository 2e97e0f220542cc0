/** What one admitted call may use, as its path sees it; access/admission.ts makes it. */
import type { Usage } from './generation.ts';

/** Where a rate limit of the caller stood when the call was admitted. */
export interface Standing {
  readonly limit: number;
  /** What was left behind this call, not below 0. */
  readonly remaining: number;
  /** Ms since the epoch at which all of it is there again if nobody calls. */
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
  /** The upstream must be told the cap: the client said none, or more. */
  readonly tellsCap: boolean;
  /** What the client asked for, where the cap is lower because a budget has no room for more. */
  readonly askedOutput?: number;
  /**
   * How many output tokens of all choices the budget pays for, now that the upstream has reported its
   * count of the prompt; undefined = as many as were reserved (F64). Never throws.
   */
  outputAfter(usage: Usage): number | undefined | Promise<number | undefined>;
}
