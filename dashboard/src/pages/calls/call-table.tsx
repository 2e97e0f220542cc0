/** The calls of a filter, newest first. */
import type { ReactElement } from 'react';
import type { Call } from '../../api/calls.ts';
import { Button, PageLink } from '../../components/button.tsx';
import { DataTable, type DataTableProps } from '../../components/data-table.tsx';
import { Empty, ErrorPanel, Loading } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { fullMoment } from '../../format/time.ts';
import type { CallPages } from './call-pages.ts';
import type { CallColumn } from './columns.tsx';
import styles from './page.module.css';

interface TableProps {
  readonly columns: readonly CallColumn[];
  readonly selected: string | undefined;
  readonly onOpen: (call: Call) => void;
}

interface CallTableProps extends TableProps {
  readonly pages: CallPages;
  readonly isFiltered: boolean;
}

export function CallTable({ pages, isFiltered, ...table }: CallTableProps): ReactElement {
  const { rows, hasMore, isPaused, error } = pages;
  if (rows === 0) return <NoRows pages={pages} isFiltered={isFiltered} />;
  return (
    <>
      {error === undefined ? null : <ErrorPanel error={error} onRetry={pages.retry} />}
      <RowTable
        {...table}
        count={hasMore && !isPaused ? rows + 1 : rows}
        rowAt={pages.rowAt}
        onSight={pages.onSight}
        hasMore={hasMore}
      />
      <End pages={pages} />
    </>
  );
}

type RowTableProps = TableProps &
  Pick<DataTableProps<Call>, 'count' | 'rowAt' | 'onSight' | 'hasMore'>;

/** The table itself, of calls from anywhere. */
export function RowTable({ columns, ...rest }: RowTableProps): ReactElement {
  const rems = columns.reduce((sum, { rem }) => sum + rem, 1);
  return (
    <DataTable
      {...rest}
      label="Calls"
      columns={columns}
      rowKey={({ id }) => id}
      minWidth={`${rems}rem`}
      maxHeight="calc(100dvh - 15rem)"
    />
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
    return reached === undefined ? (
      <Loading />
    ) : (
      <Loading what={`Looking back to ${fullMoment(reached)}…`} />
    );
  }
  if (isFiltered) return <Empty title="No matching calls">Change or clear a filter.</Empty>;
  return (
    <Empty title="No calls yet" action={<PageLink href="/setup">Connect a client</PageLink>}>
      Calls appear here a moment after they end.
    </Empty>
  );
}

function End({ pages }: { readonly pages: CallPages }): ReactElement {
  const { rows, hasMore, isPaused, reached } = pages;
  return (
    <div className={styles.end}>
      <span>
        {`${count(rows)} ${rows === 1 ? 'call' : 'calls'}${hasMore ? ' so far; scroll to load more.' : '.'}`}
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
