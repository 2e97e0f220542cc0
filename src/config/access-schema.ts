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

/** Nanodollars. Text retains every digit; a number's shortest text is what was written. */
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
      : 'is not an amount in dollars: 0 to 9000000, at most nine decimals';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({ examples: [20, '0.50'] });

const per = z.enum(periods, `must be one of ${periods.join(', ')}`);

const timeZone = z
  .string('must be the name of a time zone')
  .refine(isTimeZone, 'is not a time zone: give an IANA name such as Europe/Berlin or UTC')
  .meta({ examples: ['UTC', 'Europe/Berlin'] });

/** Globs of model names as keys and limits have them. */
export const modelGlob = z
  .string('must be a list of model names')
  .regex(
    /^[^\s,\p{Cc}]{1,200}$/u,
    'is not a model name: 1 to 200 characters, no spaces or commas; * stands for any text',
  );

const limit = z.strictObject({
  kind: z
    .enum(['requests', 'tokens', 'concurrent'], 'must be one of requests, tokens, concurrent')
    .describe('requests and tokens count per minute; concurrent counts running calls.'),
  amount: amount.describe('The highest allowed value.'),
  model: modelGlob.optional().describe('Glob of the models to count. Default: all.'),
});

const budget = z.strictObject({
  usd: dollars.describe('Dollars that may be spent.'),
  per: per.describe('The calendar period.'),
  time_zone: timeZone.optional().describe('Time zone of its days. Default: UTC.'),
});

/** Null takes a limit away, which makes sense in a change only. */
export const policyMembers = {
  rpm: amount.nullable().optional().describe('Requests per minute, all models together.'),
  tpm: amount.nullable().optional().describe('Tokens per minute, input and output.'),
  concurrent: amount.nullable().optional().describe('Concurrent calls.'),
  limits: z
    .array(limit, 'must be a list of limits')
    .max(100, 'has more than 100 entries')
    .nullable()
    .optional()
    .describe(
      'More limits: kind is requests or tokens (per minute) or concurrent; with model, only models that match the glob count.',
    ),
  budget: dollars
    .nullable()
    .optional()
    .describe('Dollars that may be spent in each period (`per`).'),
  per: per.optional().describe('The calendar period of `budget`.'),
  time_zone: timeZone
    .optional()
    .describe('Time zone of the days of `budget`; weeks begin on Monday. Default: UTC.'),
  budgets: z
    .array(budget, 'must be a list of budgets')
    .max(periods.length, `has more than ${periods.length} entries`)
    .nullable()
    .optional()
    .describe('More budgets, one per period; all apply.'),
};

/** Further members of tags. */
export const namedByMembers = {
  keys: z
    .array(
      z.string().regex(/^(\*|[A-Za-z0-9_-]{1,64})$/, 'is not a key id; * means all'),
      'must be a list of key ids',
    )
    .max(200, 'has more than 200 entries')
    .optional()
    .describe(
      'Ids of keys that may set the tag by x-gateway-tags, in addition to keys that have it; "*" means all.',
    ),
  teams: z
    .array(z.string().min(1, 'must not be empty').max(200), 'must be a list of teams')
    .max(200, 'has more than 200 entries')
    .optional()
    .describe('Teams whose keys may set it, too; "*" means all.'),
};

export interface NamedByForm {
  readonly keys?: readonly string[] | undefined;
  readonly teams?: readonly string[] | undefined;
}

/** Keys and teams that may set a tag; nothing when there are none. */
export function readNamedBy({ keys = [], teams = [] }: NamedByForm): {
  readonly namedBy?: NamedBy;
} {
  return keys.length + teams.length === 0 ? {} : { namedBy: { keys, teams } };
}

const policyForm = z.strictObject(policyMembers);

/** The form as it was checked. */
export type PolicyForm = z.output<typeof policyForm>;

/** Contradictions between the members of a form, and their paths. */
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
    return { path: 'per', message: `is missing; use one of ${periods.join(', ')}` };
  }
  const known = listed.find((each) => each.per === period);
  const others = form.budgets === undefined ? without(listed, period) : listed;
  const timeZoneOf = zone ?? known?.timeZone ?? defaultZone;
  return [{ nanodollars: most, per: period, timeZone: timeZoneOf }, ...others];
}

const perAlone = 'sets the period of a budget, but no budget is given';

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
  return { path, message: `has duplicate entries for ${repeated.trim()}` };
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}

