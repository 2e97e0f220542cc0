/** Limits and budgets as the admin API takes and shows them. */
import { z } from 'zod';
import { policyMembers, readPolicy, type PolicyForm } from '../config/policy-form.ts';
import type { JsonObject } from '../core/conversation.ts';
import { dollarsText } from '../core/money.ts';
import type { Policy, RateLimit } from '../core/policy.ts';
import { HeldBudget } from '../access/held-limits.ts';
import type { Holder } from '../access/policies.ts';
import { windowAt } from '../access/windows.ts';
import type { Store } from '../store/store.ts';
import { AdminError } from './admin-route.ts';
import { dateText } from './period.ts';

/** @throws AdminError 400 that names the member. */
export function policyOf(form: PolicyForm, base: Policy): Policy {
  const read = readPolicy(form, base);
  if ('path' in read) throw new AdminError(400, read.message, read.path);
  return read;
}

/** The members of a body that make its policy. */
export function policyFormOf(body: PolicyForm): PolicyForm {
  const names = Object.keys(policyMembers);
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
}

const count = z.number().int();
const usd = z.string().describe('Dollars, exactly.');

export const policyAnswer = {
  rpm: count.nullable().describe('Requests a minute, all models together; null = no limit.'),
  tpm: count.nullable().describe('Tokens a minute; null = no limit.'),
  concurrent: count.nullable().describe('Calls at the same time; null = no limit.'),
  limits: z.array(
    z.strictObject({
      kind: z.enum(['requests', 'tokens', 'concurrent']),
      amount: count,
      model: z.string().nullable().describe('Glob of the models that it counts; null = all.'),
    }),
  ),
  budgets: z.array(
    z.strictObject({
      usd,
      per: z.enum(['day', 'week', 'month', 'ever']),
      time_zone: z.string(),
      window: z.string().optional().describe('The current period; where one policy is shown.'),
      starts_at: z.iso.datetime().nullable().optional().describe('Null: there is no beginning.'),
      ends_at: z.iso.datetime().nullable().optional(),
      spent_usd: usd.optional(),
    }),
  ),
};

export function policyJson({ limits, budgets }: Policy): JsonObject {
  return {
    rpm: overall(limits, 'requests'),
    tpm: overall(limits, 'tokens'),
    concurrent: overall(limits, 'concurrent'),
    limits: limits.map(({ kind, amount, model }) => ({ kind, amount, model: model ?? null })),
    budgets: budgets.map(({ nanodollars, per, timeZone }) => ({
      usd: dollarsText(nanodollars),
      per,
      time_zone: timeZone,
    })),
  };
}

/** The same, and what was spent in the current window of each budget. @throws StoreError */
export async function spentPolicyJson(
  { store, now }: { readonly store: Store; readonly now: number },
  holder: Holder,
  policy: Policy,
): Promise<JsonObject> {
  const json = policyJson(policy);
  if (policy.budgets.length === 0) return json;
  const held = policy.budgets.map((budget) => new HeldBudget(holder, budget));
  const counters = held.map(({ counter }) => counter);
  const spent = await store.spent(now, counters);
  const budgets = held.map((each) => {
    const { budget } = each;
    const { counter, window, endsAt } = each.window(now);
    const { startsAt } = windowAt(budget.per, budget.timeZone, now);
    const found = spent.find((each) => each.counter === counter && each.window === window);
    return {
      usd: dollarsText(budget.nanodollars),
      per: budget.per,
      time_zone: budget.timeZone,
      window,
      starts_at: startsAt === undefined ? null : dateText(startsAt),
      ends_at: endsAt === undefined ? null : dateText(endsAt),
      spent_usd: dollarsText(found?.nanodollars ?? 0),
    };
  });
  return { ...json, budgets };
}

function overall(limits: readonly RateLimit[], kind: RateLimit['kind']): number | null {
  return limits.find((limit) => limit.kind === kind && limit.model === undefined)?.amount ?? null;
}
