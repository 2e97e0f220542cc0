/**
 * The counters of several gateways. Budgets are leased from PostgreSQL (budget-leases.ts); rates and places are
 * counted in Redis (redis-rates.ts) where it is configured, else in PostgreSQL.
 *
 * A draw takes its money first: that needs no round trip as a rule, and is undone without one where a rate refuses.
 */
import type { Clock, Log } from '../../core/runtime.ts';
import type { CallRow } from '../calls.ts';
import { StoreError } from '../store-error.ts';
import type { BudgetLeases } from '../leases/budget-leases.ts';
import type { Balance, Counters, Draw, DrawResult, RateCounters, Used } from './counters.ts';
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

  draw(draw: Draw): DrawResult | Promise<DrawResult> {
    const { budgets, rates } = this.#options;
    if (draw.budgets.length === 0) return rates.draw(draw);
    const money = budgets.draw(draw);
    const hasRates = draw.concurrent.length + draw.requests.length + draw.tokens.length > 0;
    if (!(money instanceof Promise) && !hasRates) return money;
    return this.#drawAll(draw, { money, hasRates });
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

  async #drawAll(
    draw: Draw,
    { money, hasRates }: { money: DrawResult | Promise<DrawResult>; hasRates: boolean },
  ): Promise<DrawResult> {
    const { rates } = this.#options;
    const paid = await this.#paid(draw, money);
    if (!hasRates) return paid;
    const unpaid = { ...draw, budgets: [] };
    if (!paid.granted) {
      // A rate that refuses too is the one that is named.
      const peeked = await rates.draw(unpaid, true);
      const { requests, tokens } = peeked;
      if (peeked.granted) return { ...paid, requests, tokens };
      const { waitMs } = peeked;
      const isEndless = waitMs === undefined || paid.waitMs === undefined;
      return { ...peeked, waitMs: isEndless ? undefined : Math.max(waitMs, paid.waitMs) };
    }
    try {
      const taken = await rates.draw(unpaid);
      if (taken.granted) return { ...paid, requests: taken.requests, tokens: taken.tokens };
      this.#giveBack(draw);
      return taken;
    } catch (error) {
      this.#giveBack(draw);
      throw error;
    }
  }

  #giveBack({ callId }: Draw): void {
    this.#options.budgets.settle(callId, unused);
    this.#capped.settle(callId, unused);
  }

  /** @throws StoreError where budgets cannot be counted */
  async #paid(draw: Draw, money: DrawResult | Promise<DrawResult>): Promise<DrawResult> {
    try {
      return await money;
    } catch (error) {
      const mayOpen = this.#options.onStoreLoss === 'open' && error instanceof StoreError;
      if (!mayOpen || error.kind !== 'unavailable') throw error;
      this.#warn();
      const { callId, budgets } = draw;
      const capped = budgets.map((budget) => ({
        ...budget,
        nanodollars: Math.min(budget.nanodollars, openCap),
      }));
      const none = { concurrent: [], requests: [], tokens: [] };
      return this.#capped.draw({ callId, ...none, budgets: capped });
    }
  }

  #warn(): void {
    const now = this.#options.clock.now();
    if (now - this.#warnedAt < warnEveryMs) return;
    this.#warnedAt = now;
    this.#options.log.error('budgets_capped', { dollars: openCap / 1e9 });
  }
}
