/** Teams: limits and budgets that keys have together. */
import { useState, type ReactElement } from 'react';
import { useOpened } from '../../api/search.ts';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Confirm, Dialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { useChange, useTeam, useTeams, type Team } from './api.ts';
import { Budgets, budgetsText } from './budgets.tsx';
import { policyBody } from './form.ts';
import styles from './keys.module.css';
import { PolicyForm, wrongOf } from './policy-form.tsx';
import { emptyPolicy, policyFieldsOf } from './policy.ts';

const columns: readonly Column<Team>[] = [
  {
    id: 'name',
    title: 'Team',
    width: 'minmax(10rem, 3fr)',
    cell: ({ name }) => <CutText text={name} />,
  },
  { id: 'rpm', title: 'Requests/min', width: '7rem', align: 'end', cell: ({ rpm }) => count(rpm) },
  { id: 'tpm', title: 'Tokens/min', width: '7rem', align: 'end', cell: ({ tpm }) => count(tpm) },
  {
    id: 'budget',
    title: 'Budget',
    width: '9rem',
    align: 'end',
    cell: ({ budgets }) => <CutText text={budgetsText(budgets)} />,
  },
];

export function Teams(): ReactElement {
  const query = useTeams();
  const [isNew, setNew] = useState(false);
  const opened = useOpened('team');
  return (
    <Panel
      title="Teams"
      flush
      actions={
        <Button small icon="plus" onClick={() => setNew(true)}>
          Set up a team
        </Button>
      }
    >
      <QueryState query={query}>
        {({ teams }) =>
          teams.length === 0 ? (
            <Empty title="No team has limits or budgets">
              Each key names its team; the limits set here apply to all keys of the team together.
            </Empty>
          ) : (
            <DataTable
              label="Teams"
              columns={columns}
              count={teams.length}
              rowAt={(index) => teams[index]}
              rowKey={({ name }) => name}
              onOpen={({ name }) => opened.open(name)}
              selected={opened.id}
              minWidth="36rem"
            />
          )
        }
      </QueryState>
      {isNew ? <NewTeam onClose={() => setNew(false)} /> : null}
      {opened.id === undefined ? null : <TeamWindow name={opened.id} onClose={opened.close} />}
    </Panel>
  );
}

interface TeamSheetProps {
  readonly team: Team;
  readonly onClose: () => void;
}

const teamPath = (name: string): string => `/api/teams/${encodeURIComponent(name.trim())}`;

function NewTeam({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [name, setName] = useState('');
  const [fields, setFields] = useState(emptyPolicy);
  const change = useChange<Team>();
  const save = (): void => {
    const request = { method: 'PUT', path: teamPath(name), body: policyBody(fields) } as const;
    change.mutate(request, { onSuccess: onClose });
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="Set up a team"
      footer={
        <Button look="primary" busy={change.isPending} onClick={save}>
          Save
        </Button>
      }
    >
      <div className={styles.form}>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        <TextField label="Name" value={name} onChange={setName} />
        <PolicyForm fields={fields} onChange={setFields} wrong={wrongOf(change.error)} />
      </div>
    </Dialog>
  );
}

function TeamWindow({
  name,
  onClose,
}: {
  readonly name: string;
  readonly onClose: () => void;
}): ReactElement {
  const query = useTeam(name);
  if (query.data !== undefined) return <TeamSheet team={query.data} onClose={onClose} />;
  return (
    <Dialog open onClose={onClose} title={name} shape="side">
      <QueryState query={query}>{() => null}</QueryState>
    </Dialog>
  );
}

function TeamSheet({ team, onClose }: TeamSheetProps): ReactElement {
  const { name } = team;
  const [fields, setFields] = useState(() => policyFieldsOf(team));
  const [isAsking, setAsking] = useState(false);
  const change = useChange<Team>();
  const isFixed = team.source === 'config';
  const path = teamPath(name);
  const save = (): void =>
    change.mutate({ method: 'PUT', path, body: policyBody(fields) }, { onSuccess: onClose });
  const buttons = (
    <>
      <Button look="danger" onClick={() => setAsking(true)}>
        Remove
      </Button>
      <Button look="primary" busy={change.isPending} onClick={save}>
        Save
      </Button>
    </>
  );
  return (
    <Dialog open onClose={onClose} title={name} shape="side" footer={isFixed ? undefined : buttons}>
      <div className={layout.sections}>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        <Budgets budgets={team.budgets} holder={{ team: name }} />
        {isFixed ? (
          <p>It is declared in the config and can only be changed there.</p>
        ) : (
          <PolicyForm fields={fields} onChange={setFields} wrong={wrongOf(change.error)} />
        )}
      </div>
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title="Remove the limits of this team?"
        action="Remove limits"
        danger
        onConfirm={() => change.mutateAsync({ method: 'DELETE', path }).then(onClose)}
      >
        Its keys stay and keep their own limits.
      </Confirm>
    </Dialog>
  );
}