const labelForm = /^[^\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,200}$/u;

/** One line without control characters: it will be in logs, tables and pages. */
export const label = z
  .string('must be a string')
  .min(1, 'must not be empty')
  .max(200, 'has more than 200 characters')
  .regex(labelForm, 'must be one line of printable text');

const tagForm = /^[^,\s\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u;

/** Tags are in lists with commas between them. */
export const tag = z
  .string('must be a list of tags')
  .regex(tagForm, 'is not a tag: 1 to 100 characters, no spaces or commas');

const addressRange = z
  .string('must be a list of addresses')
  .max(100, 'has more than 100 characters')
  .superRefine((text, context) => {
    const message = rangeProblem(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({ examples: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'] });

/** The permissions of a key; the same in the admin API. */
export const scopeMembers = {
  models: z
    .array(modelGlob, 'list the models that the key may use; ["*"] means all')
    .min(1, 'list the models that the key may use; ["*"] means all')
    .max(200, 'has more than 200 entries')
    .describe('Globs of the models that the key may use; "*" means all.'),
  endpoints: z
    .array(
      z.enum(endpointScopes, `must be one of ${endpointScopes.join(', ')}`),
      'must be a list of endpoints',
    )
    .min(1, 'must name at least one endpoint')
    .max(20, 'has more than 20 entries')
    .optional()
    .describe('Default: all.'),
  team: label.optional().describe('Team that the key belongs to.'),
  owner: label.optional().describe('Owner of the key.'),
  tags: z
    .array(tag, 'must be a list of tags')
    .max(20, 'has more than 20 entries')
    .optional()
    .describe('Tags that its calls count for.'),
  cidrs: z
    .array(addressRange, 'must be a list of addresses')
    .max(100, 'has more than 100 entries')
    .optional()
    .describe('Client addresses that may use the key, such as 10.0.0.0/8. Default: all.'),
  strict: z
    .boolean('must be true or false')
    .optional()
    .describe('Refuse requests that translation would change or drop parts of.'),
  cache: z
    .literal('auto', 'must be auto')
    .optional()
    .describe(
      'auto: cache marks in its calls, even on routes without this option (docs/user/routing.md). Default: as the route sets.',
    ),
  log_content: z
    .boolean('must be true or false')
    .optional()
    .describe(
      'Store the requests and answers of its calls, encrypted (docs/user/content.md). Default: false.',
    ),
  shrink: z
    .boolean('must be true or false')
    .optional()
    .describe(
      'Lower the output limit of a call to what is left of the budget, instead of refusing the call. Default: true.',
    ),
};

const digest = z
  .string()
  .regex(
    /^sha256:[0-9a-fA-F]{64}$/,
    'is not sha256: and 64 hexadecimal digits, as printf %s "$KEY" | sha256sum gives them',
  );

const keyForm = z
  .strictObject({
    digest: z
      .union([digest, z.array(digest).min(1, 'needs at least one').max(5, 'has more than 5')])
      .describe(
        'SHA-256 of the key (printf %s KEY | sha256sum); during a rotation, a list of the new and old ones.',
      ),
    ...scopeMembers,
    expires: z
      .string()
      .regex(
        /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/,
        'is not a date such as 2026-12-31 or 2026-12-31T12:00:00Z',
      )
      .optional()
      .describe('Time from which the key is refused. Default: never.'),
    ...policyMembers,
  })
  .describe('A key that only the file can change.');

const keyName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'a key name has 1 to 64 letters, digits, _ and -');

export const keysForm = z
  .record(keyName, keyForm)
  .nullish()
  .describe(
    'Keys declared by their hashes. Commands and the admin API cannot change them. Removing a key revokes it at the next reload.',
  );

export const teamsForm = z
  .record(
    z.string().regex(labelForm, 'a name must be one line of printable text'),
    z.strictObject(policyMembers),
  )
  .nullish()
  .describe('Limits and budgets that all keys of a team share.');

export const tagsForm = z
  .record(
    z.string().regex(tagForm, 'a tag has no spaces or commas'),
    z.strictObject({ ...policyMembers, ...namedByMembers }),
  )
  .nullish()
  .describe('Limits and budgets that all calls with a tag share.');

export const trustedProxiesForm = z
  .array(addressRange)
  .max(100, 'has more than 100 entries')
  .nullish()
  .describe(
    'Addresses of reverse proxies whose x-forwarded-for is trusted, for keys with `cidrs`. Default: none.',
  );
