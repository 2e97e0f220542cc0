/**
 * The counters of several gateways. Budgets are leased from PostgreSQL (budget-leases.ts); rates and slots are
 * counted in Redis (redis-rates.ts) where it is configured, else in PostgreSQL.
 *
 * A reservation takes its money first: that usually needs no round trip, and is undone without one where a rate refuses.
 */
import type { Clock, Log } from '../../core/runtime.ts';
import type { CallRow } from '../calls.ts';
import { StoreError } from '../store-error.ts';
import type { BudgetLeases } from '../leases/budget-leases.ts';
import type {
  Balance,
  Counters,
  ReserveRequest,
  ReserveResult,
  RateCounters,
  Used,
} from './counters.ts';
import { MemoryCounters } from './memory-counters.ts';

export interface SharedCountersOptions {
  readonly rates: RateCounters;
  readonly budgets: BudgetLeases;
  readonly clock: Clock;
  readonly log: Log;
  /** What calls with a budget get where PostgreSQL is away and their lease is used up. */
  readonly onStoreLoss: 'closed' | 'open';
}

/** Per budget and gateway, in nanodollars, where budgets are open without PostgreSQL. */
const openCap = 1_000_000_000;
const warnEveryMs = 60_000;
const unused: Used = { tokens: 0, nanodollars: 0 };

export class SharedCounters implements Counters {
  readonly #options: SharedCountersOptions;
  /** Capped budgets, while PostgreSQL is away. */
  readonly #capped: MemoryCounters;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SharedCountersOptions) {
    this.#options = options;
    this.#capped = new MemoryCounters(options.clock);
  }

  wall(): number {
    return this.#options.budgets.wall();
  }

  reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult> {
    const { budgets, rates } = this.#options;
    if (request.budgets.length === 0) return rates.reserve(request);
    const money = budgets.reserve(request);
    const hasRates =
      request.concurrent.length + request.requests.length + request.tokens.length > 0;
    if (!(money instanceof Promise) && !hasRates) return money;
    return this.#reserveAll(request, { money, hasRates });
  }

  settle(callId: string, used: Used): void {
    const { budgets, rates } = this.#options;
    budgets.settle(callId, used);
    this.#capped.settle(callId, used);
    rates.settle(callId, used);
  }

  releaseSlots(callId: string): void {
    this.#options.rates.releaseSlots(callId);
  }

  balance(counter: string, window: string): Promise<Balance> {
    return this.#options.budgets.balance(counter, window);
  }

  written(rows: readonly CallRow[]): void {
    this.#options.budgets.written(rows);
  }

  healthy(): boolean {
    const { rates, budgets } = this.#options;
    return rates.healthy() && budgets.healthy();
  }

  async close(): Promise<void> {
    await Promise.all([this.#options.rates.close(), this.#options.budgets.close()]);
  }

  async #reserveAll(
    request: ReserveRequest,
    { money, hasRates }: { money: ReserveResult | Promise<ReserveResult>; hasRates: boolean },
  ): Promise<ReserveResult> {
    const { rates } = this.#options;
    const paid = money instanceof Promise ? await this.#paid(request, money) : money;
    if (!hasRates) return paid;
    const unpaid = { ...request, budgets: [] };
    if (!paid.granted) {
      // A rate that refuses too is the one that is named.
      const peeked = await rates.reserve(unpaid, true);
      const { requests, tokens } = peeked;
      if (peeked.granted) return { ...paid, requests, tokens };
      const { waitMs } = peeked;
      const isEndless = waitMs === undefined || paid.waitMs === undefined;
      return { ...peeked, waitMs: isEndless ? undefined : Math.max(waitMs, paid.waitMs) };
    }
    try {
      const taken = await rates.reserve(unpaid);
      if (taken.granted) return { ...paid, requests: taken.requests, tokens: taken.tokens };
      this.#giveBack(request);
      return taken;
    } catch (error) {
      this.#giveBack(request);
      throw error;
    }
  }

  #giveBack({ callId }: ReserveRequest): void {
    this.#options.budgets.settle(callId, unused);
    this.#capped.settle(callId, unused);
  }

  /** @throws StoreError where budgets cannot be counted */
  async #paid(request: ReserveRequest, money: Promise<ReserveResult>): Promise<ReserveResult> {
    try {
      return await money;
    } catch (error) {
      const mayOpen = this.#options.onStoreLoss === 'open' && error instanceof StoreError;
      if (!mayOpen || error.kind !== 'unavailable') throw error;
      this.#warn();
      const { callId, budgets } = request;
      const capped = budgets.map((budget) => ({
        ...budget,
        nanodollars: Math.min(budget.nanodollars, openCap),
      }));
      const none = { concurrent: [], requests: [], tokens: [] };
      return this.#capped.reserve({ callId, ...none, budgets: capped });
    }
  }

  #warn(): void {
    const now = this.#options.clock.now();
    if (now - this.#warnedAt < warnEveryMs) return;
    this.#warnedAt = now;
    this.#options.log.error('budgets_capped', { dollars: openCap / 1e9 });
  }
}
