/** Teams: limits and budgets that keys have together. */
import { useState, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Confirm, Dialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, QueryState } from '../../components/state.tsx';
import { money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { useChange, useTeam, useTeams, type Team } from './api.ts';
import { Budgets } from './budgets.tsx';
import { emptyPolicy, policyBody, policyFieldsOf } from './form.ts';
import { PolicyForm, wrongOf } from './key-form.tsx';
import styles from './keys.module.css';

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
    cell: ({ budgets: [budget] }) =>
      budget === undefined ? '–' : `${money(Number(budget.usd))}/${budget.per}`,
  },
];

export function Teams(): ReactElement {
  const query = useTeams();
  const [edited, setEdited] = useState<Team | 'new'>();
  return (
    <Panel
      title="Teams"
      flush
      actions={
        <Button small icon="plus" onClick={() => setEdited('new')}>
          Set up a team
        </Button>
      }
    >
      <QueryState query={query}>
        {({ teams }) =>
          teams.length === 0 ? (
            <Empty title="No team has limits or budgets">
              A key names its team; what is set here holds for all its keys together.
            </Empty>
          ) : (
            <DataTable
              label="Teams"
              columns={columns}
              count={teams.length}
              rowAt={(index) => teams[index]}
              rowKey={({ name }) => name}
              onOpen={setEdited}
              minWidth="36rem"
            />
          )
        }
      </QueryState>
      {edited === 'new' ? <NewTeam onClose={() => setEdited(undefined)} /> : null}
      {edited === undefined || edited === 'new' ? null : (
        <TeamSheet team={edited} onClose={() => setEdited(undefined)} />
      )}
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
    const wish = { method: 'PUT', path: teamPath(name), body: policyBody(fields) } as const;
    change.mutate(wish, { onSuccess: onClose });
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

/** Why these fields cannot show all of a team; undefined when they can. */
function whyFixed({ source, budgets, limits }: Team): string | undefined {
  if (source === 'config') return 'It is declared in the config and changed there.';
  const isMore = budgets.length > 1 || limits.some(({ model }) => model !== null);
  return isMore ? 'It has more limits or budgets than fit here: use the command line.' : undefined;
}

function TeamSheet({ team, onClose }: TeamSheetProps): ReactElement {
  const { name } = team;
  const [fields, setFields] = useState(() => policyFieldsOf(team));
  const [isAsking, setAsking] = useState(false);
  const change = useChange<Team>();
  const fixed = whyFixed(team);
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
    <Dialog
      open
      onClose={onClose}
      title={name}
      shape="side"
      footer={fixed === undefined ? buttons : undefined}
    >
      <div className={styles.sections}>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        <TeamBudgets name={name} />
        {fixed === undefined ? (
          <PolicyForm fields={fields} onChange={setFields} wrong={wrongOf(change.error)} />
        ) : (
          <p>{fixed}</p>
        )}
      </div>
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title="Take the limits of this team away?"
        action="Remove limits"
        danger
        onConfirm={() => change.mutateAsync({ method: 'DELETE', path }).then(onClose)}
      >
        Its keys stay and are held by their own limits only.
      </Confirm>
    </Dialog>
  );
}

function TeamBudgets({ name }: { readonly name: string }): ReactElement {
  const query = useTeam(name);
  return (
    <QueryState query={query}>
      {({ budgets }) => <Budgets budgets={budgets} holder={{ team: name }} />}
    </QueryState>
  );
}
