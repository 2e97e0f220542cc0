/** What a call cost in the end, and the end of what it held. */
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { Cost, Price } from '../core/price.ts';
import type { BudgetWindow } from '../store/calls.ts';
import type { BudgetWatch } from './budget-watch.ts';
import type { CallGrant } from './call-grant.ts';
import { costOf, noCost } from './cost.ts';
import type { PriceBook } from './prices.ts';
import { servedPrice } from './service-price.ts';

/** A call as far as it got. */
export interface BilledCall {
  /** Absent = nothing limits it. */
  readonly grant?: CallGrant;
  /** Who answered, or would have. */
  readonly target?: { readonly provider: string; readonly model: string };
  /** Ms since the epoch. */
  readonly startedAt: number;
  /** Empty when no upstream worked for it. */
  readonly charged: Usage;
}

/** The members of a ledger row that say what the call cost. */
export interface Bill {
  /** Absent = the price is unknown, which is not 0 (F6). */
  readonly cost?: Cost;
  readonly price?: Price;
  readonly budgets: readonly BudgetWindow[];
  readonly reservedNanodollars?: number;
  readonly overrun?: true;
}

export interface BillingParts {
  /** The current one: a reload replaces it. */
  readonly prices: () => Pick<PriceBook, 'find' | 'otherwise'>;
  readonly watch?: Pick<BudgetWatch, 'spent'>;
}

const noBudgets: readonly BudgetWindow[] = [];

export class Billing {
  readonly #parts: BillingParts;

  constructor(parts: BillingParts) {
    this.#parts = parts;
  }

  /** What the call costs if it ends like this; nothing is settled. */
  bill(call: BilledCall): Bill {
    const { grant, charged } = call;
    if (isNothing(charged)) return { cost: noCost, ...this.#reserved(grant, 0) };
    const price = this.#price(call);
    const cost = price && costOf(price, charged);
    const reserved = this.#reserved(grant, cost?.total ?? 0);
    return cost === undefined || price === undefined ? reserved : { cost, price, ...reserved };
  }

  /** The bill of a call that is over; gives back what it held and did not use. Never throws. */
  settle(call: BilledCall): Bill {
    const bill = this.bill(call);
    const { grant, charged } = call;
    if (grant === undefined) return bill;
    const tokens = (totalInputTokens(charged) ?? 0) + (charged.outputTokens ?? 0);
    grant.settle({ tokens, nanodollars: bill.cost?.total });
    const spent = bill.cost?.total ?? 0;
    if (spent > 0) {
      for (const held of grant.held) this.#parts.watch?.spent(held, spent, call.startedAt);
    }
    return bill;
  }

  #reserved(grant: CallGrant | undefined, spent: number): Bill {
    const reserved = grant?.reserved;
    if (grant === undefined || reserved === undefined) return { budgets: noBudgets };
    return {
      budgets: grant.budgets,
      reservedNanodollars: reserved,
      ...(spent > reserved ? { overrun: true } : {}),
    };
  }

  #price({ grant, target, startedAt, charged }: BilledCall): Price | undefined {
    if (target === undefined) return undefined;
    // A price that changes while a call runs is none of that call's.
    const reserved = grant?.priceOf(target);
    const price = reserved ?? this.#parts.prices().find(target.provider, target.model, startedAt);
    if (price?.service === undefined) return price;
    return servedPrice(price, charged.serviceTier ?? grant?.askedTier);
  }
}

function isNothing(charged: Usage): boolean {
  return totalInputTokens(charged) === undefined && charged.outputTokens === undefined;
}
