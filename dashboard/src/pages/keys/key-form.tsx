/** The fields of a key and of a policy. */
import type { ReactElement } from 'react';
import { asApiError } from '../../api/api-error.ts';
import { CheckField, SelectField, TextField } from '../../components/field.tsx';
import { endpoints, type KeyFields, type PolicyFields } from './form.ts';
import styles from './keys.module.css';

interface FormProps<Fields> {
  readonly fields: Fields;
  readonly onChange: (fields: Fields) => void;
  /** Which member was refused, and why. */
  readonly wrong: { readonly field: string | undefined; readonly why: string } | undefined;
}

/** The member that a refusal names. */
export function wrongOf(error: Error | null): FormProps<unknown>['wrong'] {
  if (error === null) return undefined;
  const { field, message } = asApiError(error);
  return { field, why: message };
}

function errorAt(wrong: FormProps<unknown>['wrong'], name: string): { readonly error?: string } {
  return wrong?.field?.split('.')[0] === name ? { error: wrong.why } : {};
}

export function KeyForm({ fields, onChange, wrong }: FormProps<KeyFields>): ReactElement {
  const text = (name: 'name' | 'models' | 'team' | 'owner' | 'tags' | 'cidrs') => ({
    value: fields[name],
    onChange: (value: string) => onChange({ ...fields, [name]: value }),
    ...errorAt(wrong, name),
  });
  return (
    <div className={styles.form}>
      <TextField label="Name" required maxLength={200} {...text('name')} />
      <TextField
        label="Models"
        hint="Names, separated by commas; * stands for any text: openai/*, local/tiny"
        mono
        {...text('models')}
      />
      <EndpointChoice
        chosen={fields.endpoints}
        onChange={(chosen) => onChange({ ...fields, endpoints: chosen })}
      />
      <PolicyForm
        fields={fields}
        onChange={(policy) => onChange({ ...fields, ...policy })}
        wrong={wrong}
      />
      <div className={styles.pair}>
        <TextField label="Team" {...text('team')} />
        <TextField label="Owner" {...text('owner')} />
      </div>
      <TextField label="Tags" hint="Separated by commas" {...text('tags')} />
      <TextField
        label="From addresses"
        hint="Ranges such as 10.0.0.0/8, separated by commas; empty: from anywhere"
        mono
        {...text('cidrs')}
      />
      <TextField
        label="Expires in"
        hint="24h, 30d, 2w; empty: as it is, or never"
        value={fields.expiresIn}
        onChange={(expiresIn) => onChange({ ...fields, expiresIn })}
        {...errorAt(wrong, 'expires_in')}
      />
      <CheckField
        label="Strict"
        hint="Refuse what a translation would drop, instead of noting it"
        checked={fields.strict}
        onChange={(strict) => onChange({ ...fields, strict })}
      />
    </div>
  );
}

interface EndpointChoiceProps {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

function EndpointChoice({ chosen, onChange }: EndpointChoiceProps): ReactElement {
  return (
    <fieldset className={styles.group}>
      <legend>Endpoints (none chosen: all)</legend>
      {endpoints.map((name) => (
        <CheckField
          key={name}
          label={name}
          checked={chosen.includes(name)}
          onChange={(checked) =>
            onChange(endpoints.filter((each) => (each === name ? checked : chosen.includes(each))))
          }
        />
      ))}
    </fieldset>
  );
}

const periods = [
  { value: 'day', label: 'a day' },
  { value: 'week', label: 'a week' },
  { value: 'month', label: 'a month' },
  { value: 'ever', label: 'in all' },
] as const;

export function PolicyForm({ fields, onChange, wrong }: FormProps<PolicyFields>): ReactElement {
  const number = (name: 'rpm' | 'tpm' | 'concurrent' | 'budget') => ({
    value: fields[name],
    inputMode: 'decimal' as const,
    placeholder: 'no limit',
    onChange: (value: string) => onChange({ ...fields, [name]: value }),
    ...errorAt(wrong, name),
  });
  return (
    <>
      <div className={styles.triple}>
        <TextField label="Requests a minute" {...number('rpm')} />
        <TextField label="Tokens a minute" {...number('tpm')} />
        <TextField label="Calls at a time" {...number('concurrent')} />
      </div>
      <div className={styles.pair}>
        <TextField label="Budget in dollars" {...number('budget')} />
        <SelectField
          label="Period of the budget"
          value={fields.per}
          choices={periods}
          onChange={(value) => {
            const per = periods.find((each) => each.value === value)?.value;
            if (per !== undefined) onChange({ ...fields, per });
          }}
        />
      </div>
    </>
  );
}
