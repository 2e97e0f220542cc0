/** All keys, however many: the table fetches the pages that come into sight. */
import { useCallback, useDeferredValue, useMemo, useState, type ReactElement } from 'react';
import { useOpened } from '../../api/search.ts';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { TextField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, Loading } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { useKeys, type Key } from './api.ts';
import { budgetsText } from './budgets.tsx';
import { KeySheet, StateBadge } from './key-sheet.tsx';
import { lastUsed } from './last-used.ts';

const columns: readonly Column<Key>[] = [
  {
    id: 'name',
    title: 'Name',
    width: 'minmax(10rem, 3fr)',
    cell: ({ name }) => <CutText text={name} />,
  },
  {
    id: 'state',
    title: 'State',
    width: '6rem',
    cell: ({ state }) => <StateBadge state={state} />,
  },
  { id: 'id', title: 'Id', width: '7rem', cell: ({ id }) => <code>{id}</code> },
  {
    id: 'team',
    title: 'Team',
    width: 'minmax(6rem, 1fr)',
    cell: ({ team }) => <CutText text={team ?? '–'} />,
  },
  {
    id: 'models',
    title: 'Models',
    width: 'minmax(8rem, 2fr)',
    cell: ({ models }) => <CutText text={models.join(', ')} />,
  },
  { id: 'rpm', title: 'Requests/min', width: '7rem', align: 'end', cell: ({ rpm }) => count(rpm) },
  {
    id: 'budget',
    title: 'Budget',
    width: '8rem',
    align: 'end',
    cell: ({ budgets }) => <CutText text={budgetsText(budgets)} />,
  },
  {
    id: 'used',
    title: 'Last used',
    width: '8rem',
    align: 'end',
    cell: (key) => lastUsed(key),
  },
];

interface KeyListProps {
  readonly onCreate: () => void;
}

export function KeyList({ onCreate }: KeyListProps): ReactElement {
  const [text, setText] = useState('');
  const opened = useOpened('key');
  const query = useKeys(useDeferredValue(text.trim()));
  const keys = useMemo(() => query.data?.pages.flatMap((page) => page.keys) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onSight = useCallback(
    (_first: number, last: number): void => {
      if (hasNextPage && !isFetchingNextPage && last >= keys.length - 50) void fetchNextPage();
    },
    [hasNextPage, isFetchingNextPage, fetchNextPage, keys.length],
  );
  return (
    <Panel flush>
      <div className={layout.tools}>
        <TextField
          label="Find keys"
          quietLabel
          type="search"
          placeholder="Find by name, id, team, owner or tag"
          value={text}
          onChange={setText}
        />
      </div>
      {query.isError ? (
        <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />
      ) : null}
      {query.isPending && !query.isError ? <Loading /> : null}
      {keys.length > 0 ? (
        <DataTable
          label="Keys"
          columns={columns}
          count={keys.length}
          rowAt={(index) => keys[index]}
          rowKey={({ id }) => id}
          onOpen={({ id }) => opened.open(id)}
          selected={opened.id}
          onSight={onSight}
          hasMore={hasNextPage}
          minWidth="60rem"
        />
      ) : null}
      {query.isSuccess && keys.length === 0 ? <None text={text} onCreate={onCreate} /> : null}
      {opened.id === undefined ? null : <KeySheet id={opened.id} onClose={opened.close} />}
    </Panel>
  );
}

function None({
  text,
  onCreate,
}: KeyListProps & {
  readonly text: string;
}): ReactElement {
  if (text.trim() !== '') return <Empty title="No key contains this text" />;
  return (
    <Empty
      title="No keys yet"
      action={
        <Button look="primary" onClick={onCreate}>
          Create a key
        </Button>
      }
    >
      Clients call the gateway with a key. Each key has its own models, limits and budgets.
    </Empty>
  );
}
