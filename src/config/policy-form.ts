/**
 * Limits and budgets as people write them, in `gateway.yaml` and in the admin API alike, and the policy
 * that they mean.
 */
import { z } from 'zod';
import { dollarsText, isBelowUnit, parseDollars, scaledDecimal } from '../core/money.ts';
import type { Budget, BudgetPeriod, Policy, RateLimit } from '../core/policy.ts';

const maxAmount = 1_000_000_000_000;
const periods = ['day', 'week', 'month', 'ever'] as const;

const amount = z
  .number('must be a number')
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(maxAmount, `must be at most ${maxAmount}`);

/** Nanodollars. Text keeps every digit; a number's shortest text is what was written. */
const dollars = z
  .union([z.string(), z.number()], 'must be an amount in dollars, such as 20 or "0.50"')
  .transform((value, context) => {
    const text = String(value).trim().replace(/^\$/, '');
    // Rounded it would be nothing, and refuse every call.
    const isTooSmall = isBelowUnit(text, 9);
    const nanodollars =
      typeof value === 'string' ? parseDollars(value) : scaledDecimal(text, 9)?.units;
    if (nanodollars !== undefined && !isTooSmall) return nanodollars;
    const message = isTooSmall
      ? `is less than the smallest amount, $${dollarsText(1)} (0 lets nothing be spent)`
      : 'is no amount in dollars: 0 to 9000000, at most nine decimals';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({ examples: [20, '0.50'] });

const per = z.enum(periods, `must be one of ${periods.join(', ')}`);

const timeZone = z
  .string('must be the name of a time zone')
  .refine(isTimeZone, 'is no time zone: give an IANA name such as Europe/Berlin or UTC')
  .meta({ examples: ['UTC', 'Europe/Berlin'] });

/** Globs of model names as keys and limits have them. */
export const modelGlob = z
  .string('must be a list of model names')
  .regex(
    /^[^\s,\p{Cc}]{1,200}$/u,
    'is no model name: 1 to 200 characters, no spaces or commas; * stands for any text',
  );

const limit = z.strictObject({
  kind: z
    .enum(['requests', 'tokens', 'concurrent'], 'must be one of requests, tokens, concurrent')
    .describe('requests and tokens: a minute; concurrent: calls at the same time.'),
  amount: amount.describe('At most so many.'),
  model: modelGlob.optional().describe('Glob of the models that it counts. Default: all.'),
});

const budget = z.strictObject({
  usd: dollars.describe('Dollars that may be spent.'),
  per: per.describe('The calendar period.'),
  time_zone: timeZone.optional().describe('Where its days begin. Default UTC.'),
});

/** Null takes a limit away, which makes sense in a change only. */
export const policyMembers = {
  rpm: amount.nullable().optional().describe('Requests a minute, all models together.'),
  tpm: amount.nullable().optional().describe('Tokens a minute, input and output.'),
  concurrent: amount.nullable().optional().describe('Calls at the same time.'),
  limits: z
    .array(limit, 'must be a list of limits')
    .max(100, 'has more than 100 entries')
    .nullable()
    .optional()
    .describe(
      'More limits: kind is requests or tokens (a minute) or concurrent; with model they count only models that fit the glob.',
    ),
  budget: dollars.nullable().optional().describe('Dollars that may be spent in each `per`.'),
  per: per.optional().describe('The calendar period of `budget`.'),
  time_zone: timeZone
    .optional()
    .describe('Where the days of `budget` begin; weeks begin on Monday. Default UTC.'),
  budgets: z
    .array(budget, 'must be a list of budgets')
    .max(periods.length, `has more than ${periods.length} entries`)
    .nullable()
    .optional()
    .describe('More budgets, one a period; all of them hold.'),
};

const policyForm = z.strictObject(policyMembers);

/** The form as it was checked. */
export type PolicyForm = z.output<typeof policyForm>;

/** What is wrong between the members of a form, and where. */
export interface PolicyProblem {
  readonly path: string;
  readonly message: string;
}

/** The policy that a form makes of the one before it: what it does not mention stays. */
export function readPolicy(form: PolicyForm, base: Policy): Policy | PolicyProblem {
  const limits = readLimits(form, base.limits);
  const budgets = readBudgets(form, base.budgets);
  if ('path' in budgets) return budgets;
  return (
    twin(limits, 'limits', ({ kind, model = '' }) => `${kind} ${model}`) ??
    twin(budgets, 'budgets', (each) => each.per) ?? { limits, budgets }
  );
}

const shorthands = [
  ['rpm', 'requests'],
  ['tpm', 'tokens'],
  ['concurrent', 'concurrent'],
] as const;

function readLimits(form: PolicyForm, base: readonly RateLimit[]): readonly RateLimit[] {
  const listed =
    form.limits === undefined
      ? base
      : (form.limits ?? []).map(({ kind, amount: most, model }) => ({
          kind,
          amount: most,
          ...(model === undefined ? {} : { model }),
        }));
  return shorthands.reduce<readonly RateLimit[]>((limits, [name, kind]) => {
    const value = form[name];
    if (value === undefined) return limits;
    // In a change it replaces the limit that it stood for before.
    const others =
      form.limits === undefined
        ? limits.filter((each) => each.kind !== kind || each.model !== undefined)
        : limits;
    return value === null ? others : [{ kind, amount: value }, ...others];
  }, listed);
}

const defaultZone = 'UTC';

function readBudgets(form: PolicyForm, base: readonly Budget[]): readonly Budget[] | PolicyProblem {
  const { budget: most, per: period, time_zone: zone } = form;
  const listed =
    form.budgets === undefined
      ? base
      : (form.budgets ?? []).map((each) => ({
          nanodollars: each.usd,
          per: each.per,
          timeZone: each.time_zone ?? zone ?? defaultZone,
        }));
  if (most === undefined) {
    return period === undefined ? rezoned(listed, form) : { path: 'per', message: perAlone };
  }
  if (most === null) return period === undefined ? [] : without(listed, period);
  if (period === undefined) {
    return { path: 'per', message: `is missing: the budget is for a ${periods.join(', ')}` };
  }
  const known = listed.find((each) => each.per === period);
  const others = form.budgets === undefined ? without(listed, period) : listed;
  const timeZoneOf = zone ?? known?.timeZone ?? defaultZone;
  return [{ nanodollars: most, per: period, timeZone: timeZoneOf }, ...others];
}

const perAlone = 'says the period of a budget, but there is no budget beside it';

/** A zone alone is for the budgets that are there. */
function rezoned(budgets: readonly Budget[], form: PolicyForm): readonly Budget[] {
  const { time_zone: zone } = form;
  if (zone === undefined || form.budgets !== undefined) return budgets;
  return budgets.map((each) => ({ ...each, timeZone: zone }));
}

function without(budgets: readonly Budget[], period: BudgetPeriod): readonly Budget[] {
  return budgets.filter((each) => each.per !== period);
}

/** Two limits of the same thing would be one counter with two bounds. */
function twin<T>(
  items: readonly T[],
  path: string,
  nameOf: (item: T) => string,
): PolicyProblem | undefined {
  const names = items.map((item) => nameOf(item));
  const repeated = names.find((name, i) => names.indexOf(name) !== i);
  if (repeated === undefined) return undefined;
  return { path, message: `two of them are for the same: ${repeated.trim()}` };
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}
