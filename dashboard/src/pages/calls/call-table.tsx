/** The calls of a filter, newest first. */
import { useMemo, type ReactElement } from 'react';
import { firstTokenMs, type Call, type CallFilter } from '../../api/calls.ts';
import { useKeyNames } from '../../api/names.ts';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Empty, ErrorPanel, Loading } from '../../components/state.tsx';
import { exactMoney, money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { fullMoment, moment, span } from '../../format/time.ts';
import { useCallPages, type CallPages } from './call-pages.ts';
import { OutcomeBadge } from './outcome-badge.tsx';
import styles from './page.module.css';

const numbers: readonly Column<Call>[] = [
  {
    id: 'input',
    title: 'Input',
    width: '5rem',
    align: 'end',
    cell: ({ charged }) => count(inputOf(charged)),
  },
  {
    id: 'output',
    title: 'Output',
    width: '5rem',
    align: 'end',
    cell: ({ charged }) => count(charged.output_tokens),
  },
  {
    id: 'cost',
    title: 'Cost',
    width: '5.5rem',
    align: 'end',
    cell: ({ cost_usd: cost }) => <span title={exactMoney(cost)}>{money(cost)}</span>,
  },
  {
    id: 'first',
    title: 'First token',
    width: '5.25rem',
    align: 'end',
    cell: (call) => span(firstTokenMs(call)),
  },
  {
    id: 'ms',
    title: 'Total',
    width: '4.75rem',
    align: 'end',
    cell: (call) => span(call.total_ms),
  },
];

function columnsOf(keyName: (id: string) => string): readonly Column<Call>[] {
  return [
    {
      id: 'time',
      title: 'Time',
      width: '8.75rem',
      cell: ({ started_at: at }) => <time title={fullMoment(at)}>{moment(at)}</time>,
    },
    {
      id: 'outcome',
      title: 'Outcome',
      width: 'minmax(12rem, 2fr)',
      cell: (call) => <OutcomeBadge call={call} />,
    },
    {
      id: 'model',
      title: 'Model',
      width: 'minmax(6rem, 2fr)',
      cell: ({ model }) => <CutText text={model} />,
    },
    {
      id: 'provider',
      title: 'Answered by',
      width: 'minmax(8.5rem, 3fr)',
      cell: (call) => <CutText text={answeredBy(call)} />,
    },
    {
      id: 'key',
      title: 'Key',
      width: 'minmax(6rem, 2fr)',
      cell: ({ key }) => <CutText text={keyName(key)} />,
    },
    ...numbers,
  ];
}

/** Provider and its model; a dash where no upstream was asked. */
function answeredBy(call: Call): string {
  if (call.provider === null) return '–';
  const tries = call.attempts > 1 ? ` (attempt ${call.attempts})` : '';
  return `${call.provider}/${call.upstream_model ?? ''}${tries}`;
}

/** Null where no part is known. */
export function inputOf(counts: Call['charged']): number | null {
  const parts = [counts.fresh_input_tokens, counts.cache_read_tokens, counts.cache_write_tokens];
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? null : known.reduce((sum, part) => sum + part, 0);
}

interface CallTableProps {
  readonly filter: CallFilter;
  readonly selected: string | undefined;
  readonly onOpen: (call: Call) => void;
}

export function CallTable({ filter, selected, onOpen }: CallTableProps): ReactElement {
  const pages = useCallPages(filter);
  const keys = useKeyNames();
  const columns = useMemo(() => {
    const known = new Map(keys.data?.map(({ id, name }) => [id, name]));
    return columnsOf((id) => known.get(id) ?? id);
  }, [keys.data]);
  const { rows, hasMore, isPaused, error } = pages;
  if (rows === 0) return <NoRows pages={pages} isFiltered={Object.keys(filter).length > 0} />;
  return (
    <>
      {error === undefined ? null : <ErrorPanel error={error} onRetry={pages.retry} />}
      <DataTable
        label="Calls"
        columns={columns}
        count={hasMore && !isPaused ? rows + 1 : rows}
        rowAt={pages.rowAt}
        rowKey={({ id }) => id}
        onOpen={onOpen}
        selected={selected}
        onSight={pages.onSight}
        hasMore={hasMore}
        minWidth="68rem"
        maxHeight="calc(100dvh - 15rem)"
      />
      <End pages={pages} />
    </>
  );
}

function NoRows({
  pages,
  isFiltered,
}: {
  readonly pages: CallPages;
  readonly isFiltered: boolean;
}): ReactElement {
  const { hasMore, isPaused, error, reached } = pages;
  if (error !== undefined) return <ErrorPanel error={error} onRetry={pages.retry} />;
  if (isPaused) {
    return (
      <Empty
        title="No matching calls yet"
        action={<Button onClick={pages.searchOn}>Search further back</Button>}
      >
        {reached === undefined ? '' : `Looked back to ${fullMoment(reached)}.`}
      </Empty>
    );
  }
  if (hasMore) {
    return (
      <Loading
        what={reached === undefined ? 'Loading…' : `Looking back to ${fullMoment(reached)}…`}
      />
    );
  }
  if (isFiltered) return <Empty title="No matching calls">Change or clear a filter.</Empty>;
  return (
    <Empty title="No calls yet">
      Calls appear here a moment after they end. The Setup page has snippets for your client.
    </Empty>
  );
}

function End({ pages }: { readonly pages: CallPages }): ReactElement {
  const { rows, hasMore, isPaused, reached } = pages;
  return (
    <div className={styles.end}>
      <span>
        {hasMore ? `${count(rows)} calls so far; scroll to load more.` : `${count(rows)} calls.`}
      </span>
      {isPaused ? (
        <>
          <span>{reached === undefined ? '' : `Looked back to ${fullMoment(reached)}.`}</span>
          <Button small onClick={pages.searchOn}>
            Search further back
          </Button>
        </>
      ) : null}
    </div>
  );
}
