/** The policies that apply to a call, prepared for reservations: named counters, globs and windows. */
import { Glob, type ModelNames, withoutDate } from '../core/model-names.ts';
import type { Budget, RateLimit } from '../core/policy.ts';
import type { BudgetWindow } from '../store/calls.ts';
import type { ConcurrencyItem, RequestsItem } from '../store/counters/counters.ts';
import type { HeldPolicy, Holder } from './policies.ts';
import { windowAt } from './windows.ts';

/** A rate limit, its holder, and its counter. */
export class HeldLimit {
  readonly holder: Holder;
  readonly limit: RateLimit;
  readonly counter: string;
  readonly #glob: Glob | undefined;
  /** The same without its date: an undated name may refer to it. */
  readonly #undated: Glob | undefined;

  constructor(holder: Holder, limit: RateLimit) {
    this.holder = holder;
    this.limit = limit;
    const { kind, model } = limit;
    const own = `${holder.kind}:${holder.name}:${kind}`;
    this.counter = model === undefined ? own : `${own}:${model}`;
    if (model === undefined) return;
    const pattern = model.trim().toLowerCase();
    const undated = withoutDate(pattern);
    this.#glob = new Glob(pattern);
    if (undated !== pattern) this.#undated = new Glob(undated);
  }

  get everyModel(): boolean {
    return this.#glob === undefined;
  }

  covers({ own, families }: ModelNames): boolean {
    const glob = this.#glob;
    if (glob === undefined) return true;
    const fits = (name: string): boolean => glob.matches(name);
    if (own.some(fits) || families.some(fits)) return true;
    const undated = this.#undated;
    return undated !== undefined && own.some((name) => undated.matches(name));
  }
}

/** A budget, its holder, and its current window. */
export class HeldBudget {
  readonly holder: Holder;
  readonly budget: Budget;
  readonly counter: string;
  #window: BudgetWindow | undefined;

  constructor(holder: Holder, budget: Budget) {
    this.holder = holder;
    this.budget = budget;
    this.counter = `${holder.kind}:${holder.name}:${budget.per}`;
  }

  /** Computed once per window; a clock that goes back stays in the window that has begun (G17). */
  window(now: number): BudgetWindow {
    const known = this.#window;
    if (known !== undefined && (known.endsAt === undefined || now < known.endsAt)) return known;
    const { name, endsAt } = windowAt(this.budget.per, this.budget.timeZone, now);
    this.#window = {
      counter: this.counter,
      window: name,
      ...(endsAt === undefined ? {} : { endsAt }),
    };
    return this.#window;
  }
}

/** By kind, in the order of the policies, which is the order of the reservations. */
export class HeldLimits {
  readonly concurrent: readonly HeldLimit[];
  readonly requests: readonly HeldLimit[];
  readonly tokens: readonly HeldLimit[];
  readonly budgets: readonly HeldBudget[];
  /** Reserves that are the same for every call. */
  readonly slots: readonly ConcurrencyItem[];
  readonly rates: readonly RequestsItem[];
  readonly #sameForAll: boolean;
  #ofNames: WeakMap<ModelNames, HeldLimits> | undefined;
  #windows: readonly BudgetWindow[] = [];

  private constructor(limits: readonly HeldLimit[], budgets: readonly HeldBudget[]) {
    const ofKind = (kind: RateLimit['kind']): readonly HeldLimit[] =>
      limits.filter(({ limit }) => limit.kind === kind);
    this.concurrent = ofKind('concurrent');
    this.requests = ofKind('requests');
    this.tokens = ofKind('tokens');
    this.budgets = budgets;
    this.slots = this.concurrent.map(({ counter, limit }) => ({ counter, most: limit.amount }));
    this.rates = this.requests.map(({ counter, limit }) => ({ counter, perMinute: limit.amount }));
    this.#sameForAll = limits.every((limit) => limit.everyModel);
  }

  static of(policies: readonly HeldPolicy[]): HeldLimits {
    const limits = policies.flatMap(({ holder, policy }) =>
      policy.limits.map((limit) => new HeldLimit(holder, limit)),
    );
    const budgets = policies.flatMap(({ holder, policy }) =>
      policy.budgets.map((budget) => new HeldBudget(holder, budget)),
    );
    return new HeldLimits(
      strictest(limits, ({ limit }) => limit.amount),
      strictest(budgets, ({ budget }) => budget.nanodollars),
    );
  }

  get none(): boolean {
    return this.budgets.length === 0 && this.tokens.length === 0 && this.countless;
  }

  /** Windows of its budgets, in their order. The same array until one of them ends. */
  windows(now: number): readonly BudgetWindow[] {
    const { budgets } = this;
    for (let i = 0; i < budgets.length; i++) {
      if (budgets[i]?.window(now) !== this.#windows[i]) {
        this.#windows = budgets.map((budget) => budget.window(now));
        break;
      }
    }
    return this.#windows;
  }

  /** Nothing limits a call that takes no tokens and costs nothing. */
  get countless(): boolean {
    return this.concurrent.length === 0 && this.requests.length === 0;
  }

  /** Whether the limits are the same for all models. */
  get sameForAll(): boolean {
    return this.#sameForAll;
  }

  /** The limits for one model; the same object for the same names. */
  of(names: ModelNames): HeldLimits {
    if (this.#sameForAll) return this;
    this.#ofNames ??= new WeakMap();
    let found = this.#ofNames.get(names);
    if (found === undefined) {
      const limits = [...this.concurrent, ...this.requests, ...this.tokens];
      found = new HeldLimits(
        limits.filter((limit) => limit.covers(names)),
        this.budgets,
      );
      this.#ofNames.set(names, found);
    }
    return found;
  }
}

/** A counter is named once: of two limits that share it the smaller one applies. */
function strictest<T extends { readonly counter: string }>(
  held: readonly T[],
  amountOf: (each: T) => number,
): readonly T[] {
  const byCounter = new Map<string, T>();
  for (const each of held) {
    const known = byCounter.get(each.counter);
    if (known === undefined || amountOf(each) < amountOf(known)) byCounter.set(each.counter, each);
  }
  return [...byCounter.values()];
}
