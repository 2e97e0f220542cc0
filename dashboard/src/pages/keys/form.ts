/** What stands in the fields of a key or a team, and the body that it makes. */
import type { Body, Key, Period, Policy } from './api.ts';

/** Everything as text, as it is typed; empty = not set. */
export interface PolicyFields {
  readonly rpm: string;
  readonly tpm: string;
  readonly concurrent: string;
  readonly budget: string;
  readonly per: Period;
}

export interface KeyFields extends PolicyFields {
  readonly name: string;
  readonly models: string;
  /** Empty = all. */
  readonly endpoints: readonly string[];
  readonly team: string;
  readonly owner: string;
  readonly tags: string;
  readonly cidrs: string;
  /** `30d`; for a key that is there, `` = as it is. */
  readonly expiresIn: string;
  readonly strict: boolean;
}

export const endpoints = ['chat', 'messages', 'count_tokens', 'models'] as const;

export const emptyPolicy: PolicyFields = {
  rpm: '',
  tpm: '',
  concurrent: '',
  budget: '',
  per: 'month',
};

export const emptyKey: KeyFields = {
  ...emptyPolicy,
  name: '',
  models: '*',
  endpoints: [],
  team: '',
  owner: '',
  tags: '',
  cidrs: '',
  expiresIn: '',
  strict: false,
};

export function policyFieldsOf({ rpm, tpm, concurrent, budgets }: Policy): PolicyFields {
  const [budget] = budgets;
  return {
    rpm: numberText(rpm),
    tpm: numberText(tpm),
    concurrent: numberText(concurrent),
    budget: budget?.usd ?? '',
    per: budget?.per ?? 'month',
  };
}

export function keyFieldsOf(key: Key): KeyFields {
  return {
    ...policyFieldsOf(key),
    name: key.name,
    models: key.models.join(', '),
    endpoints: key.endpoints,
    team: key.team ?? '',
    owner: key.owner ?? '',
    tags: key.tags.join(', '),
    cidrs: key.cidrs.join(', '),
    expiresIn: '',
    strict: key.strict,
  };
}

/** For PUT, which replaces: what is empty is left out. */
export function policyBody(fields: PolicyFields): Body {
  return withoutNulls(policyChange(fields));
}

/** For POST. */
export function newKeyBody(fields: KeyFields): Body {
  return withoutNulls(keyChange(fields));
}

/** For PATCH: what is empty is taken away. */
export function keyChange(fields: KeyFields): Body {
  const { expiresIn, endpoints: chosen } = fields;
  return {
    name: fields.name.trim(),
    models: listOf(fields.models),
    endpoints: chosen.length === 0 ? null : chosen,
    team: textOf(fields.team),
    owner: textOf(fields.owner),
    tags: nullable(listOf(fields.tags)),
    cidrs: nullable(listOf(fields.cidrs)),
    strict: fields.strict,
    ...(expiresIn.trim() === '' ? {} : { expires_in: expiresIn.trim() }),
    ...policyChange(fields),
  };
}

/**
 * A key with several budgets, or with limits by model, has more than these fields show: members that nobody
 * touched are left out, so that they stay.
 */
export function changedOnly(wanted: Body, before: Body): Body {
  const changed = Object.entries(wanted).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const body = Object.fromEntries(changed);
  // The one means nothing without the other.
  const hasBudget = 'budget' in body || 'per' in body;
  if (!hasBudget || wanted['budget'] === null) return body;
  return { ...body, budget: wanted['budget'], per: wanted['per'] };
}

function policyChange({ rpm, tpm, concurrent, budget, per }: PolicyFields): Body {
  const isSet = budget.trim() !== '';
  return {
    rpm: numberOf(rpm),
    tpm: numberOf(tpm),
    concurrent: numberOf(concurrent),
    budget: isSet ? budget.trim() : null,
    ...(isSet ? { per } : {}),
  };
}

function withoutNulls(body: Body): Body {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

function numberText(value: number | null): string {
  return value === null ? '' : String(value);
}

/** What is no number is sent as it is: the gateway says what is wrong with it. */
function numberOf(text: string): number | string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return /^\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
}

function textOf(text: string): string | null {
  const trimmed = text.trim();
  return trimmed === '' ? null : trimmed;
}

function listOf(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function nullable(list: readonly string[]): readonly string[] | null {
  return list.length === 0 ? null : list;
}
