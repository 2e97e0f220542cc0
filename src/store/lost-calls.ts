/**
 * Calls whose gateway died before the ledger heard of them: what they held is booked as spent (Q1), since
 * nobody can say what the provider charges for them. When their own row comes after all, from the disk of
 * the gateway that served them, it takes the place of this one.
 */
import { parseOwn } from '../core/json.ts';
import type { CallRow } from './calls.ts';
import type { BudgetDraw, DrawnCall } from './counters.ts';

/** What a call holds of a budget's window. */
export interface LostHold {
  readonly counter: string;
  readonly window: string;
  readonly nanodollars: number;
  readonly about: string | undefined;
}

/** What a hold says of its call: kept as text beside it. */
type About = DrawnCall & { readonly endsAt?: number };

export interface HoldAbout {
  readonly about?: DrawnCall;
  readonly endsAt?: number;
}

export function aboutHold(
  about: DrawnCall | undefined,
  { endsAt }: Pick<BudgetDraw, 'endsAt'>,
): string {
  if (about === undefined) return '';
  return JSON.stringify({ ...about, ...(endsAt === undefined ? {} : { endsAt }) });
}

/** @param at for a call of which nothing is said: an older version drew it */
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
  // Each budget holds the same; of what differs the largest is safe.
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
    attempts: 0,
    attemptRows: [],
    charged: {},
    usageSource: 'estimated',
    cost: { total, input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, call: total },
    budgets: [...budgets.values()],
    reservedNanodollars: total,
    totalMs: 0,
    notes: 'the gateway died before it told of this call: booked with all that it held',
  };
}

export function readAbout(kept: string | undefined): HoldAbout {
  if (kept === undefined || kept === '') return {};
  const { endsAt, ...about } = parseOwn<About>(kept);
  return { about, ...(endsAt === undefined ? {} : { endsAt }) };
}

/** Whether a row stands for a call of which nobody could say more: its own row takes its place. */
export function isEstimate({
  error,
  usageSource,
}: Pick<CallRow, 'error' | 'usageSource'>): boolean {
  return error === 'interrupted' && usageSource === 'estimated';
}
