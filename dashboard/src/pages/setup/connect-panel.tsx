/** What to paste for each client: the texts of `model-gateway connect`. */
import { useState, type ReactElement } from 'react';
import { clients, type Ask } from '../../../../src/cli/clients.ts';
import { placeholderKey } from '../../../../src/cli/connection.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { TextField } from '../../components/field.tsx';
import { ModelField } from '../../components/model-field.tsx';
import { Panel } from '../../components/panel.tsx';
import { Tabs } from '../../components/tabs.tsx';
import styles from './setup.module.css';

const alwaysThere = 'local/tiny';

const titles: ReadonlyMap<string, string> = new Map([
  ['claude-code', 'Claude Code'],
  ['codex', 'Codex'],
  ['opencode', 'opencode'],
  ['openai-sdk', 'OpenAI SDK'],
  ['anthropic-sdk', 'Anthropic SDK'],
  ['curl', 'curl'],
]);

/** @param url of the data plane; undefined while it is not known. */
export function ConnectPanel({ url }: { url: string | undefined }): ReactElement {
  const [model, setModel] = useState('');
  const [address, setAddress] = useState<string>();
  const chosen = model.trim();
  const shownAddress = address ?? reachable(url);
  const ask: Ask = {
    connection: {
      url: shownAddress.trim().replace(/\/+$/, '').replace(/\/v1$/, ''),
      key: placeholderKey,
      model: chosen === '' ? alwaysThere : chosen,
    },
    modelGiven: chosen !== '',
    env: {},
  };
  return (
    <Panel title="Connect a client">
      <div className={styles.choices}>
        <TextField
          label="Address"
          hint="As clients reach the data plane."
          value={shownAddress}
          onChange={setAddress}
        />
        <ModelField label="Model" placeholder={alwaysThere} value={model} onChange={setModel} />
      </div>
      <Clients ask={ask} />
      <p className={styles.note}>
        Put a key in the place of {placeholderKey}: the page Keys makes one.
      </p>
    </Panel>
  );
}

function Clients({ ask }: { ask: Ask }): ReactElement {
  const tabs = clients.map((client) => {
    const title = titles.get(client.name) ?? client.name;
    const content = (
      <div className={styles.client}>
        <CodeBlock label={`Lines for ${title}`} text={client.text(ask).trimEnd()} />
        {(client.notes?.(ask) ?? []).map((note) => (
          <p key={note} className={styles.note}>
            {note}
          </p>
        ))}
      </div>
    );
    return { id: client.name, title, content };
  });
  return <Tabs label="Clients" tabs={tabs} />;
}

/** What listens everywhere is reached at the name by which this page was. */
function reachable(url: string | undefined): string {
  const known = url ?? 'http://127.0.0.1:8686';
  return known.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])(?=[:/]|$)/, `$1${location.hostname}`);
}
