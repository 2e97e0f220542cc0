/** What went wrong: one row for each code, reason and status; a row opens its calls. */
import type { ReactElement } from 'react';
import { useLocation } from 'wouter';
import { addressOf } from '../../api/client.ts';
import { faultColours, faultNames, type ErrorGroup } from '../../api/errors.ts';
import type { Period } from '../../api/period.ts';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { count } from '../../format/number.ts';
import { ago, fullMoment } from '../../format/time.ts';
import styles from './errors.module.css';

const columns: readonly Column<ErrorGroup>[] = [
  {
    id: 'fault',
    title: 'Fault',
    width: '7rem',
    cell: ({ fault }) =>
      fault === null || fault === undefined ? (
        '–'
      ) : (
        <span className={styles.tileName}>
          <span
            className={styles.swatch}
            style={{ background: `var(${faultColours[fault]})` }}
            aria-hidden="true"
          />
          {faultNames[fault]}
        </span>
      ),
  },
  {
    id: 'error',
    title: 'Error',
    width: 'minmax(11rem, 2fr)',
    cell: (group) => <CutText text={causeName(group)} />,
  },
  { id: 'calls', title: 'Calls', width: '5rem', align: 'end', cell: ({ calls }) => count(calls) },
  {
    id: 'last',
    title: 'Last',
    width: '8rem',
    cell: ({ last_at: at }) => <time title={fullMoment(at)}>{ago(at)}</time>,
  },
  {
    id: 'message',
    title: 'Last message',
    width: 'minmax(14rem, 5fr)',
    cell: ({ last_message: message }) => <CutText text={message ?? '–'} />,
  },
];

function causeName({ status, error, reason }: ErrorGroup): string {
  return [status, error, reason].filter((part) => part !== null && part !== undefined).join(' ');
}

interface CauseTableProps {
  readonly groups: readonly ErrorGroup[];
  readonly period: Period;
}

export function CauseTable({ groups, period }: CauseTableProps): ReactElement {
  const [, navigate] = useLocation();
  const open = ({ fault, error, reason, status }: ErrorGroup): void => {
    const { since, until } = period;
    const cause = { fault: fault ?? undefined, error: error ?? undefined };
    const more = { reason: reason ?? undefined, status: status ?? undefined };
    navigate(addressOf('/calls', { since, until, outcome: 'failed', ...cause, ...more }));
  };
  return (
    <DataTable
      label="Errors by cause"
      columns={columns}
      count={groups.length}
      rowAt={(index) => groups[index]}
      rowKey={(group) => `${group.fault} ${causeName(group)}`}
      onOpen={open}
      minWidth="52rem"
      maxHeight="24rem"
    />
  );
}
