/** The fields of limits and budgets: of a key, and of a team. */
import type { ReactElement, ReactNode } from 'react';
import { asApiError } from '../../api/api-error.ts';
import { Button, IconButton } from '../../components/button.tsx';
import { OfferedField, SelectField, TextField } from '../../components/field.tsx';
import { useModelOffers } from '../../components/model-field.tsx';
import styles from './keys.module.css';
import {
  emptyBudget,
  emptyLimit,
  type BudgetFields,
  type ModelLimitFields,
  type PolicyFields,
} from './policy.ts';

export interface FormProps<Fields> {
  readonly fields: Fields;
  readonly onChange: (fields: Fields) => void;
  /** Which member was refused, and why. */
  readonly wrong: { readonly field: string | undefined; readonly why: string } | undefined;
}

/** The member that a refusal names. */
export function wrongOf(error: Error | null): FormProps<unknown>['wrong'] {
  if (error === null) return undefined;
  const { field, said } = asApiError(error);
  return { field, why: said };
}

/** @param name of the member, with its parts behind dots: `budgets.0.usd` */
export function errorAt(
  wrong: FormProps<unknown>['wrong'],
  name: string,
): { readonly error?: string } {
  const isIt = wrong?.field === name || wrong?.field?.startsWith(`${name}.`) === true;
  return isIt ? { error: wrong.why } : {};
}

const periods = [
  { value: 'day', label: 'a day' },
  { value: 'week', label: 'a week' },
  { value: 'month', label: 'a month' },
  { value: 'ever', label: 'in total' },
] as const;

const zones = Intl.supportedValuesOf('timeZone').map((value) => ({ value }));

const kinds = [
  { value: 'requests', label: 'requests per minute' },
  { value: 'tokens', label: 'tokens per minute' },
  { value: 'concurrent', label: 'concurrent calls' },
] as const;

export function PolicyForm({ fields, onChange, wrong }: FormProps<PolicyFields>): ReactElement {
  const number = (name: 'rpm' | 'tpm' | 'concurrent') => ({
    value: fields[name],
    inputMode: 'numeric' as const,
    placeholder: 'no limit',
    onChange: (value: string) => onChange({ ...fields, [name]: value }),
    ...errorAt(wrong, name),
  });
  return (
    <>
      <div className={styles.triple}>
        <TextField label="Requests per minute" {...number('rpm')} />
        <TextField label="Tokens per minute" {...number('tpm')} />
        <TextField label="Concurrent calls" {...number('concurrent')} />
      </div>
      <Rows
        legend="Limits per model"
        what="limit"
        rows={fields.limits}
        empty={emptyLimit}
        onChange={(limits) => onChange({ ...fields, limits })}
      >
        {(row, change, index) => (
          <LimitRow row={row} onChange={change} wrong={wrong} at={`limits.${index}`} />
        )}
      </Rows>
      <Rows
        legend="Budgets (all apply)"
        what="budget"
        rows={fields.budgets}
        empty={emptyBudget}
        most={periods.length}
        onChange={(budgets) => onChange({ ...fields, budgets })}
      >
        {(row, change, index) => (
          <BudgetRow row={row} onChange={change} wrong={wrong} at={`budgets.${index}`} />
        )}
      </Rows>
      {wrong?.field === 'limits' || wrong?.field === 'budgets' ? (
        <p className={styles.error} role="alert">
          {wrong.field}: {wrong.why}
        </p>
      ) : null}
    </>
  );
}

interface RowsProps<Row> {
  readonly legend: string;
  readonly what: string;
  readonly rows: readonly Row[];
  readonly empty: Row;
  readonly most?: number;
  readonly onChange: (rows: readonly Row[]) => void;
  readonly children: (row: Row, onChange: (row: Row) => void, index: number) => ReactNode;
}

/** Rows of fields that can be added and taken away. */
function Rows<Row>(props: RowsProps<Row>): ReactElement {
  const { legend, what, rows, empty, most = Infinity, onChange, children } = props;
  return (
    <fieldset className={styles.rows}>
      <legend>{legend}</legend>
      {rows.map((row, index) => (
        // Rows have no name of their own; what is typed is in `rows`, not in them.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index} className={styles.formRow}>
          {children(
            row,
            (changed) => onChange(rows.map((each, i) => (i === index ? changed : each))),
            index,
          )}
          <IconButton
            icon="trash"
            label={`Remove ${what} ${index + 1}`}
            onClick={() => onChange(rows.filter((_, i) => i !== index))}
          />
        </div>
      ))}
      {rows.length < most ? (
        <Button small icon="plus" onClick={() => onChange([...rows, empty])}>
          Add a {what}
        </Button>
      ) : null}
    </fieldset>
  );
}

interface RowProps<Row> {
  readonly row: Row;
  readonly onChange: (row: Row) => void;
  readonly wrong: FormProps<unknown>['wrong'];
  /** Name of the member in the body. */
  readonly at: string;
}

function LimitRow({ row, onChange, wrong, at }: RowProps<ModelLimitFields>): ReactElement {
  return (
    <>
      <OfferedField
        label="For models"
        placeholder="openai/*"
        mono
        value={row.model}
        onChange={(model) => onChange({ ...row, model })}
        offers={useModelOffers()}
        {...errorAt(wrong, `${at}.model`)}
      />
      <TextField
        label="Maximum"
        inputMode="numeric"
        value={row.amount}
        onChange={(amount) => onChange({ ...row, amount })}
        {...errorAt(wrong, `${at}.amount`)}
      />
      <SelectField
        label="Unit"
        value={row.kind}
        choices={kinds}
        onChange={(value) => {
          const kind = kinds.find((each) => each.value === value)?.value;
          if (kind !== undefined) onChange({ ...row, kind });
        }}
      />
    </>
  );
}

function BudgetRow({ row, onChange, wrong, at }: RowProps<BudgetFields>): ReactElement {
  return (
    <>
      <TextField
        label="Budget in dollars"
        inputMode="decimal"
        placeholder="no limit"
        value={row.usd}
        onChange={(usd) => onChange({ ...row, usd })}
        {...errorAt(wrong, `${at}.usd`)}
      />
      <SelectField
        label="Period of the budget"
        value={row.per}
        choices={periods}
        onChange={(value) => {
          const per = periods.find((each) => each.value === value)?.value;
          if (per !== undefined) onChange({ ...row, per });
        }}
      />
      <OfferedField
        label="Time zone"
        placeholder="UTC"
        value={row.zone}
        onChange={(zone) => onChange({ ...row, zone })}
        offers={zones}
        {...errorAt(wrong, `${at}.time_zone`)}
      />
    </>
  );
}
