/** Which endpoint and models are called, as whom, and with what. */
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactElement, type ReactNode } from 'react';
import { get } from '../../api/client.ts';
import { Button, IconButton } from '../../components/button.tsx';
import { CheckField, SelectField, TextArea } from '../../components/field.tsx';
import { ModelField } from '../../components/model-field.tsx';
import { Panel } from '../../components/panel.tsx';
import type { SettingError } from './formats/request.ts';
import { exampleTools, translatedTools } from './formats/tools.ts';
import { endpointPaths, endpoints, toolChoices, type CallSettings } from './formats/turns.ts';
import { Parameters } from './parameters.tsx';
import styles from './playground.module.css';

/** A model that is asked, and the side that shows its conversation. */
export interface AskedModel {
  /** Of the side; stays when others are removed. */
  readonly slot: number;
  readonly name: string;
}

export interface PlaygroundSettings extends Omit<CallSettings, 'model'> {
  /** One or more, at most four. */
  readonly models: readonly AskedModel[];
  /** Id of the key to call as; '' = none. */
  readonly key: string;
}

export interface SettingsFormProps {
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

export function SettingsForm(props: SettingsFormProps): ReactElement {
  const { settings, onChange } = props;
  const setEndpoint = (value: string): void => {
    const to = endpoints.find((each) => each === value) ?? 'chat';
    onChange({ endpoint: to, tools: translatedTools(settings.tools, to) });
  };
  return (
    <Panel title="Call">
      <div className={styles.settings}>
        <SelectField
          label="Endpoint"
          value={settings.endpoint}
          onChange={setEndpoint}
          choices={endpoints.map((value) => ({ value, label: endpointPaths[value] }))}
        />
        <Models {...props} />
        <KeyField value={settings.key} onChange={(key) => onChange({ key })} />
      </div>
    </Panel>
  );
}

/** What a call has besides model and conversation. */
export function ParametersForm({ settings, onChange, wrong }: SettingsFormProps): ReactElement {
  const errorOf = (name: keyof CallSettings): string | undefined =>
    wrong?.setting === name ? wrong.message : undefined;
  return (
    <Panel title="Parameters">
      <div className={styles.settings}>
        <CheckField
          label="Stream the answer"
          checked={settings.stream}
          onChange={(stream) => onChange({ stream })}
        />
        <TextArea
          label="System prompt"
          rows={2}
          value={settings.system}
          onChange={(system) => onChange({ system })}
        />
        <Parameters settings={settings} onChange={onChange} errorOf={errorOf} />
        <Tools settings={settings} onChange={onChange} errorOf={errorOf} />
        <Fold
          title="Extra fields"
          isSet={settings.more !== ''}
          hasError={wrong?.setting === 'more'}
        >
          <TextArea
            label="Extra fields (JSON)"
            hint="Members of this object are added to the request."
            mono
            rows={2}
            value={settings.more}
            error={errorOf('more')}
            onChange={(more) => onChange({ more })}
          />
        </Fold>
      </div>
    </Panel>
  );
}

function Models({ settings, onChange, wrong, firstModel }: SettingsFormProps): ReactElement {
  const { models } = settings;
  const free = [0, 1, 2, 3].find((slot) => models.every((model) => model.slot !== slot));
  return (
    <>
      {models.map((model, index) => (
        <div key={model.slot} className={models.length === 1 ? undefined : styles.model}>
          <ModelField
            label={index === 0 ? 'Model' : `Model ${index + 1}`}
            placeholder={firstModel}
            hint={
              model.name === '' && firstModel !== ''
                ? `${firstModel}, unless you choose one`
                : undefined
            }
            value={model.name}
            error={wrong?.setting === 'model' && model.name === '' ? wrong.message : undefined}
            onChange={(name) =>
              onChange({
                models: models.map((each) => (each === model ? { ...each, name } : each)),
              })
            }
          />
          {models.length === 1 ? null : (
            <IconButton
              icon="close"
              label={`Remove model ${index + 1}`}
              onClick={() => onChange({ models: models.filter((each) => each !== model) })}
            />
          )}
        </div>
      ))}
      {free === undefined ? null : (
        <div>
          <Button
            small
            icon="plus"
            onClick={() => onChange({ models: [...models, { slot: free, name: '' }] })}
          >
            Compare with another model
          </Button>
        </div>
      )}
    </>
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
      hint="With a key, its scope, limits and budgets apply, and the call is charged to it."
      choices={[
        { value: '', label: 'the playground, without limits' },
        ...active.map(({ id, name }) => ({ value: id, label: `${name} (${id})` })),
      ]}
    />
  );
}

export interface PartProps extends Pick<SettingsFormProps, 'settings' | 'onChange'> {
  readonly errorOf: (name: keyof CallSettings) => string | undefined;
}

function Tools({ settings, onChange, errorOf }: PartProps): ReactElement {
  const { endpoint, tools } = settings;
  const error = errorOf('tools');
  return (
    <Fold title="Tools" isSet={tools.trim() !== ''} hasError={error !== undefined}>
      <TextArea
        label="Tools (JSON)"
        mono
        rows={tools === '' ? 2 : 8}
        value={tools}
        error={error}
        onChange={(text) => onChange({ tools: text })}
      />
      {tools.trim() === '' ? (
        <div>
          <Button small icon="plus" onClick={() => onChange({ tools: exampleTools(endpoint) })}>
            Add an example tool
          </Button>
        </div>
      ) : (
        <SelectField
          label="Tool choice"
          value={settings.toolChoice}
          onChange={(toolChoice) => onChange({ toolChoice })}
          choices={[
            { value: '', label: 'default' },
            ...toolChoices.map((value) => ({ value, label: value })),
          ]}
        />
      )}
    </Fold>
  );
}

interface FoldProps {
  readonly title: string;
  readonly isSet: boolean;
  /** An error inside must be seen. */
  readonly hasError: boolean;
  readonly children: ReactNode;
}

/** Fields that most calls do without. */
function Fold({ title, isSet, hasError, children }: FoldProps): ReactElement {
  const [isOpen, setOpen] = useState(isSet);
  return (
    <details
      className={styles.fold}
      open={isOpen || hasError}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        {title}
        {isSet ? <span className={styles.hint}> set</span> : null}
      </summary>
      <div className={styles.settings}>{children}</div>
    </details>
  );
}
