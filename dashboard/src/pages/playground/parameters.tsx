/** Parameters of a call; each endpoint shows those that it has. */
import type { ReactElement } from 'react';
import { SelectField, TextArea, TextField } from '../../components/field.tsx';
import type { NumberSetting } from './formats/request.ts';
import { efforts, formats, hasSetting, type Endpoint } from './formats/turns.ts';
import styles from './playground.module.css';
import type { PartProps } from './settings-form.tsx';

interface NumberParameter {
  readonly setting: NumberSetting;
  readonly label: string;
  readonly inputMode: 'numeric' | 'decimal';
}

const numbers: readonly NumberParameter[] = [
  { setting: 'maxTokens', label: 'Max tokens', inputMode: 'numeric' },
  { setting: 'temperature', label: 'Temperature', inputMode: 'decimal' },
  { setting: 'topP', label: 'Top P', inputMode: 'decimal' },
  { setting: 'topK', label: 'Top K', inputMode: 'numeric' },
  { setting: 'seed', label: 'Seed', inputMode: 'numeric' },
  { setting: 'frequencyPenalty', label: 'Frequency penalty', inputMode: 'decimal' },
  { setting: 'presencePenalty', label: 'Presence penalty', inputMode: 'decimal' },
  { setting: 'thinkingBudget', label: 'Thinking budget', inputMode: 'numeric' },
];

export function Parameters({ settings, onChange, errorOf }: PartProps): ReactElement {
  const { endpoint } = settings;
  return (
    <>
      <div className={styles.pair}>
        {numbers
          .filter(({ setting }) => hasSetting(endpoint, setting))
          .map(({ setting, label, inputMode }) => (
            <TextField
              key={setting}
              label={label}
              inputMode={inputMode}
              placeholder={placeholderOf(setting, endpoint)}
              value={settings[setting]}
              error={errorOf(setting)}
              onChange={(value) => onChange({ [setting]: value })}
            />
          ))}
        <SelectField
          label="Reasoning effort"
          value={settings.effort}
          onChange={(effort) => onChange({ effort })}
          choices={[
            { value: '', label: 'model default' },
            ...efforts[endpoint].map((value) => ({ value, label: value })),
          ]}
        />
        <SelectField
          label="Answer format"
          value={settings.format}
          onChange={(format) => onChange({ format })}
          choices={[
            { value: '', label: 'text' },
            ...formats[endpoint].map((value) => ({ value, label: formatNames[value] ?? value })),
          ]}
        />
      </div>
      {settings.format === 'schema' ? (
        <TextArea
          label="JSON Schema of the answer"
          mono
          rows={6}
          value={settings.schema}
          error={errorOf('schema')}
          onChange={(schema) => onChange({ schema })}
        />
      ) : null}
      {hasSetting(endpoint, 'stop') ? (
        <TextArea
          label="Stop sequences"
          hint="One a line."
          className={styles.short}

          rows={1}
          value={settings.stop}
          onChange={(stop) => onChange({ stop })}
        />
      ) : null}
    </>
  );
}

const formatNames: { readonly [format: string]: string } = {
  json: 'JSON object',
  schema: 'JSON Schema',
};

function placeholderOf(setting: NumberSetting, endpoint: Endpoint): string {
  if (setting === 'maxTokens' && endpoint === 'messages') return '1024';
  return setting === 'seed' || setting === 'thinkingBudget' ? 'none' : 'model default';
}
