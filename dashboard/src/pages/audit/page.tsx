/** The audit log: who changed what and when, and whether the log is as it was written. */
import { useCallback, useMemo, type ReactElement } from 'react';
import { useKeyNames } from '../../api/names.ts';
import { useOpened, useSearch, type Search } from '../../api/search.ts';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import layout from '../../components/layout.module.css';
import { PageHead, Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, Loading } from '../../components/state.tsx';
import { moment } from '../../format/time.ts';
import { filterNames, filterOf, useAudit, type AuditEntry } from './api.ts';
import { changesText } from './changes.ts';
import { ChainPanel } from './chain.tsx';
import { EntrySheet, actorName, subjectName } from './entry.tsx';
import { AuditFilters } from './filters.tsx';

export function AuditPage(): ReactElement {
  const [search, change] = useSearch();
  const filter = useMemo(() => filterOf(search), [search]);
  return (
    <>
      <PageHead title="Audit log" about="Who changed what, newest first." />
      <div className={layout.stack}>
        <ChainPanel />
        <Panel flush>
          <AuditFilters search={search} change={change} />
          <Entries filter={filter} />
        </Panel>
      </div>
    </>
  );
}

function columnsOf(names: ReadonlyMap<string, string>): readonly Column<AuditEntry>[] {
  return [
    { id: 'at', title: 'When', width: '9.5rem', cell: ({ at }) => moment(at) },
    {
      id: 'actor',
      title: 'Who',
      width: 'minmax(7rem, 1fr)',
      cell: ({ actor }) => <CutText text={actorName(actor)} />,
    },
    {
      id: 'action',
      title: 'Action',
      width: 'minmax(8rem, 1fr)',
      cell: ({ action }) => <CutText text={action} />,
    },
    {
      id: 'subject',
      title: 'Subject',
      width: 'minmax(9rem, 2fr)',
      cell: ({ subject }) => <CutText text={subjectName(subject, names)} />,
    },
    {
      id: 'changes',
      title: 'Change',
      width: 'minmax(12rem, 4fr)',
      cell: ({ before, after }) => <CutText text={changesText(before, after) || '–'} />,
    },
    {
      id: 'ip',
      title: 'From',
      width: 'minmax(6rem, 1fr)',
      cell: ({ ip }) => <CutText text={ip ?? '–'} />,
    },
  ];
}

function Entries({ filter }: { readonly filter: Search }): ReactElement {
  const query = useAudit(filter);
  const opened = useOpened('entry');
  const keys = useKeyNames();
  const names = useMemo(
    () => new Map(keys.data?.map(({ id, name }) => [`key:${id}`, name] as const)),
    [keys.data],
  );
  const columns = useMemo(() => columnsOf(names), [names]);
  const entries = useMemo(() => query.data?.pages.flatMap((page) => page.entries), [query.data]);
  const count = entries?.length ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onSight = useCallback(
    (_first: number, last: number): void => {
      if (hasNextPage && !isFetchingNextPage && last >= count - 50) void fetchNextPage();
    },
    [hasNextPage, isFetchingNextPage, fetchNextPage, count],
  );
  return (
    <>
      {query.isError ? (
        <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />
      ) : null}
      {query.isPending && !query.isError ? <Loading /> : null}
      {entries !== undefined && count > 0 ? (
        <DataTable
          label="Audit log"
          columns={columns}
          count={count}
          rowAt={(index) => entries[index]}
          rowKey={({ seq }) => String(seq)}
          onOpen={({ seq }) => opened.open(String(seq))}
          selected={opened.id}
          onSight={onSight}
          hasMore={hasNextPage}
          minWidth="60rem"
        />
      ) : null}
      {entries !== undefined && count === 0 ? <NoEntries filter={filter} /> : null}
      {opened.id === undefined ? null : (
        <EntrySheet seq={Number(opened.id)} known={entries} names={names} onClose={opened.close} />
      )}
    </>
  );
}

function NoEntries({ filter }: { readonly filter: Search }): ReactElement {
  return filterNames.some((name) => filter[name] !== undefined) ? (
    <Empty title="No entry fits">Widen the period, or clear a filter.</Empty>
  ) : (
    <Empty title="No changes yet">Changes of keys, teams, tags and settings appear here.</Empty>
  );
}
