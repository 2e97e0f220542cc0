/** The fields of a key: what most keys need is in sight, the rest behind a fold. */
import { useState, type ReactElement } from 'react';
import { operators, useMay } from '../../api/session.ts';
import { CheckField, OfferedField, SelectField, TextField } from '../../components/field.tsx';
import { useModelOffers } from '../../components/model-field.tsx';
import { PickField } from '../../components/pick-field.tsx';
import { useHolders } from './api.ts';
import { LogContentField } from './content-log.tsx';
import { endpoints, type KeyFields } from './form.ts';
import styles from './keys.module.css';
import { errorAt, PolicyForm, type FormProps } from './policy-form.tsx';

interface KeyFormProps extends FormProps<KeyFields> {
  /** A key that there is: no end was chosen for it here, and nothing is folded. */
  readonly isChange?: boolean;
}

export function KeyForm({ fields, onChange, wrong, isChange = false }: KeyFormProps): ReactElement {
  const teams = useHolders('team').data ?? [];
  return (
    <div className={styles.form}>
      <TextField
        label="Name"
        required
        maxLength={200}
        value={fields.name}
        onChange={(name) => onChange({ ...fields, name })}
        {...errorAt(wrong, 'name')}
      />
      <PickField
        label="Models"
        hint="Pick models, or type a pattern: * matches any text, as in openai/*."
        placeholder="openai/*"
        values={fields.models}
        onChange={(models) => onChange({ ...fields, models })}
        offers={useModelOffers()}
        {...errorAt(wrong, 'models')}
      />
      <div className={styles.pair}>
        <OfferedField
          label="Team"
          value={fields.team}
          onChange={(team) => onChange({ ...fields, team })}
          offers={teams.map(({ name }) => ({ value: name }))}
          {...errorAt(wrong, 'team')}
        />
        <ExpiryField
          value={fields.expires}
          onChange={(expires) => onChange({ ...fields, expires })}
          isChange={isChange}
          {...errorAt(wrong, 'expires_in')}
          {...errorAt(wrong, 'expires_at')}
        />
      </div>
      <PolicyForm
        fields={fields}
        onChange={(policy) => onChange({ ...fields, ...policy })}
        wrong={wrong}
      />
      <MoreFields fields={fields} onChange={onChange} wrong={wrong} isChange={isChange} />
    </div>
  );
}

const spans = [
  { value: '7d', label: 'In 7 days' },
  { value: '30d', label: 'In 30 days' },
  { value: '90d', label: 'In 90 days' },
  { value: '365d', label: 'In a year' },
  { value: 'date', label: 'On a date…' },
] as const;

interface ExpiryFieldProps {
  /** A span, a date, `never`, or nothing. */
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly isChange: boolean;
  readonly error?: string;
}

function ExpiryField({ value, onChange, isChange, error }: ExpiryFieldProps): ReactElement {
  const [isDate, setDate] = useState(false);
  const onDate = isDate || /^\d{4}-/.test(value);
  const choices = isChange
    ? [{ value: '', label: 'Unchanged' }, { value: 'never', label: 'Never' }, ...spans]
    : [{ value: '', label: 'Never' }, ...spans];
  return (
    <div className={styles.form}>
      <SelectField
        label="Expires"
        value={onDate ? 'date' : value}
        choices={choices}
        onChange={(chosen) => {
          setDate(chosen === 'date');
          onChange(chosen === 'date' ? '' : chosen);
        }}
        error={onDate ? undefined : error}
      />
      {onDate ? (
        <TextField
          label="Expiry date"
          type="date"
          hint="At 00:00 UTC of this day."
          value={value}
          onChange={onChange}
          error={error}
        />
      ) : null}
    </div>
  );
}

const folded = ['endpoints', 'owner', 'tags', 'cidrs', 'strict', 'cache', 'shrink', 'log_content'];

function MoreFields({ fields, onChange, wrong, isChange = false }: KeyFormProps): ReactElement {
  const isOperator = useMay(operators);
  const isWrong = folded.some((name) => 'error' in errorAt(wrong, name));
  return (
    <details className={styles.more} open={isChange || isWrong}>
      <summary>More settings</summary>
      <div className={styles.form}>
        <EndpointChoice
          chosen={fields.endpoints}
          onChange={(chosen) => onChange({ ...fields, endpoints: chosen })}
        />
        <div className={styles.pair}>
          <TextField
            label="Owner"
            value={fields.owner}
            onChange={(owner) => onChange({ ...fields, owner })}
            {...errorAt(wrong, 'owner')}
          />
          {isOperator ? <TagField fields={fields} onChange={onChange} wrong={wrong} /> : null}
        </div>
        <TextField
          label="Client addresses"
          hint="Ranges such as 10.0.0.0/8, separated by commas; empty: all addresses"
          mono
          value={fields.cidrs}
          onChange={(cidrs) => onChange({ ...fields, cidrs })}
          {...errorAt(wrong, 'cidrs')}
        />
        <Switches fields={fields} onChange={onChange} />
        {isOperator ? <LogContentField fields={fields} onChange={onChange} /> : null}
      </div>
    </details>
  );
}

function TagField({ fields, onChange, wrong }: FormProps<KeyFields>): ReactElement {
  const tags = useHolders('tag').data ?? [];
  return (
    <PickField
      label="Tags"
      values={fields.tags}
      onChange={(chosen) => onChange({ ...fields, tags: chosen })}
      offers={tags.map(({ name }) => ({ value: name }))}
      {...errorAt(wrong, 'tags')}
    />
  );
}

function Switches({ fields, onChange }: Omit<FormProps<KeyFields>, 'wrong'>): ReactElement {
  return (
    <>
      <CheckField
        label="Strict"
        hint="Refuse requests that translation would change or drop parts of"
        checked={fields.strict}
        onChange={(strict) => onChange({ ...fields, strict })}
      />
      <CheckField
        label="Cache"
        hint="Set cache marks in its prompts if the client sets none"
        checked={fields.cache}
        onChange={(cache) => onChange({ ...fields, cache })}
      />
      <CheckField
        label="Shrink"
        hint="Lower the output limit of calls that do not fit the budget, instead of refusing them"
        checked={fields.shrink}
        onChange={(shrink) => onChange({ ...fields, shrink })}
      />
    </>
  );
}

interface EndpointChoiceProps {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

function EndpointChoice({ chosen, onChange }: EndpointChoiceProps): ReactElement {
  return (
    <fieldset className={styles.group}>
      <legend>Endpoints (none selected: all)</legend>
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
