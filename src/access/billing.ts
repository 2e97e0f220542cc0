/** What a call cost in the end, and the end of what it held. */
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { Cost, Price } from '../core/price.ts';
import type { BudgetWindow } from '../store/calls.ts';
import type { BudgetWatch } from './budget-watch.ts';
import type { CallGrant } from './call-grant.ts';
import { addedCost, costOf, noCost } from './cost.ts';
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
  /** What has a price by the piece; asked for only where the price has one. */
  readonly pieces?: AskedPieces;
  /** What else was asked for it and may be billed; absent = nothing. */
  readonly beside?: readonly BilledRequest[];
}

/** What nobody reports, and what the request says of it. */
export interface AskedPieces {
  /** Pictures in the prompt. */
  images(): number;
  /** Web searches by that target that count where it reports none. */
  searches(target: BilledRequest['target']): number;
}

/** A request that ran beside the one that counts. */
export interface BilledRequest {
  readonly target: { readonly provider: string; readonly model: string };
  readonly charged: Usage;
}

/** The members of a ledger row that say what the call cost. */
export interface Bill {
  /** What the call is charged for, with what has a price by the piece. */
  readonly charged: Usage;
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

/** A bill while it is made, member by member: spreads take more time and memory. */
type Draft<T> = { -readonly [K in keyof T]: T[K] };

export class Billing {
  readonly #parts: BillingParts;

  constructor(parts: BillingParts) {
    this.#parts = parts;
  }

  /** What the call costs if it ends like this; nothing is settled. */
  bill(call: BilledCall): Bill {
    const nothing = isNothing(call.charged);
    const price = nothing ? undefined : this.#price(call);
    const charged = nothing ? call.charged : withPieces(call, price);
    const own = nothing ? noCost : price && costOf(price, charged);
    const cost = call.beside === undefined ? own : this.#withBeside(own, call);
    const bill: Draft<Bill> = { charged, budgets: noBudgets };
    if (cost !== undefined) bill.cost = cost;
    if (cost !== undefined && price !== undefined) bill.price = price;
    if (call.grant !== undefined) addReserved(bill, call.grant);
    return bill;
  }

  /** Each request at its own price; where one of them is not known, the sum is not. */
  #withBeside(own: Cost | undefined, call: BilledCall): Cost | undefined {
    let sum = own;
    for (const { target, charged } of call.beside ?? []) {
      const asked = { ...call, target, charged };
      const price = this.#price(asked);
      sum = addedCost(sum, price && costOf(price, withPieces(asked, price)));
    }
    return sum;
  }

  /** The bill of a call that is over; gives back what it held and did not use. Never throws. */
  settle(call: BilledCall): Bill {
    const bill = this.bill(call);
    const { grant, charged, beside } = call;
    if (grant === undefined) return bill;
    let tokens = tokensOf(charged);
    for (const each of beside ?? []) tokens += tokensOf(each.charged);
    grant.settle({ tokens, nanodollars: bill.cost?.total });
    const nanodollars = bill.cost?.total ?? 0;
    const { watch } = this.#parts;
    if (nanodollars > 0 && watch !== undefined) {
      const { admittedAt: at, budgets } = grant;
      for (const [i, held] of grant.held.entries()) {
        const window = budgets[i] ?? held.window(at);
        watch.spent(held, { nanodollars, at, window });
      }
    }
    return bill;
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

function addReserved(bill: Draft<Bill>, grant: CallGrant): void {
  const { reserved } = grant;
  if (reserved === undefined) return;
  bill.budgets = grant.budgets;
  bill.reservedNanodollars = reserved;
  if ((bill.cost?.total ?? 0) > reserved) bill.overrun = true;
}

function tokensOf(usage: Usage): number {
  return (totalInputTokens(usage) ?? 0) + (usage.outputTokens ?? 0);
}

/** Counts of pieces that have a price, where nobody reported them: each request of the answer has them. */
function withPieces({ charged, pieces, target }: BilledCall, price: Price | undefined): Usage {
  if (pieces === undefined || target === undefined || price === undefined) return charged;
  const requests = 1 + (charged.earlier?.length ?? 0);
  const images = price.perImage === undefined ? 0 : requests * pieces.images();
  const pictured = images === 0 ? charged : { ...charged, images };
  if (price.webSearch === undefined || charged.webSearches !== undefined) return pictured;
  const webSearches = requests * pieces.searches(target);
  return webSearches === 0 ? pictured : { ...pictured, webSearches };
}

function isNothing(charged: Usage): boolean {
  return totalInputTokens(charged) === undefined && charged.outputTokens === undefined;
}
