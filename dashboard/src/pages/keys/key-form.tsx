/** The fields of a key. */
import type { ReactElement } from 'react';
import { CheckField, TextField } from '../../components/field.tsx';
import { LogContentField } from './content-log.tsx';
import { endpoints, type KeyFields } from './form.ts';
import styles from './keys.module.css';
import { errorAt, PolicyForm, type FormProps } from './policy-form.tsx';

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
        hint="Names, separated by commas; * matches any text: openai/*, local/tiny"
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
        label="Client addresses"
        hint="Ranges such as 10.0.0.0/8, separated by commas; empty: all addresses"
        mono
        {...text('cidrs')}
      />
      <TextField
        label="Expires"
        hint="A time span (24h, 30d, 2w), a date such as 2026-12-31, or never. Empty: unchanged, or never"
        value={fields.expires}
        onChange={(expires) => onChange({ ...fields, expires })}
        {...errorAt(wrong, 'expires_in')}
        {...errorAt(wrong, 'expires_at')}
      />
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
      <LogContentField fields={fields} onChange={onChange} />
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
