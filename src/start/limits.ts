/** Part of the composition root: what calls may use, what they cost, and who is told. */
import { Admission } from '../access/admission.ts';
import { Billing, type AskedPieces, type BilledCall } from '../access/billing.ts';
import {
  BudgetWatch,
  type BudgetEvent,
  type BudgetNote,
  type BudgetReading,
  type BudgetWatching,
} from '../access/budget-watch.ts';
import { CallGrant } from '../access/call-grant.ts';
import type { PolicySource } from '../access/policies.ts';
import type { PriceBook } from '../access/prices.ts';
import type { JsonObject } from '../core/conversation.ts';
import { dollarsNumber, dollarsText } from '../core/money.ts';
import type { Target } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { askedImages, askedSearches } from '../gateway/asked-pieces.ts';
import type { Call } from '../gateway/call.ts';
import type { Receipt, RunningCall } from '../gateway/receipt.ts';
import type { Metrics } from '../server/metrics/metrics.ts';
import { callRow, runningRow } from '../server/call-row.ts';
import type { CallRow, Spent } from '../store/calls.ts';
import type { Counters } from '../store/counters.ts';
import { MemoryCounters } from '../store/memory-counters.ts';
import type { CallStore } from '../store/store.ts';

export interface OpenedCounters {
  readonly counters: Counters;
  /** What budgets had spent when they were opened. */
  readonly spent: readonly Spent[];
  /** Lets go of their server, once they are closed. */
  release?(): void;
}

export interface CountersOptions {
  readonly store: Pick<CallStore, 'settleOrphans' | 'spent'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The counters of one process. What a crash left running is settled first, as it was last known (F81),
 * so that budgets begin with all that was spent.
 * @throws StoreError
 */
export async function openCounters(options: CountersOptions): Promise<OpenedCounters> {
  const { store, clock, log } = options;
  const orphans = await store.settleOrphans(Number.POSITIVE_INFINITY);
  if (orphans.length > 0) log.warn('calls_recovered', { calls: orphans.length });
  const spent = await store.spent(clock.wall());
  const counters = new MemoryCounters(clock);
  counters.restore(spent);
  return { counters, spent };
}

export interface LimitsOptions extends OpenedCounters {
  /** The gateway's own. */
  readonly clock: Pick<Clock, 'wall'>;
  readonly policies: PolicySource;
  /** The current one: a reload replaces it. */
  readonly prices: () => Pick<PriceBook, 'find' | 'otherwise'>;
  readonly random: () => number;
  readonly log: Log;
  /** Told when a budget passes a threshold, besides the log. */
  readonly tell: (type: string, data: JsonObject) => void;
  /** Where refusals and thresholds are counted; absent = nowhere. */
  readonly metrics?: Pick<Metrics, 'limitRefusals' | 'budgetEvents'>;
  /** Where another process watches what budgets spend: it is told. */
  readonly noteBudget?: (note: BudgetNote) => void;
}

/** What the path of calls needs of limits, budgets and prices. */
export interface Limits {
  readonly admission: Admission;
  /** The ledger row of a call that is over; ends what it held. */
  settle(call: Call, receipt: Receipt): CallRow;
  /** What budgets have spent by the ledger, where other gateways spend too. */
  heard(spent: readonly Spent[]): void;
  /** How far budgets are used. @param now ms since the epoch */
  budgets(now: number): readonly BudgetReading[];
  /** What befell a budget in another process. */
  noted(note: BudgetNote): void;
  /** The row of a call that still runs. */
  running(call: Call, soFar: RunningCall): CallRow;
}

export function createLimits(options: LimitsOptions): Limits {
  const { counters, clock, spent, policies, prices, random, metrics, noteBudget } = options;
  const own = ownWatch(options);
  const watch = noteBudget === undefined ? own : watchElsewhere(noteBudget);
  watch.restore(spent);
  const admission = new Admission({
    counters,
    clock,
    policies,
    prices,
    random,
    watch,
    refused: (kind, holder) => metrics?.limitRefusals.add([kind, holder]),
  });
  const billing = new Billing({ prices, watch });
  return {
    admission,
    heard: (more) => watch.restore(more),
    budgets: (now) => watch.readings(now),
    noted: (note) => own.noted(note),
    settle: (call, receipt) => callRow(call, receipt, billing.settle(billed(call, receipt))),
    running: (call, soFar) => runningRow(call, soFar, billing.bill(billed(call, soFar))),
  };
}

function ownWatch({ log, tell, metrics }: LimitsOptions): BudgetWatch {
  return new BudgetWatch((event) => {
    log.warn('budget', eventFields(event));
    tell('budget.threshold', eventJson(event));
    metrics?.budgetEvents.add([String(event.threshold), event.holder.kind]);
  });
}

/** Half of a budget may be spent by each of two processes: one must know of both. */
function watchElsewhere(note: (note: BudgetNote) => void): BudgetWatching {
  return {
    restore: () => undefined,
    readings: () => [],
    spent: ({ holder, budget }, { nanodollars, at, window }) =>
      note({ holder, budget, at, window, spent: nanodollars }),
    refused: ({ holder, budget }, { at, window }) => note({ holder, budget, at, window }),
  };
}

function billed(
  call: Call,
  { target, charged, beside }: Pick<Receipt, 'target' | 'charged' | 'beside'>,
): BilledCall {
  const { grant, startedWall } = call;
  // Member by member, as the rows of the ledger (server/call-row.ts): each call comes by here.
  const made: { -readonly [K in keyof BilledCall]: BilledCall[K] } = {
    startedAt: startedWall,
    charged,
    pieces: piecesOf(call),
  };
  if (grant instanceof CallGrant) made.grant = grant;
  if (target !== undefined) made.target = named(target);
  if (beside.length > 0) {
    made.beside = beside.map((each) => ({ target: named(each.target), charged: each.charged }));
  }
  return made;
}

function piecesOf({ source, dialect, route }: Call): AskedPieces {
  return {
    images: () => askedImages(source),
    searches: ({ provider, model }) => {
      const target = route.targets.find(
        (each) => each.provider.id === provider && each.model === model,
      );
      if (target === undefined) return 0;
      return askedSearches(source.outline, dialect, target)?.unreported ?? 0;
    },
  };
}

function named({ provider, model }: Target): { readonly provider: string; readonly model: string } {
  return { provider: provider.id, model };
}

/** As webhooks send it; amounts are texts, so that every digit arrives. */
function eventJson(event: BudgetEvent): JsonObject {
  const { holder, threshold, per, window, endsAt, refused } = event;
  return {
    threshold,
    holder: { kind: holder.kind, name: holder.name },
    per,
    window,
    ends_at: endsAt === undefined ? null : new Date(endsAt).toISOString(),
    budget_usd: dollarsText(event.budgetNanodollars),
    spent_usd: dollarsText(event.spentNanodollars),
    refused,
  };
}

function eventFields(event: BudgetEvent): { [name: string]: string | number | boolean } {
  const { holder, threshold, per, window, refused } = event;
  return {
    threshold,
    of: `${holder.kind}:${holder.name}`,
    per,
    window,
    budget_usd: dollarsNumber(event.budgetNanodollars),
    spent_usd: dollarsNumber(event.spentNanodollars),
    refused,
  };
}
