/**
 * Watches the spending of budgets and reports 50, 80 and 100 percent once per window. A hard budget refuses
 * calls before its last cent is spent, so the first refusal counts as 100 percent.
 */
import type { Budget, BudgetPeriod } from '../core/policy.ts';
import type { BudgetWindow, Spent } from '../store/calls.ts';
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
  /** A call was refused because the budget is exhausted. */
  readonly refused: boolean;
}

/** The spending of a budget in its window. */
export interface BudgetReading {
  readonly holder: Holder;
  readonly per: BudgetPeriod;
  readonly budgetNanodollars: number;
  readonly spentNanodollars: number;
}

/** The time of a reservation, and the budget window that it belongs to. */
export interface CallDrew {
  /** Ms since the epoch, by the clock of the counters. */
  readonly at: number;
  /** The window that pays, whenever the call ends. */
  readonly window: BudgetWindow;
}

/** The amount that a call spent of a budget. */
export interface CallSpent extends CallDrew {
  readonly nanodollars: number;
}

/** A budget event of another process of the gateway. */
export interface BudgetNote extends CallDrew {
  readonly holder: Holder;
  readonly budget: Budget;
  /** Nanodollars; absent = a call was refused. */
  readonly spent?: number;
}

/** The parts of a BudgetWatch that readers of spending use. */
export type BudgetWatching = Pick<BudgetWatch, 'restore' | 'readings' | 'spent' | 'refused'>;

/** This many amounts of one budget are remembered per window; then the oldest is forgotten. */
const maxAmounts = 16;

interface Watched {
  /** The budget as the most recently admitted call saw it; known from the first call on. */
  held?: HeldBudget;
  /** When that call was admitted. */
  heldAt: number;
  window: BudgetWindow;
  spent: number;
  /**
   * The highest reported threshold of each amount (nanodollars) that the budget has had: a call or process that
   * knows only an older amount reports nothing about the current one.
   */
  readonly notified: Map<number, Threshold | 0>;
}

export class BudgetWatch {
  readonly #report: (event: BudgetEvent) => void;
  readonly #watched = new Map<string, Watched>();

  constructor(report: (event: BudgetEvent) => void) {
    this.#report = report;
  }

  /** Spending by the ledger: at the start, and periodically if other instances spend too. */
  restore(spent: readonly Spent[]): void {
    for (const { counter, window, nanodollars } of spent) {
      const known = this.#watched.get(counter);
      if (known?.window.window === window) known.spent = Math.max(known.spent, nanodollars);
      // A previous process has reported it: a restart reports nothing again.
      else if (known === undefined || known.window.window < window) {
        this.#watched.set(counter, unheld({ counter, window }, nanodollars));
      }
    }
  }

  /** Budgets in their current window that calls of this process counted for. */
  readings(now: number): readonly BudgetReading[] {
    const found: BudgetReading[] = [];
    for (const { held, window, spent } of this.#watched.values()) {
      if (held === undefined || (window.endsAt !== undefined && window.endsAt <= now)) continue;
      const { holder, budget } = held;
      const { per, nanodollars } = budget;
      found.push({ holder, per, budgetNanodollars: nanodollars, spentNanodollars: spent });
    }
    return found;
  }

  /** A call was settled. */
  spent(held: HeldBudget, call: CallSpent): void {
    const watched = this.#of(held, call);
    if (watched === undefined) return;
    watched.spent += call.nanodollars;
    // A call that was admitted before the budget changed may end after the change.
    this.#check(watched.held ?? held, watched, false);
  }

  /** A call was refused because the budget is exhausted. */
  refused(held: HeldBudget, call: CallDrew): void {
    const watched = this.#of(held, call);
    if (watched !== undefined) this.#check(held, watched, true);
  }

  /** An event of another process. */
  noted({ holder, budget, at, window, spent }: BudgetNote): void {
    const held = new HeldBudget(holder, budget);
    if (spent === undefined) this.refused(held, { at, window });
    else this.spent(held, { nanodollars: spent, at, window });
  }

  /** Undefined for a past window, since spending there does not affect the current one. */
  #of(held: HeldBudget, { at, window }: CallDrew): Watched | undefined {
    let watched = this.#watched.get(held.counter);
    if (watched === undefined || watched.window.window < window.window) {
      watched = unheld(window, 0);
      this.#watched.set(held.counter, watched);
    }
    if (watched.window.window !== window.window) return undefined;
    // The ledger's data has no end of the window.
    watched.window = window;
    begin(watched, held);
    if (at >= watched.heldAt) {
      watched.held = held;
      watched.heldAt = at;
    }
    return watched;
  }

  #check({ holder, budget }: HeldBudget, watched: Watched, refused: boolean): void {
    const { notified, spent } = watched;
    const { nanodollars, per } = budget;
    const threshold = refused ? 100 : reached(budget, spent);
    if (threshold === 0 || threshold <= (notified.get(nanodollars) ?? 0)) return;
    notified.set(nanodollars, threshold);
    const { window, endsAt } = watched.window;
    this.#report({
      threshold,
      holder,
      per,
      window,
      ...(endsAt === undefined ? {} : { endsAt }),
      budgetNanodollars: nanodollars,
      spentNanodollars: spent,
      refused,
    });
  }
}

function unheld(window: BudgetWindow, spent: number): Watched {
  return { window, spent, notified: new Map(), heldAt: -Infinity };
}

/**
 * For a new amount, thresholds that it has already reached and that were reported for the previous amount are
 * not reported again.
 */
function begin({ notified, held, spent }: Watched, { budget }: HeldBudget): void {
  if (notified.has(budget.nanodollars)) return;
  const already = reached(budget, spent);
  const present = held?.budget.nanodollars;
  const before = present === undefined ? already : (notified.get(present) ?? 0);
  const first = [...notified.keys()].find((amount) => amount !== present);
  if (first !== undefined && notified.size >= maxAmounts) notified.delete(first);
  notified.set(budget.nanodollars, before < already ? before : already);
}

function reached(budget: Budget, spent: number): Threshold | 0 {
  // A budget of 0 has no thresholds; its refusals are reported.
  if (budget.nanodollars === 0) return 0;
  const share = (spent / budget.nanodollars) * 100;
  return thresholds.findLast((threshold) => share >= threshold) ?? 0;
}
