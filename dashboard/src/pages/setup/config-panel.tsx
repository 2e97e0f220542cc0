/** The effective configuration, and where each value comes from. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactElement } from 'react';
import { get, send } from '../../api/client.ts';
import { operators, owners, useMay } from '../../api/session.ts';
import { Button } from '../../components/button.tsx';
import { TextField } from '../../components/field.tsx';
import { later } from '../../components/later.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, Loading, QueryState } from '../../components/state.tsx';
import { useToast } from '../../components/toast.tsx';
import styles from './setup.module.css';

interface Setting {
  readonly path: string;
  readonly value: string;
  readonly origin: string;
}

interface Config {
  readonly config_file: string | null;
  readonly settings: readonly Setting[];
  readonly warnings: readonly string[];
}

interface Reloaded {
  /** Settings that differ from those that run, and are read at start only. */
  readonly needs_restart: readonly string[];
}

const maxShown = 500;

const Editor = later(async () => (await import('./config-editor.tsx')).ConfigEditor, <Loading />);

export function ConfigPanel(): ReactElement {
  const [wanted, setWanted] = useState('');
  const client = useQueryClient();
  const toast = useToast();
  const [isEditing, setEditing] = useState(false);
  const mayReload = useMay(operators);
  const mayEdit = useMay(owners);
  const config = useQuery({
    queryKey: ['config'],
    queryFn: ({ signal }) => get<Config>('/api/config', { signal }),
  });
  const reload = useMutation({
    mutationFn: () => send<Reloaded>('POST', '/api/reload'),
    onSuccess: ({ needs_restart: waiting }) => {
      toast.done(
        waiting.length === 0
          ? 'The configuration was reloaded and applied.'
          : `The configuration was reloaded. Restart the gateway for ${waiting.join(', ')}.`,
      );
      return client.invalidateQueries();
    },
  });
  return (
    <Panel
      title="Effective configuration"
      actions={
        <>
          <TextField
            label="Filter settings"
            quietLabel
            placeholder="Filter"
            value={wanted}
            onChange={setWanted}
          />
          {mayReload ? (
            <Button icon="refresh" busy={reload.isPending} onClick={() => reload.mutate()}>
              Reload the file
            </Button>
          ) : null}
          {mayEdit && !isEditing ? (
            <Button onClick={() => setEditing(true)}>Edit the file</Button>
          ) : null}
        </>
      }
    >
      {reload.error === null ? null : <ErrorPanel error={reload.error} />}
      {isEditing ? <Editor onClose={() => setEditing(false)} /> : null}
      <QueryState query={config}>
        {(data) => (
          <>
            <p className={styles.note}>
              {data.config_file === null
                ? 'There is no config file: all values are defaults, flags or environment variables.'
                : data.config_file}
              {mayEdit ? '' : ' Owners edit it here.'}
            </p>
            {data.warnings.map((warning) => (
              <p key={warning} className={styles.warning}>
                {warning}
              </p>
            ))}
            <SettingsTable settings={data.settings} wanted={wanted} />
          </>
        )}
      </QueryState>
    </Panel>
  );
}

interface SettingsTableProps {
  readonly settings: readonly Setting[];
  readonly wanted: string;
}

function SettingsTable({ settings, wanted }: SettingsTableProps): ReactElement {
  const text = wanted.trim().toLowerCase();
  const found = settings.filter(({ path, value, origin }) =>
    `${path} ${value} ${origin}`.toLowerCase().includes(text),
  );
  if (found.length === 0) {
    return <Empty title="No matching settings">No name, value or origin contains this text.</Empty>;
  }
  return (
    <div className={styles.scroll} tabIndex={0} role="region" aria-label="Settings">
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Value</th>
            <th scope="col">From</th>
          </tr>
        </thead>
        <tbody>
          {found.slice(0, maxShown).map(({ path, value, origin }, index) => (
            <tr key={`${index}-${path}`}>
              <th scope="row">{path}</th>
              <td data-title="Value">{value}</td>
              <td className={styles.origin} data-title="From">
                {origin}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.length > maxShown ? (
        <p className={styles.note}>
          {found.length - maxShown} more. Filter to see them, or run model-gateway check.
        </p>
      ) : null}
    </div>
  );
}
