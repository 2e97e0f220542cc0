/** Part of the composition root: limits, prices, and who is notified. */
import { Admission } from '../access/admission.ts';
import {
  BudgetWatch,
  type BudgetEvent,
  type BudgetNote,
  type BudgetReading,
  type BudgetWatching,
} from '../access/budget-watch.ts';
import { Overruns } from '../access/overruns.ts';
import type { PolicySource } from '../access/policies.ts';
import type { PriceTable } from '../access/prices.ts';
import { Settlement, type RequestedItems, type SettlementDeps } from '../access/settle.ts';
import { overEverywhere } from '../access/windows.ts';
import type { JsonObject } from '../json/value.ts';
import { dollarsNumber, dollarsText } from '../core/money.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { requestedImages, requestedSearches, requestedTier } from '../gateway/call-size.ts';
import type { Call } from '../core/call.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { Spent } from '../store/calls.ts';
import type { Counters } from '../store/counters/counters.ts';
import { MemoryCounters } from '../store/counters/memory-counters.ts';
import type { LeaseExpiry } from '../store/leases/lease-expiry.ts';
import type { CallStore } from '../store/store.ts';

export interface OpenedCounters {
  readonly counters: Counters;
  /** The spending of budgets when they were opened. */
  readonly spent: readonly Spent[];
  /** Ends the leases of other gateways that died. */
  readonly expiry?: LeaseExpiry;
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
  const spent = await store.spent(overEverywhere(clock.wall()));
  const counters = new MemoryCounters(clock);
  counters.restore(spent);
  return { counters, spent };
}

export interface LimitsOptions
  extends OpenedCounters, Pick<SettlementDeps<Call>, 'ledger' | 'observe'> {
  /** The gateway's own. */
  readonly clock: Pick<Clock, 'wall'>;
  readonly policies: PolicySource;
  /** The current one, or that of a call which began then, monotonic ms: a reload replaces it. */
  readonly prices: (startedAt?: number) => Pick<PriceTable, 'find' | 'findAnswered' | 'otherwise'>;
  readonly random: () => number;
  readonly log: Log;
  /** Called when a budget passes a threshold, in addition to the log line. */
  readonly tell: (type: string, data: JsonObject) => void;
  /** Counts refusals and thresholds; absent = they are not counted. */
  readonly metrics?: Pick<Metrics, 'limitRefusals' | 'budgetEvents'>;
  /** Called where another process watches the spending of budgets. */
  readonly noteBudget?: (note: BudgetNote) => void;
}

/** The parts of limits, budgets and prices that the path of calls needs. */
export interface Limits {
  readonly admission: Admission;
  readonly settlement: Settlement<Call>;
  /** The spending of budgets by the ledger, if other gateways spend too. */
  heard(spent: readonly Spent[]): void;
  /** How far budgets are used. @param now ms since the epoch */
  budgets(now: number): readonly BudgetReading[];
  /** An event of a budget in another process. */
  noted(note: BudgetNote): void;
}

export function createLimits(options: LimitsOptions): Limits {
  const { counters, clock, spent, policies, prices, random, metrics, noteBudget, log } = options;
  const own = ownWatch(options);
  const watch = noteBudget === undefined ? own : watchElsewhere(noteBudget);
  watch.restore(spent);
  const admission = new Admission({
    counters,
    clock,
    policies,
    prices,
    random,
    notCounted: logsOnce(log),
    overruns: new Overruns(clock),
    watch,
    refused: (kind, holder) => metrics?.limitRefusals.add([kind, holder]),
  });
  const { ledger, observe } = options;
  return {
    admission,
    settlement: new Settlement<Call>({ prices, watch, pieces, ledger, observe }),
    heard: (more) => watch.restore(more),
    budgets: (now) => watch.readings(now),
    noted: (note) => own.noted(note),
  };
}

/** Pairs of a tag and a key that were logged. */
const maxWarned = 1000;

function logsOnce(log: Log): (tag: string, keyId: string) => void {
  const warned = new Set<string>();
  return (tag, key) => {
    const pair = `${key} ${tag}`;
    if (warned.has(pair) || warned.size >= maxWarned) return;
    warned.add(pair);
    log.warn('tag_not_counted', { tag, key });
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

const pieces: RequestedItems<Call> = {
  images: ({ source, dialect }) => requestedImages(source, dialect),
  searches: ({ source, dialect }, target) =>
    requestedSearches(dialect.describe(source), dialect, target)?.unreported ?? 0,
  serviceTier: ({ source, dialect }, target) =>
    requestedTier(dialect.describe(source), dialect, target),
};

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
