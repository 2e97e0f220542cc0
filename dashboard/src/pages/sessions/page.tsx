/** Who is signed in where; for owners also who may sign in. */
import { useState, type ReactElement } from 'react';
import { useMay } from '../../api/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Confirm } from '../../components/dialog.tsx';
import layout from '../../components/layout.module.css';
import { PageHead, Panel } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { moment } from '../../format/time.ts';
import { sessionPath, useAccessChange, useSessions, type ListedSession } from './api.ts';
import { People } from './people.tsx';

export function SessionsPage(): ReactElement {
  const isOwner = useMay(['owner']);
  return (
    <>
      <PageHead
        title="Sessions"
        about={
          isOwner ? 'Browsers that are signed in, and people.' : 'Your browsers that are signed in.'
        }
      />
      <div className={layout.stack}>
        <Sessions />
        {isOwner ? <People /> : null}
      </div>
    </>
  );
}

function columnsOf(end: (session: ListedSession) => void): readonly Column<ListedSession>[] {
  return [
    {
      id: 'person',
      title: 'Person',
      width: 'minmax(10rem, 2fr)',
      cell: ({ person }) => <CutText text={person ?? 'admin token'} />,
    },
    {
      id: 'ip',
      title: 'From',
      width: 'minmax(8rem, 1fr)',
      cell: ({ ip }) => <CutText text={ip ?? '–'} />,
    },
    { id: 'began', title: 'Signed in', width: '9rem', cell: (each) => moment(each.created_at) },
    { id: 'seen', title: 'Last used', width: '9rem', cell: (each) => moment(each.seen_at) },
    { id: 'ends', title: 'Expires', width: '9rem', cell: (each) => moment(each.ends_at) },
    {
      id: 'end',
      title: 'Action',
      width: '8rem',
      align: 'end',
      cell: (each) =>
        each.current ? (
          <Badge tone="accent" text="this browser" />
        ) : (
          <Button small onClick={() => end(each)}>
            End session
          </Button>
        ),
    },
  ];
}

function Sessions(): ReactElement {
  const query = useSessions();
  const [asked, setAsked] = useState<ListedSession>();
  const change = useAccessChange();
  return (
    <Panel title="Sessions" flush>
      <QueryState query={query}>
        {({ sessions }) => (
          <DataTable
            label="Sessions"
            columns={columnsOf(setAsked)}
            count={sessions.length}
            rowAt={(index) => sessions[index]}
            rowKey={({ id }) => id}
            minWidth="56rem"
          />
        )}
      </QueryState>
      <Confirm
        open={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title="End this session?"
        action="End session"
        danger
        onConfirm={() =>
          change.mutateAsync({ method: 'DELETE', path: sessionPath(asked?.id ?? '') })
        }
      >
        {asked?.person ?? 'Who has the admin token'} may sign in again.
      </Confirm>
    </Panel>
  );
}
