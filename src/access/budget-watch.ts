/**
 * Watches what budgets have spent and tells once a window when half, four fifths and all of it is gone.
 * A hard budget refuses before its last cent is spent, so that the first refusal counts as all of it.
 */
import type { Budget, BudgetPeriod } from '../core/policy.ts';
import type { Spent } from '../store/calls.ts';
import { HeldBudget } from './held-limits.ts';
import type { Holder } from './policies.ts';

/** Percent of a budget. */
const thresholds = [50, 80, 100] as const;
export type Threshold = (typeof thresholds)[number];

export interface BudgetEvent {
  readonly threshold: Threshold;
  readonly holder: Holder;
  readonly per: BudgetPeriod;
  /** The window's own name, e.g. `2026-11`. */
  readonly window: string;
  /** Ms since the epoch; absent = never. */
  readonly endsAt?: number;
  readonly budgetNanodollars: number;
  /** Settled calls only. */
  readonly spentNanodollars: number;
  /** A call was refused for want of money. */
  readonly refused: boolean;
}

/** How far a budget is used in its window. */
export interface BudgetReading {
  readonly holder: Holder;
  readonly per: BudgetPeriod;
  readonly budgetNanodollars: number;
  readonly spentNanodollars: number;
}

/** What befell a budget in another process of the gateway. */
export interface BudgetNote {
  readonly holder: Holder;
  readonly budget: Budget;
  /** Ms since the epoch. */
  readonly now: number;
  /** Nanodollars; absent = a call was refused. */
  readonly spent?: number;
}

/** Who is told what budgets spend. */
export type BudgetWatching = Pick<BudgetWatch, 'restore' | 'readings' | 'spent' | 'refused'>;

/** What a call spent of a budget. */
export interface CallSpent {
  readonly nanodollars: number;
  /** Ms since the epoch at which it was admitted. */
  readonly at: number;
  /** The name of the window that it was admitted in: that one paid. */
  readonly window: string;
}

interface Watched {
  /** Known from the first call on that it counts for: as it is for the call that was admitted last. */
  held?: HeldBudget;
  /** When that one was admitted. */
  heldAt: number;
  window: string;
  spent: number;
  /** The highest threshold that was told, 0 before. */
  told: number;
}

export class BudgetWatch {
  readonly #tell: (event: BudgetEvent) => void;
  readonly #watched = new Map<string, Watched>();

  constructor(tell: (event: BudgetEvent) => void) {
    this.#tell = tell;
  }

  /** What the ledger says: at the start, and again and again where others spend too. */
  restore(spent: readonly Spent[]): void {
    for (const { counter, window, nanodollars } of spent) {
      const known = this.#watched.get(counter);
      if (known?.window === window) known.spent = Math.max(known.spent, nanodollars);
      // Told by whoever ran before: a restart is no news.
      else this.#watched.set(counter, { window, spent: nanodollars, told: -1, heldAt: -Infinity });
    }
  }

  /** Budgets whose window is the present one and that calls of this process counted for. */
  readings(now: number): readonly BudgetReading[] {
    const found: BudgetReading[] = [];
    for (const { held, window, spent } of this.#watched.values()) {
      if (held === undefined || held.window(now).window !== window) continue;
      const { holder, budget } = held;
      const { per, nanodollars } = budget;
      found.push({ holder, per, budgetNanodollars: nanodollars, spentNanodollars: spent });
    }
    return found;
  }

  /** A call was settled. */
  spent(held: HeldBudget, { nanodollars, at, window }: CallSpent): void {
    const watched = this.#of(held, at, window);
    if (watched === undefined) return;
    watched.spent += nanodollars;
    this.#look(watched.held ?? held, watched, { now: at, refused: false });
  }

  /** A call was refused for want of money. */
  refused(held: HeldBudget, now: number): void {
    const watched = this.#of(held, now, held.window(now).window);
    if (watched !== undefined) this.#look(held, watched, { now, refused: true });
  }

  /** What another process saw. */
  noted({ holder, budget, now, spent }: BudgetNote): void {
    const held = new HeldBudget(holder, budget);
    if (spent === undefined) this.refused(held, now);
    else this.spent(held, { nanodollars: spent, at: now, window: held.window(now).window });
  }

  /** Undefined for a window that is over: what is spent there now is nothing of the present one. */
  #of(held: HeldBudget, at: number, window: string): Watched | undefined {
    let watched = this.#watched.get(held.counter);
    if (watched === undefined || watched.window < window) {
      watched = { window, spent: 0, told: 0, heldAt: at };
      this.#watched.set(held.counter, watched);
    }
    if (watched.window !== window) return undefined;
    // A call that was admitted before the budget changed ends behind it.
    if (at >= watched.heldAt) adopt(watched, held, at);
    return watched;
  }

  #look(
    held: HeldBudget,
    watched: Watched,
    { now, refused }: { readonly now: number; readonly refused: boolean },
  ): void {
    const threshold = refused ? 100 : reached(held, watched.spent);
    if (threshold === 0 || threshold <= watched.told) return;
    watched.told = threshold;
    const { window, endsAt } = held.window(now);
    this.#tell({
      threshold,
      holder: held.holder,
      per: held.budget.per,
      window,
      ...(endsAt === undefined ? {} : { endsAt }),
      budgetNanodollars: held.budget.nanodollars,
      spentNanodollars: watched.spent,
      refused,
    });
  }
}

/** The budget as it is now. Where its amount is another one, what was told of the old one is no news of it. */
function adopt(watched: Watched, held: HeldBudget, at: number): void {
  const before = watched.held?.budget.nanodollars ?? held.budget.nanodollars;
  const now = reached(held, watched.spent);
  if (watched.told === -1) watched.told = now;
  else if (before !== held.budget.nanodollars) watched.told = Math.min(watched.told, now);
  watched.held = held;
  watched.heldAt = at;
}

function reached({ budget }: HeldBudget, spent: number): Threshold | 0 {
  // A budget of nothing is no budget to watch; its refusals tell.
  if (budget.nanodollars === 0) return 0;
  const share = (spent / budget.nanodollars) * 100;
  return thresholds.findLast((threshold) => share >= threshold) ?? 0;
}
