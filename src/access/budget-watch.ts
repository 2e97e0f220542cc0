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

interface Watched {
  /** Known from the first call on that it counts for. */
  held?: HeldBudget;
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
      else this.#watched.set(counter, { window, spent: nanodollars, told: -1 });
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

  /** A call was settled. @param now the ms since the epoch at which it was admitted. */
  spent(held: HeldBudget, nanodollars: number, now: number): void {
    const watched = this.#of(held, now);
    watched.spent += nanodollars;
    this.#look(held, watched, { now, refused: false });
  }

  /** A call was refused for want of money. */
  refused(held: HeldBudget, now: number): void {
    this.#look(held, this.#of(held, now), { now, refused: true });
  }

  /** What another process saw. */
  noted({ holder, budget, now, spent }: BudgetNote): void {
    const held = new HeldBudget(holder, budget);
    if (spent === undefined) this.refused(held, now);
    else this.spent(held, spent, now);
  }

  #of(held: HeldBudget, now: number): Watched {
    const { window } = held.window(now);
    let watched = this.#watched.get(held.counter);
    if (watched === undefined || watched.window < window) {
      watched = { window, spent: 0, told: 0 };
      this.#watched.set(held.counter, watched);
    }
    watched.held = held;
    if (watched.told === -1) watched.told = reached(held, watched.spent);
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

function reached({ budget }: HeldBudget, spent: number): Threshold | 0 {
  // A budget of nothing is no budget to watch; its refusals tell.
  if (budget.nanodollars === 0) return 0;
  const share = (spent / budget.nanodollars) * 100;
  return thresholds.findLast((threshold) => share >= threshold) ?? 0;
}
