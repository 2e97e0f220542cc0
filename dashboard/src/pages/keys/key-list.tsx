/** All keys, however many: the table fetches the pages that come into sight. */
import { useCallback, useDeferredValue, useMemo, useState, type ReactElement } from 'react';
import { useOpened, useSearch } from '../../api/search.ts';
import { keyMakers, useMay } from '../../api/session.ts';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { SelectField, TextField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { useUnsaved } from '../../components/leaving.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, Loading } from '../../components/state.tsx';
import {
  keySorts,
  keyStates,
  useChange,
  useKeys,
  type Budget,
  type Key,
  type NewKey,
} from './api.ts';
import { secretLoss, SecretOnce } from './key-dialogs.tsx';
import { KeySheet, StateBadge } from './key-sheet.tsx';
import { lastUsed } from './last-used.ts';
import { Spent, SpentBar, type SpentBudget } from './spent-bar.tsx';

export const keyColumns: readonly Column<Key>[] = [
  {
    id: 'name',
    title: 'Name',
    width: 'minmax(9rem, 3fr)',
    cell: ({ name }) => <CutText text={name} />,
  },
  {
    id: 'state',
    title: 'State',
    width: '5.5rem',
    cell: ({ state }) => <StateBadge state={state} />,
  },
  {
    id: 'budget',
    title: 'Budget',
    width: 'minmax(10rem, 2fr)',
    cell: ({ budgets }) => <SpentBar budgets={budgets.map(spentOf)} />,
  },
  {
    id: 'spend',
    title: 'Cost, 30 d',
    width: '6rem',
    align: 'end',
    sortable: true,
    cell: ({ spent_usd: spent }) => <Spent usd={spent} />,
  },
  {
    id: 'used',
    title: 'Last used',
    width: '8rem',
    align: 'end',
    sortable: true,
    cell: (key) => lastUsed(key),
  },
];

const columns: readonly Column<Key>[] = [
  ...keyColumns.slice(0, 2),
  { id: 'id', title: 'Id', width: '6.5rem', cell: ({ id }) => <code>{id}</code> },
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
  ...keyColumns.slice(2),
];

function spentOf({ usd, spent_usd: spent = '0', per }: Budget): SpentBudget {
  return { usd: Number(usd), spent: Number(spent), per };
}

/** What a table needs of a list whose pages come as they are scrolled to. */
export function usePages(query: ReturnType<typeof useKeys>) {
  const keys = useMemo(() => query.data?.pages.flatMap((page) => page.keys) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onSight = useCallback(
    (_first: number, last: number): void => {
      if (hasNextPage && !isFetchingNextPage && last >= keys.length - 50) void fetchNextPage();
    },
    [hasNextPage, isFetchingNextPage, fetchNextPage, keys.length],
  );
  return { keys, onSight };
}

interface KeyListProps {
  readonly onCreate: () => void;
}

export function KeyList({ onCreate }: KeyListProps): ReactElement {
  const [text, setText] = useState('');
  const [search, change] = useSearch();
  const opened = useOpened('key');
  const rotate = useChange<NewKey>();
  // The key whose rotation waits for its answer. "back" does not close its sheet: the answer is a refusal, or has the
  // secret, which nothing shows a second time.
  const [rotating, setRotating] = useState<string>();
  useUnsaved(rotate.isPending, secretLoss);
  const shown = rotating ?? opened.id;
  const { sort = 'created', state = '' } = search;
  const wanted = useDeferredValue(text.trim());
  const query = useKeys({ text: wanted, state, sort });
  const { keys, onSight } = usePages(query);
  const sortBy = (by: string): void => change({ sort: by === 'created' ? undefined : by });
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
        <SelectField
          label="State"
          quietLabel
          value={state}
          choices={keyStates}
          onChange={(chosen) => change({ state: chosen })}
        />
        <SelectField label="Order" quietLabel value={sort} choices={keySorts} onChange={sortBy} />
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
          hasMore={query.hasNextPage}
          sort={{ by: sort, onSort: (by) => sortBy(by === sort ? 'created' : by) }}
          minWidth="60rem"
        />
      ) : null}
      {query.isSuccess && keys.length === 0 && !query.hasNextPage ? (
        <None isFiltered={wanted !== '' || state !== ''} onCreate={onCreate} />
      ) : null}
      {shown === undefined || rotate.data !== undefined ? null : (
        <KeySheet
          key={shown}
          id={shown}
          rotate={rotate}
          onRotating={setRotating}
          onClose={opened.close}
        />
      )}
      {rotate.data === undefined ? null : (
        <SecretOnce open onClose={rotate.reset} made={rotate.data} />
      )}
    </Panel>
  );
}

function None({
  isFiltered,
  onCreate,
}: KeyListProps & { readonly isFiltered: boolean }): ReactElement {
  const mayCreate = useMay(keyMakers);
  if (isFiltered) return <Empty title="No matching keys">Change the text or the state.</Empty>;
  return (
    <Empty
      title="No keys yet"
      action={
        mayCreate ? (
          <Button look="primary" onClick={onCreate}>
            Create a key
          </Button>
        ) : undefined
      }
    >
      Clients call the gateway with a key. Each key has its own models, limits and budgets.
    </Empty>
  );
}
