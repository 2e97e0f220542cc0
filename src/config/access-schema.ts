/**
 * The forms of `keys:`, `teams:`, `tags:` and `trusted_proxies:`, and of limits and budgets in `gateway.yaml` and the
 * admin API alike, and the policy that a form means. Loads the schema library.
 */
import { z } from 'zod';
import { rangeProblem } from '../core/addresses.ts';
import { dollarsText, isBelowUnit, parseDollars, scaledDecimal } from '../core/money.ts';
import {
  type Budget,
  type BudgetPeriod,
  endpointScopes,
  type NamedBy,
  type Policy,
  type RateLimit,
} from '../core/policy.ts';

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
  amount: amount.describe('The limit.'),
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
    .describe('More budgets, one for each period; all apply.'),
};

/** Of tags, besides. */
export const namedByMembers = {
  keys: z
    .array(
      z.string().regex(/^(\*|[A-Za-z0-9_-]{1,64})$/, 'is no id of a key; * means all'),
      'must be a list of ids of keys',
    )
    .max(200, 'has more than 200 entries')
    .optional()
    .describe(
      'Ids of keys whose calls count for it when they name it in x-gateway-tags, besides those that have the tag; "*" means all.',
    ),
  teams: z
    .array(z.string().min(1, 'must not be empty').max(200), 'must be a list of teams')
    .max(200, 'has more than 200 entries')
    .optional()
    .describe('Teams whose keys may do the same; "*" means all.'),
};

export interface NamedByForm {
  readonly keys?: readonly string[] | undefined;
  readonly teams?: readonly string[] | undefined;
}

/** Who may name a tag; nothing where nobody else may. */
export function readNamedBy({ keys = [], teams = [] }: NamedByForm): {
  readonly namedBy?: NamedBy;
} {
  return keys.length + teams.length === 0 ? {} : { namedBy: { keys, teams } };
}

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

const labelForm = /^[^\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,200}$/u;

/** One line without control characters: it will stand in logs, tables and pages. */
export const label = z
  .string('must be a text')
  .min(1, 'must not be empty')
  .max(200, 'has more than 200 characters')
  .regex(labelForm, 'must be one line of visible text');

const tagForm = /^[^,\s\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u;

/** Tags stand in lists with commas between them. */
export const tag = z
  .string('must be a list of tags')
  .regex(tagForm, 'is no tag: 1 to 100 characters, no spaces or commas');

const addressRange = z
  .string('must be a list of addresses')
  .max(100, 'has more than 100 characters')
  .superRefine((text, context) => {
    const message = rangeProblem(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({ examples: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'] });

/** What a key may be used for; the same in the admin API. */
export const scopeMembers = {
  models: z
    .array(modelGlob, 'say which models the key may use, as a list; ["*"] means all')
    .min(1, 'say which models the key may use; ["*"] means all')
    .max(200, 'has more than 200 entries')
    .describe('Globs of the models that the key may use; "*" means all.'),
  endpoints: z
    .array(
      z.enum(endpointScopes, `must be of ${endpointScopes.join(', ')}`),
      'must be a list of endpoints',
    )
    .min(1, 'must name at least one endpoint')
    .max(20, 'has more than 20 entries')
    .optional()
    .describe('Default: all.'),
  team: label.optional().describe('The team that its calls count for.'),
  owner: label.optional().describe('The person responsible.'),
  tags: z
    .array(tag, 'must be a list of tags')
    .max(20, 'has more than 20 entries')
    .optional()
    .describe('What else its calls count for.'),
  cidrs: z
    .array(addressRange, 'must be a list of addresses')
    .max(100, 'has more than 100 entries')
    .optional()
    .describe('Addresses that may use it, such as 10.0.0.0/8; default: anywhere.'),
  strict: z
    .boolean('must be true or false')
    .optional()
    .describe('Refuse what a translation would drop or change.'),
  cache: z
    .literal('auto', 'must be auto')
    .optional()
    .describe(
      'auto: cache marks in its calls, also on routes without this option (docs/user/routing.md). Default: as the route says.',
    ),
  log_content: z
    .boolean('must be true or false')
    .optional()
    .describe(
      'Keep what its calls ask and are answered, sealed (docs/user/content.md). Default false.',
    ),
  shrink: z
    .boolean('must be true or false')
    .optional()
    .describe(
      'Lower the output limit of a call to what the budget still has, instead of refusing it. Default true.',
    ),
};

const digest = z
  .string()
  .regex(/^sha256:[0-9a-fA-F]{64}$/, 'is no sha256: and 64 hexadecimal digits');

const keyForm = z
  .strictObject({
    digest: z
      .union([digest, z.array(digest).min(1, 'needs at least one').max(5, 'has more than 5')])
      .describe(
        'The SHA-256 of the key (printf %s KEY | sha256sum); of the new one and the old ones while they change.',
      ),
    ...scopeMembers,
    expires: z
      .string()
      .regex(
        /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/,
        'is no date such as 2026-12-31 or 2026-12-31T12:00:00Z',
      )
      .optional()
      .describe('When it stops working. Default: never.'),
    ...policyMembers,
  })
  .describe('A key that the file alone decides on.');

const keyName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'a key is named with letters, digits, _ and -, at most 64');

export const keysForm = z
  .record(keyName, keyForm)
  .nullish()
  .describe(
    'Keys that are declared here, by their hashes. Commands and the admin API cannot change them; one that is taken out is refused from the next reload on.',
  );

export const teamsForm = z
  .record(
    z.string().regex(labelForm, 'a name is one line of visible text'),
    z.strictObject(policyMembers),
  )
  .nullish()
  .describe('Limits of all keys of a team together.');

export const tagsForm = z
  .record(
    z.string().regex(tagForm, 'a tag has no spaces or commas'),
    z.strictObject({ ...policyMembers, ...namedByMembers }),
  )
  .nullish()
  .describe('Limits of all calls with a tag together.');

export const trustedProxiesForm = z
  .array(addressRange)
  .max(100, 'has more than 100 entries')
  .nullish()
  .describe(
    'Addresses of proxies before the gateway whose x-forwarded-for is believed; for keys with `cidrs`. Default: none.',
  );
