/** People who signed in: an owner takes their access away, and gives it back. */
import { useState, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Confirm } from '../../components/dialog.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { moment } from '../../format/time.ts';
import { personPath, useAccessChange, usePeople, type Person } from './api.ts';

function columnsOf(ask: (person: Person) => void): readonly Column<Person>[] {
  return [
    {
      id: 'name',
      title: 'Person',
      width: 'minmax(10rem, 2fr)',
      cell: ({ id, name }) => <CutText text={name === id ? id : `${name} (${id})`} />,
    },
    {
      id: 'roles',
      title: 'Roles',
      width: 'minmax(8rem, 1fr)',
      cell: ({ roles }) => <CutText text={roles.length === 0 ? 'none' : roles.join(', ')} />,
    },
    {
      id: 'teams',
      title: 'Teams',
      width: 'minmax(8rem, 1fr)',
      cell: ({ leads, teams }) => (
        <CutText text={[...new Set([...leads, ...teams])].join(', ') || '–'} />
      ),
    },
    { id: 'keys', title: 'Keys', width: '5rem', align: 'end', cell: ({ keys }) => count(keys) },
    { id: 'seen', title: 'Last sign-in', width: '9rem', cell: (each) => moment(each.seen_at) },
    {
      id: 'access',
      title: 'Access',
      width: '8rem',
      align: 'end',
      cell: (person) => (
        <Button
          small
          look={person.revoked_at === null ? 'danger' : 'plain'}
          onClick={() => ask(person)}
        >
          {person.revoked_at === null ? 'Revoke' : 'Restore'}
        </Button>
      ),
    },
  ];
}

export function People(): ReactElement {
  const query = usePeople();
  const [asked, setAsked] = useState<Person>();
  return (
    <Panel title="People" flush>
      <QueryState query={query}>
        {({ people }) =>
          people.length === 0 ? (
            <Empty title="No one has signed in yet">
              People sign in by OpenID Connect, which oidc in the config sets up.
            </Empty>
          ) : (
            <DataTable
              label="People"
              columns={columnsOf(setAsked)}
              count={people.length}
              rowAt={(index) => people[index]}
              rowKey={({ id }) => id}
              minWidth="52rem"
            />
          )
        }
      </QueryState>
      {asked === undefined ? null : (
        <ChangeAccess person={asked} onClose={() => setAsked(undefined)} />
      )}
    </Panel>
  );
}

interface ChangeAccessProps {
  readonly person: Person;
  readonly onClose: () => void;
}

function ChangeAccess({ person, onClose }: ChangeAccessProps): ReactElement {
  const change = useAccessChange();
  const isIn = person.revoked_at === null;
  const path = personPath(person.id, isIn ? 'revoke' : 'restore');
  return (
    <Confirm
      open
      onClose={onClose}
      title={isIn ? `Revoke ${person.name}?` : `Restore ${person.name}?`}
      action={isIn ? 'Revoke access' : 'Restore access'}
      danger={isIn}
      onConfirm={() => change.mutateAsync({ method: 'POST', path })}
    >
      {isIn
        ? 'All sessions and keys of this person end now, and running calls are cut. Keys stay revoked permanently.'
        : 'This person may sign in again. Revoked keys stay revoked.'}
    </Confirm>
  );
}
