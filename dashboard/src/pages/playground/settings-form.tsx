/** What is sent besides the conversation. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { get } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { CheckField, SelectField, TextArea, TextField } from '../../components/field.tsx';
import { ModelField } from '../../components/model-field.tsx';
import { Panel } from '../../components/panel.tsx';
import styles from './playground.module.css';
import { exampleTools, translatedTools, type SettingError } from './request.ts';
import { endpointPaths, type CallSettings, type Endpoint } from './turns.ts';

export interface PlaygroundSettings extends CallSettings {
  /** Model of the second side; empty where there is none. */
  readonly second: string;
  readonly compare: boolean;
  /** Id of the key to call as; '' = none. */
  readonly key: string;
}

interface SettingsFormProps {
  readonly settings: PlaygroundSettings;
  readonly onChange: (change: Partial<PlaygroundSettings>) => void;
  readonly wrong: SettingError | undefined;
  /** Asked where none is named. */
  readonly firstModel: string;
}

interface ListedKeys {
  readonly keys: readonly { readonly id: string; readonly name: string; readonly state: string }[];
}

function useKeys() {
  return useQuery({
    queryKey: ['playground', 'keys'],
    queryFn: ({ signal }) => get<ListedKeys>('/api/keys', { query: { limit: 1000 }, signal }),
    staleTime: 30_000,
  });
}

const endpoints: readonly Endpoint[] = ['chat', 'messages', 'responses'];

export function SettingsForm(props: SettingsFormProps): ReactElement {
  const { settings, onChange, wrong, firstModel } = props;
  const errorOf = (name: keyof CallSettings): string | undefined =>
    wrong?.setting === name ? wrong.message : undefined;
  const { endpoint, compare } = settings;
  const setEndpoint = (value: string): void => {
    const to = endpoints.find((each) => each === value) ?? 'chat';
    onChange({ endpoint: to, tools: translatedTools(settings.tools, to) });
  };
  return (
    <Panel title="Call">
      <div className={styles.settings}>
        <SelectField
          label="Endpoint"
          value={endpoint}
          onChange={setEndpoint}
          choices={endpoints.map((value) => ({
            value,
            label: endpointPaths[value],
          }))}
        />
        <ModelField
          label="Model"
          placeholder={firstModel}
          value={settings.model}
          error={errorOf('model')}
          onChange={(model) => onChange({ model })}
        />
        <CheckField
          label="Side by side with a second model"
          checked={compare}
          onChange={(checked) => onChange({ compare: checked })}
        />
        {compare ? (
          <ModelField
            label="Second model"
            value={settings.second}
            onChange={(second) => onChange({ second })}
          />
        ) : null}
        <CheckField
          label="Stream the answer"
          checked={settings.stream}
          onChange={(stream) => onChange({ stream })}
        />
        <KeyField value={settings.key} onChange={(key) => onChange({ key })} />
        <Details settings={settings} onChange={onChange} errorOf={errorOf} />
      </div>
    </Panel>
  );
}

interface KeyFieldProps {
  readonly value: string;
  readonly onChange: (key: string) => void;
}

function KeyField({ value, onChange }: KeyFieldProps): ReactElement {
  const active = (useKeys().data?.keys ?? []).filter(({ state }) => state === 'active');
  return (
    <SelectField
      label="Call as"
      value={value}
      onChange={onChange}
      hint="The key's scope, limits and budgets apply, and the call is charged to it."
      choices={[
        { value: '', label: 'the playground, without limits' },
        ...active.map(({ id, name }) => ({ value: id, label: `${name} (${id})` })),
      ]}
    />
  );
}

interface DetailsProps extends Pick<SettingsFormProps, 'settings' | 'onChange'> {
  readonly errorOf: (name: keyof CallSettings) => string | undefined;
}

function Details({ settings, onChange, errorOf }: DetailsProps): ReactElement {
  return (
    <>
      <TextArea
        label="System prompt"
        rows={2}
        value={settings.system}
        onChange={(system) => onChange({ system })}
      />
      <div className={styles.pair}>
        <TextField
          label="Max tokens"
          inputMode="numeric"
          placeholder={settings.endpoint === 'messages' ? '1024' : 'model default'}
          value={settings.maxTokens}
          error={errorOf('maxTokens')}
          onChange={(maxTokens) => onChange({ maxTokens })}
        />
        <TextField
          label="Temperature"
          inputMode="decimal"
          placeholder="model default"
          value={settings.temperature}
          error={errorOf('temperature')}
          onChange={(temperature) => onChange({ temperature })}
        />
      </div>
      <TextArea
        label="Tools (JSON)"
        mono
        rows={settings.tools === '' ? 2 : 8}
        value={settings.tools}
        error={errorOf('tools')}
        onChange={(tools) => onChange({ tools })}
      />
      {settings.tools.trim() === '' ? (
        <div>
          <Button
            small
            icon="plus"
            onClick={() => onChange({ tools: exampleTools(settings.endpoint) })}
          >
            Add an example tool
          </Button>
        </div>
      ) : null}
      <TextArea
        label="Extra fields (JSON)"
        mono
        rows={2}
        value={settings.more}
        error={errorOf('more')}
        onChange={(more) => onChange({ more })}
      />
    </>
  );
}
