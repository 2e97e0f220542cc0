/** What is in the fields of limits and budgets, and the members of a body that it makes. */
import type { Body, LimitKind, Period, Policy } from './api.ts';

/** Everything as text, as it is typed; empty = not set. */
export interface BudgetFields {
  readonly usd: string;
  readonly per: Period;
  /** Empty = UTC. */
  readonly zone: string;
}

export interface ModelLimitFields {
  readonly model: string;
  readonly kind: LimitKind;
  readonly amount: string;
}

export interface PolicyFields {
  readonly rpm: string;
  readonly tpm: string;
  readonly concurrent: string;
  readonly limits: readonly ModelLimitFields[];
  /** At least one row, which may be empty. */
  readonly budgets: readonly BudgetFields[];
}

export const emptyBudget: BudgetFields = { usd: '', per: 'month', zone: '' };
export const emptyLimit: ModelLimitFields = { model: '', kind: 'requests', amount: '' };

export const emptyPolicy: PolicyFields = {
  rpm: '',
  tpm: '',
  concurrent: '',
  limits: [],
  budgets: [emptyBudget],
};

export function policyFieldsOf({ rpm, tpm, concurrent, limits, budgets }: Policy): PolicyFields {
  const rows = budgets.map(({ usd, per, time_zone: zone }) => ({ usd, per, zone }));
  return {
    rpm: numberText(rpm),
    tpm: numberText(tpm),
    concurrent: numberText(concurrent),
    limits: limits.flatMap(({ kind, amount, model }) =>
      model === null ? [] : [{ kind, model, amount: String(amount) }],
    ),
    budgets: rows.length === 0 ? [emptyBudget] : rows,
  };
}

/** Limits and budgets that replace what was there; null takes away. Rows in which nothing was typed are none. */
export function policyChange(fields: PolicyFields): Body {
  const { rpm, tpm, concurrent } = fields;
  const limits = fields.limits.filter(({ model, amount }) => model.trim() !== '' || amount !== '');
  const budgets = fields.budgets.filter(({ usd }) => usd.trim() !== '');
  return {
    rpm: numberOf(rpm),
    tpm: numberOf(tpm),
    concurrent: numberOf(concurrent),
    limits: limits.map(({ model, kind, amount }) => ({
      kind,
      amount: numberOf(amount),
      model: model.trim(),
    })),
    budgets: budgets.map(({ usd, per, zone }) => ({
      usd: usd.trim(),
      per,
      ...(zone.trim() === '' ? {} : { time_zone: zone.trim() }),
    })),
  };
}

/** Limits of one list: a change of it names them all. */
export const limitMembers = ['rpm', 'tpm', 'concurrent', 'limits'] as const;

function numberText(value: number | null): string {
  return value === null ? '' : String(value);
}

/** What is not a number is sent as it is: the gateway says what is wrong with it. */
function numberOf(text: string): number | string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return /^\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
}
