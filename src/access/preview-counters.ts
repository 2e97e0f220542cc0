/** Counters that answer a reservation without reserving anything, for previews. */
import type {
  Balance,
  Counters,
  CounterState,
  ReserveRequest,
  ReserveResult,
} from '../store/counters/counters.ts';
import type { HeldLimits } from './held-limits.ts';
import type { Holder } from './policies.ts';

/** A limit of the key, its team or its tags, and what one call would reserve. */
export interface PreviewedLimit {
  readonly kind: 'concurrent' | 'requests' | 'tokens' | 'budget';
  readonly holder: Holder;
  /** Calls, calls or tokens per minute; nanodollars for a budget. */
  readonly limit: number;
  /** In the same unit. */
  readonly takes: number;
  /** Glob of the models that it applies to; absent = all. */
  readonly model?: string;
  /**
   * For a budget: its period and window, and the nanodollars that are left of it without what running calls
   * reserved.
   */
  readonly budget?: { readonly per: string; readonly window: string; readonly left: number };
}

type ReadCounters = Pick<Counters, 'wall' | 'balance'>;

export class PreviewCounters implements Counters {
  readonly #counters: ReadCounters;
  #reserve: ReserveRequest | undefined;
  /** The remaining amounts of the last reservation's budgets, in its order. */
  #left: readonly number[] = [];

  constructor(counters: ReadCounters) {
    this.#counters = counters;
  }

  wall(): number {
    return this.#counters.wall();
  }

  /** Refused if a budget has too little left; rates and concurrency count as free. */
  async reserve(request: ReserveRequest): Promise<ReserveResult> {
    this.#reserve = request;
    const balances = await Promise.all(
      request.budgets.map((budget) => this.#counters.balance(budget.counter, budget.window)),
    );
    this.#left = request.budgets.map(({ nanodollars }, i) => leftOf(nanodollars, balances[i]));
    const requests = request.requests.map(({ counter, perMinute }) => full(counter, perMinute));
    const tokens = request.tokens.map(({ counter, perMinute }) => full(counter, perMinute));
    const tooLong = request.tokens.findIndex(({ amount, perMinute }) => amount > perMinute);
    const state = tokens[tooLong];
    if (state !== undefined) {
      const refused = { kind: 'tokens', index: tooLong, state, waitMs: undefined } as const;
      return { granted: false, ...refused, requests, tokens };
    }
    const budgets = request.budgets.map((budget, i) => ({
      counter: budget.counter,
      window: budget.window,
      limit: budget.nanodollars,
      remaining: this.#left[i] ?? 0,
      resetMs: 0,
    }));
    const index = budgets.findIndex(
      ({ remaining }, i) => (request.budgets[i]?.amount ?? 0) > remaining,
    );
    const short = budgets[index];
    if (short === undefined) return { granted: true, requests, tokens, budgets };
    const open = balances[index]?.open ?? 0;
    const refused = { kind: 'budget', index, state: short, waitMs: undefined, open } as const;
    return { granted: false, ...refused, requests, tokens };
  }

  /** The limits and budgets of the last reservation; includes budgets even if the call is free or its price is unknown. */
  limits(held: HeldLimits): readonly PreviewedLimit[] {
    const { concurrent, requests, tokens, budgets } = held;
    const reserved = this.#reserve;
    const rates = [...concurrent, ...requests, ...tokens].map(({ holder, limit, counter }) => {
      const { kind, amount, model } = limit;
      const taken = reserved?.tokens.find((each) => each.counter === counter)?.amount ?? 0;
      const takes = kind === 'tokens' ? taken : 1;
      return { kind, holder, limit: amount, takes, ...(model === undefined ? {} : { model }) };
    });
    const money = budgets.map((each) => {
      const index = reserved?.budgets.findIndex(({ counter }) => counter === each.counter) ?? -1;
      const { nanodollars, per } = each.budget;
      const { window } = each.window(this.wall());
      return {
        kind: 'budget' as const,
        holder: each.holder,
        limit: nanodollars,
        takes: reserved?.budgets[index]?.amount ?? 0,
        budget: { per, window, left: this.#left[index] ?? nanodollars },
      };
    });
    return [...rates, ...money];
  }

  balance(counter: string, window: string): Balance | Promise<Balance> {
    return this.#counters.balance(counter, window);
  }

  settle(): void {}

  releaseSlots(): void {}

  healthy(): boolean {
    return true;
  }

  async close(): Promise<void> {}
}

function leftOf(nanodollars: number, balance: Balance | undefined): number {
  return Math.max(0, nanodollars - (balance?.settled ?? 0) - (balance?.open ?? 0));
}

function full(counter: string, limit: number): CounterState {
  return { counter, limit, remaining: limit, resetMs: 0 };
}
