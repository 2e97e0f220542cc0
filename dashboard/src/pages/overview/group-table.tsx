/** The same period, one row for each group; a row opens its calls. */
import type { ReactElement } from 'react';
import { useLocation } from 'wouter';
import { addressOf } from '../../api/client.ts';
import { filterOfGroup, groupingNames, type Grouping, type SeriesGroup } from '../../api/series.ts';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Empty } from '../../components/state.tsx';
import { exactMoney, roughMoney } from '../../format/money.ts';
import { count, percent } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import { groupName } from './lines.ts';
import type { Period } from '../../api/period.ts';

const nameColumn = (by: Grouping): Column<SeriesGroup> => ({
  id: 'name',
  title: 'Name',
  width: 'minmax(7rem, 3fr)',
  cell: (group) => <CutText text={groupName(group, by)} />,
});

const sumColumns: readonly Column<SeriesGroup>[] = [
  { id: 'calls', title: 'Calls', width: '5.5rem', align: 'end', cell: ({ calls }) => count(calls) },
  {
    id: 'errors',
    title: 'Errors',
    width: '7.5rem',
    align: 'end',
    cell: ({ calls, failed }) => `${count(failed)} (${percent(failed, calls)})`,
  },
  {
    id: 'input',
    title: 'Input',
    width: '7rem',
    align: 'end',
    cell: (group) => count(group.input_tokens),
  },
  {
    id: 'output',
    title: 'Output',
    width: '6.5rem',
    align: 'end',
    cell: (group) => count(group.output_tokens),
  },
  {
    id: 'cost',
    title: 'Cost',
    width: '5.5rem',
    align: 'end',
    cell: ({ cost_usd: cost }) => <span title={exactMoney(cost)}>{roughMoney(cost)}</span>,
  },
  { id: 'p50', title: 'p50', width: '4.5rem', align: 'end', cell: (group) => span(group.p50_ms) },
  { id: 'p95', title: 'p95', width: '4.5rem', align: 'end', cell: (group) => span(group.p95_ms) },
  {
    id: 'first50',
    title: 'First token p50',
    width: '7rem',
    align: 'end',
    cell: (group) => span(group.first_p50_ms),
  },
  {
    id: 'first95',
    title: 'First token p95',
    width: '7rem',
    align: 'end',
    cell: (group) => span(group.first_p95_ms),
  },
];

interface GroupTableProps {
  readonly by: Grouping;
  readonly groups: readonly SeriesGroup[];
  readonly period: Period;
}

export function GroupTable({ by, groups, period }: GroupTableProps): ReactElement {
  const [, navigate] = useLocation();
  if (groups.length === 0) return <Empty title="No calls in this period" />;
  const open = ({ name }: SeriesGroup): void => {
    const { since, until } = period;
    // The API knows an empty name as "has none"; an address cannot carry one.
    if (name !== null) navigate(addressOf('/calls', { since, until, ...filterOfGroup(by, name) }));
  };
  return (
    <DataTable
      label={`Sums by ${groupingNames[by]}`}
      columns={[nameColumn(by), ...sumColumns]}
      count={groups.length}
      rowAt={(index) => groups[index]}
      rowKey={(group) => group.name ?? ''}
      onOpen={open}
      minWidth="62rem"
      maxHeight="26rem"
    />
  );
}
