/**
 * Calls whose gateway died before they were in the ledger: the amount that they held is booked as spent (Q1), since the
 * provider's charge is unknown. If their own row arrives later from the disk of the gateway that served them,
 * it replaces this one.
 */
import { gatewayDied } from '../core/faults.ts';
import { parseOwn } from '../json/parse.ts';
import type { CallRow } from './calls.ts';
import type { BudgetItem, ReservedCall } from './counters/counters.ts';

/** What a call holds of a budget's window. */
export interface LostHold {
  readonly counter: string;
  readonly window: string;
  readonly nanodollars: number;
  readonly about: string | undefined;
}

/** What a hold records about its call, stored as text. */
type About = ReservedCall & { readonly endsAt?: number };

export interface HoldAbout {
  readonly about?: ReservedCall;
  readonly endsAt?: number;
}

export function aboutHold(
  about: ReservedCall | undefined,
  { endsAt }: Pick<BudgetItem, 'endsAt'>,
): string {
  if (about === undefined) return '';
  return JSON.stringify({ ...about, ...(endsAt === undefined ? {} : { endsAt }) });
}

export interface LostLease {
  readonly instance: string;
  /** Of its last statement: an instance that came back may be ended a second time. */
  readonly number: number;
  readonly counter: string;
  readonly window: string;
  readonly endsAt: number | undefined;
  /** The amount without rows in the ledger. */
  readonly nanodollars: number;
  /** Ms since the epoch. */
  readonly at: number;
}

/**
 * The row for a dead instance's lease of one budget. Each budget has its own row, since it is unknown which
 * calls spent it and which budgets they share.
 */
export function lostLease({ instance, number, endsAt, at, ...held }: LostLease): CallRow {
  const { counter } = held;
  const [kind = '', name = ''] = /^(key|team|tag):(.*):/s.exec(counter)?.slice(1) ?? [];
  const about: ReservedCall = {
    keyId: kind === 'key' ? name : '',
    ...(kind === 'team' ? { team: name } : {}),
    tags: kind === 'tag' ? [name] : [],
    endpoint: '',
    model: '',
    startedAt: at,
  };
  const hold = { ...held, about: aboutHold(about, { endsAt }) };
  const notes = `${instance} died: what it had leased of ${counter} and may have spent is booked as spent`;
  return { ...lostCall(lostLeaseId({ instance, number, ...held }), [hold], at), notes };
}

/** The id of that row. */
export function lostLeaseId({
  instance,
  number,
  counter,
  window,
}: Pick<LostLease, 'instance' | 'number' | 'counter' | 'window'>): string {
  return `lost_${instance}_${number}_${counter}|${window}`;
}

/** @param at for a call without details, which an older version reserved */
export function lostCall(id: string, holds: readonly LostHold[], at: number): CallRow {
  const [first] = holds;
  const about = holds.map((hold) => readAbout(hold.about));
  const { keyId, team, tags, endpoint, model, startedAt } = about[0]?.about ?? {
    keyId: /^key:([^:]+):/.exec(first?.counter ?? '')?.[1] ?? '',
    team: undefined,
    tags: [],
    endpoint: '',
    model: '',
    startedAt: at,
  };
  const budgets = new Map<string, CallRow['budgets'][number]>();
  const held = new Map<string, number>();
  for (const [i, { counter, window, nanodollars }] of holds.entries()) {
    const endsAt = about[i]?.endsAt;
    const name = `${counter}|${window}`;
    budgets.set(name, { counter, window, ...(endsAt === undefined ? {} : { endsAt }) });
    held.set(name, (held.get(name) ?? 0) + nanodollars);
  }
  // Each budget holds the same amount. If they differ, the largest is safe.
  const total = Math.max(0, ...held.values());
  return {
    id,
    startedAt,
    keyId,
    ...(team === undefined ? {} : { team }),
    tags,
    endpoint,
    model,
    stream: false,
    outcome: 'failed',
    error: 'interrupted',
    failure: gatewayDied,
    attempts: 0,
    attemptRows: [],
    charged: {},
    usageSource: 'estimated',
    cost: { total, input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: total },
    budgets: [...budgets.values()],
    reservedNanodollars: total,
    totalMs: 0,
    notes: 'the gateway died before it reported this call: booked with all that it held',
  };
}

function readAbout(stored: string | undefined): HoldAbout {
  if (stored === undefined || stored === '') return {};
  const { endsAt, ...about } = parseOwn<About>(stored);
  return { about, ...(endsAt === undefined ? {} : { endsAt }) };
}

/** Whether the row is an estimate for an unreported call: the call's own row replaces it. */
export function isEstimate({
  error,
  usageSource,
}: Pick<CallRow, 'error' | 'usageSource'>): boolean {
  return error === 'interrupted' && usageSource === 'estimated';
}
