/** What to paste for each client: the texts of `model-gateway connect`. */
import { useState, type ReactElement } from 'react';
import { clientText, type Ask } from '../../../../src/cli/clients/client.ts';
import { clients } from '../../../../src/cli/clients/clients.ts';
import { answerLimits, placeholderKey, type Connection } from '../../../../src/cli/connection.ts';
import { reachable } from '../../api/status.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { SelectField, TextField } from '../../components/field.tsx';
import { ModelField, useListedModels, type ListedModel } from '../../components/model-field.tsx';
import { Panel } from '../../components/panel.tsx';
import styles from './setup.module.css';

const alwaysThere = 'local/tiny';

/** @param url of the data plane; undefined while it is not known. */
export function ConnectPanel({ url }: { url: string | undefined }): ReactElement {
  const [model, setModel] = useState('');
  const [address, setAddress] = useState<string>();
  const chosen = model.trim();
  const listed = useListedModels().data?.find(({ id }) => id === chosen);
  const shownAddress = address ?? reachable(url ?? 'http://127.0.0.1:8686');
  const ask: Ask = {
    connection: {
      url: shownAddress.trim().replace(/\/+$/, '').replace(/\/v1$/, ''),
      key: placeholderKey,
      model: chosen === '' ? alwaysThere : chosen,
      ...limitsOf(listed),
    },
    modelGiven: chosen !== '',
    env: {},
  };
  return (
    <Panel title="Connect a client">
      <div className={styles.choices}>
        <TextField
          label="Address"
          hint="The address under which clients reach the data plane."
          value={shownAddress}
          onChange={setAddress}
        />
        <ModelField label="Model" placeholder={alwaysThere} value={model} onChange={setModel} />
      </div>
      <Clients ask={ask} />
      <p className={styles.note}>Replace {placeholderKey}: create one on the Keys page.</p>
    </Panel>
  );
}

function Clients({ ask }: { ask: Ask }): ReactElement {
  const [name, setName] = useState(clients[0]?.name ?? '');
  const client = clients.find((each) => each.name === name);
  return (
    <div className={styles.client}>
      <SelectField
        label="Client"
        value={name}
        onChange={setName}
        choices={clients.map((each) => ({ value: each.name, label: each.title }))}
      />
      {client === undefined ? null : (
        <>
          <CodeBlock
            label={`Snippet for ${client.title}`}
            text={clientText(client, ask).trimEnd()}
          />
          {(client.notes?.(ask) ?? []).map((note) => (
            <p key={note} className={styles.note}>
              {note}
            </p>
          ))}
        </>
      )}
    </div>
  );
}

function limitsOf(model: ListedModel | undefined): Pick<Connection, 'window' | 'maxOutput'> {
  return answerLimits(model?.max_input_tokens, model?.max_tokens);
}
