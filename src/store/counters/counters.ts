/**
 * The counters behind limits and budgets. One `reserve` a call takes everything or nothing; one
 * `settle` gives back what was not used, exactly once (Q3).
 *
 * Where one process counts, all of it is in memory (memory-counters.ts), rebuilt from the ledger at start. Where
 * several gateways count (shared-counters.ts), rates and slots are in Redis (redis-counters.ts) or PostgreSQL
 * (postgres-counters.ts), and budgets are leased from PostgreSQL (budget-leases.ts). One test suite runs on all.
 */
import type { Clock } from '../../core/runtime.ts';
import type { CallRow } from '../calls.ts';

/** Calls at a time. Each taken slot is leased and given back by `settle` or when the lease ends. */
export interface ConcurrencyItem {
  readonly counter: string;
  readonly most: number;
}

/** Requests a minute (GCRA: exact wait, no burst at a window's edge; the burst is `perMinute`). */
export interface RequestsItem {
  readonly counter: string;
  readonly perMinute: number;
}

/**
 * Tokens a minute: a bucket of `perMinute` that refills evenly. `amount` is reserved; what was used
 * instead is settled: the refund is capped at the bucket, debt goes down to one bucket below empty.
 */
export interface TokensItem {
  readonly counter: string;
  readonly perMinute: number;
  readonly amount: number;
}

/** A budget in its current calendar window. */
export interface BudgetItem {
  /** Holder and period, e.g. `key:a1b2c3d4:month`. */
  readonly counter: string;
  /** The window's own name, e.g. `2026-11`, `2026-W47`, `2026-11-21`, `ever`. */
  readonly window: string;
  /** Ms since the epoch; undefined for `ever`. */
  readonly endsAt: number | undefined;
  readonly nanodollars: number;
  /** What the call may cost at most. */
  readonly amount: number;
}

/** Whose call it is: for its row in the ledger, if its worker dies before it reported the call. */
export interface ReservedCall {
  readonly keyId: string;
  readonly team?: string;
  readonly tags: readonly string[];
  readonly endpoint: string;
  readonly model: string;
  /** Ms since the epoch. */
  readonly startedAt: number;
}

/**
 * Everything one call takes. Checked in this order: concurrency, requests, tokens, budgets. A counter
 * is named at most once in a list.
 */
export interface ReserveRequest {
  /** Unique; a reservation that is sent again after a lost answer takes nothing twice. */
  readonly callId: string;
  readonly concurrent: readonly ConcurrencyItem[];
  readonly requests: readonly RequestsItem[];
  readonly tokens: readonly TokensItem[];
  readonly budgets: readonly BudgetItem[];
  /** Only needed with budgets. */
  readonly about?: ReservedCall;
}

/** Where a counter is after a reservation; for the headers of the answer and for messages. */
export interface CounterState {
  readonly counter: string;
  readonly limit: number;
  /** Not below 0. */
  readonly remaining: number;
  /** Ms until it is full again (requests, tokens), or until the window ends (budgets); 0 = is full. */
  readonly resetMs: number;
}

export interface BudgetState extends CounterState {
  /** The window that the call counts for, by which its cost is to be booked. */
  readonly window: string;
}

export interface Granted {
  readonly granted: true;
  /** Of requests, tokens, budgets, in the order of the reservation. */
  readonly requests: readonly CounterState[];
  readonly tokens: readonly CounterState[];
  readonly budgets: readonly BudgetState[];
  /** The instance whose leases pay, where several gateways share budgets (budget-leases.ts). */
  readonly lease?: string;
}

export interface Refused {
  readonly granted: false;
  readonly kind: 'concurrent' | 'requests' | 'tokens' | 'budget';
  /** Index in the reservation's list of that kind. */
  readonly index: number;
  readonly state: CounterState;
  /**
   * Ms after which the same reservation succeeds if no other call comes and no running call ends; undefined =
   * not by waiting alone: a slot must become free, reservations must end, or it never fits.
   */
  readonly waitMs: number | undefined;
  /** All of the reservation, as they are without it, in its order. */
  readonly requests: readonly CounterState[];
  readonly tokens: readonly CounterState[];
  /** Of a budget: nanodollars that running calls hold, and may give back when they end. */
  readonly open?: number;
}

export type ReserveResult = Granted | Refused;

/** What a call used in the end. */
export interface Used {
  readonly tokens: number;
  /** Undefined = the price is unknown: the reservation is given back and nothing is spent. */
  readonly nanodollars: number | undefined;
}

/** A budget's window as it was booked; what counters are restored from. */
export interface Spent {
  readonly counter: string;
  readonly window: string;
  readonly nanodollars: number;
}

/** Where a budget's window is. */
export interface Balance {
  readonly settled: number;
  /** Reserved by running calls. */
  readonly open: number;
}

export interface Counters {
  /** Ms since the epoch by the clock that these counters go by: calendar windows are named by it. */
  wall(): number;
  /**
   * Takes all or nothing; a plain value if no other process is involved, so that a call on one machine
   * waits for no promise.
   * @throws StoreError (also as a rejection) when the counters are not available and must not be guessed.
   */
  reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult>;
  /** Ends the call's reservation. A second time, or for an unknown call, changes nothing. Never throws. */
  settle(callId: string, used: Used): void;
  /** Gives back the slots of a call that runs on; the rest is held until `settle`. Never throws. */
  releaseSlots(callId: string): void;
  /** @throws StoreError as `reserve`. */
  balance(counter: string, window: string): Balance | Promise<Balance>;
  /** Calls that ended here have their rows. Never throws. */
  written?(rows: readonly CallRow[]): void;
  /** Whether reservations can be answered now; false is E18 for calls with limits, and not ready. */
  healthy(): boolean;
  close(): Promise<void>;
}

/** Rates and slots of several gateways: reservations without budgets. */
export interface RateCounters {
  /** Ms since the epoch by the server's clock. */
  wall(): number;
  /**
   * @param peek says whether it fits, and takes nothing
   * @throws StoreError as a rejection
   */
  reserve(request: ReserveRequest, peek?: boolean): Promise<ReserveResult>;
  /** Never throws. */
  settle(callId: string, used: Used): void;
  /** Never throws. */
  releaseSlots(callId: string): void;
  healthy(): boolean;
  close(): Promise<void>;
}

/** How long shared counters hold a slot or tokens of a call that its gateway does not renew. */
export const leaseMs = 30_000;
export const renewEveryMs = 10_000;

// The clock of a server that counts, as known here: set by each answer, advanced by the monotonic clock.

export class ServerTime {
  readonly #clock: Clock;
  #ahead: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The server's time in ms since the epoch, as an answer reported it just now. */
  heard(serverMs: number): void {
    this.#ahead = serverMs - this.#clock.now();
  }

  /** Before the first answer it is this machine's own clock. */
  wall(): number {
    return this.#ahead === undefined ? this.#clock.wall() : this.#clock.now() + this.#ahead;
  }
}
