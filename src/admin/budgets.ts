/** `/api/budgets`: how much of each budget is spent, the fullest first. */
import { z } from 'zod';
import { HeldBudget } from '../access/held-limits.ts';
import type { KeyRing } from '../access/keys/keys.ts';
import type { Policies } from '../access/policies.ts';
import { overEverywhere } from '../access/windows.ts';
import { dollarsNumber } from '../core/money.ts';
import type { Budget } from '../core/policy.ts';
import type { Clock } from '../core/runtime.ts';
import type { JsonObject } from '../json/value.ts';
import type { Spent, Store } from '../store/store.ts';
import {
  type AdminAnswer,
  type AdminRoute,
  dateText,
  next,
  page,
  readInput,
  time,
} from './route.ts';

export interface BudgetRouteDeps {
  readonly keys: KeyRing;
  readonly policies: Policies;
  readonly store: Store;
  readonly clock: Clock;
  readonly flushLedger?: () => Promise<void>;
}

/** The maximum number of windows with spending that one request ranks. */
const maxWindows = 10_000;

const budget = z.strictObject({
  id: z.string().describe('Counter of the budget: key:ID:month, team:NAME:week.'),
  holder: z.enum(['key', 'team', 'tag']),
  name: z.string().describe('The id of a key, the name of a team or tag.'),
  key_name: z.string().nullable().optional().describe('Only of keys.'),
  per: z.enum(['day', 'week', 'month', 'ever']),
  usd: z.number(),
  spent_usd: z.number().describe('In the current window.'),
  share: z.number().describe('Spent part of the budget; 1 = all of it.'),
  ends_at: time.nullable().describe('When it resets; null: never.'),
});

export function budgetRoutes(deps: BudgetRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/budgets',
      about: {
        summary: 'Budgets that calls were charged to in their current window, the fullest first.',
        query: page,
        answer: z.strictObject({
          cut: z.boolean().describe('There are more than the 10,000 that were ranked.'),
          budgets: z.array(budget),
          next,
        }),
      },
      run: (request) => list(deps, readInput(page, request.query)),
    },
  ];
}

interface Ranked {
  readonly held: HeldBudget;
  readonly spent: number;
  readonly share: number;
}

async function list(
  deps: BudgetRouteDeps,
  { limit, after }: z.output<typeof page>,
): Promise<AdminAnswer> {
  const now = deps.clock.wall();
  await deps.flushLedger?.().catch(() => undefined);
  const spent = await deps.store.calls.spentPage(overEverywhere(now), { limit: maxWindows });
  const ranked = spent
    .flatMap((each) => rankedOf(deps, each, now))
    .toSorted((a, b) => b.share - a.share || (a.held.counter < b.held.counter ? -1 : 1));
  const start =
    after === undefined ? 0 : ranked.findIndex(({ held }) => held.counter === after) + 1;
  const shown = ranked.slice(start, start + limit);
  const hasMore = start + limit < ranked.length;
  const body = {
    cut: spent.length === maxWindows,
    budgets: shown.map((each) => budgetJson(each, deps, now)),
    next: hasMore ? (shown.at(-1)?.held.counter ?? null) : null,
  };
  return { status: 200, body };
}

/** Empty for a budget that was changed or removed, or whose holder is gone. */
function rankedOf(
  { keys, policies }: BudgetRouteDeps,
  { counter, window, nanodollars }: Spent,
  now: number,
): readonly Ranked[] {
  const [, kind, name] = /^(key|team|tag):(.*):\w+$/s.exec(counter) ?? [];
  if (name === undefined) return [];
  const isActive = kind === 'key' && keys.find(name)?.state === 'active';
  const key = isActive ? keys.find(name)?.record.policy : undefined;
  const shared = kind === 'team' || kind === 'tag' ? policies.find(kind, name) : undefined;
  const holder = kind === 'team' || kind === 'tag' ? kind : 'key';
  const budgets: readonly Budget[] = (key ?? shared)?.budgets ?? [];
  return budgets
    .map((each) => new HeldBudget({ kind: holder, name }, each))
    .filter((held) => held.counter === counter && held.window(now).window === window)
    .map((held) => ({ held, spent: nanodollars, share: shareOf(nanodollars, held.budget) }));
}

/** A budget of 0 is full: JSON has no quotient by it. */
function shareOf(spent: number, { nanodollars: budget }: Budget): number {
  return budget === 0 ? 1 : spent / budget;
}

function budgetJson(
  { held, spent, share }: Ranked,
  { keys }: BudgetRouteDeps,
  now: number,
): JsonObject {
  const { holder, counter, budget: own } = held;
  const { endsAt } = held.window(now);
  return {
    id: counter,
    holder: holder.kind,
    name: holder.name,
    ...(holder.kind === 'key' ? { key_name: keys.find(holder.name)?.record.name ?? null } : {}),
    per: own.per,
    usd: dollarsNumber(own.nanodollars),
    spent_usd: dollarsNumber(spent),
    share: Math.round(share * 10_000) / 10_000,
    ends_at: endsAt === undefined ? null : dateText(endsAt),
  };
}
