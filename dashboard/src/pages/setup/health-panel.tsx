/** Whether the gateway and its stores work. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Badge } from '../../components/badge.tsx';
import { Facts, Panel, type Fact } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import styles from './setup.module.css';
import { statusName, statusText } from './status-text.ts';
import type { Status } from '../../api/status.ts';

/** Shown by their own names, in this order; the others are diagnostics, and called as they are. */
const names: readonly (readonly [member: string, name: string])[] = [
  ['version', 'Version'],
  ['url', 'Data plane'],
  ['live_calls', 'Running calls'],
  ['store', 'Store'],
  ['store_up', 'Store accepts writes'],
  ['store_reason', 'Store error'],
  ['spooled_calls', 'Rows queued for the store'],
  ['engine', 'Embedded engine'],
  ['engine_reason', 'Engine error'],
  ['config', 'Config file'],
  ['data_dir', 'Data directory'],
];

export function HealthPanel({ status }: { status: UseQueryResult<Status> }): ReactElement {
  return (
    <Panel title="This gateway" actions={<ReadyBadge status={status} />}>
      <QueryState query={status}>
        {(data) => (
          <>
            <Facts facts={factsOf(data, names)} />
            <Diagnostics status={data} />
          </>
        )}
      </QueryState>
    </Panel>
  );
}

function ReadyBadge({ status }: { status: UseQueryResult<Status> }): ReactElement {
  if (status.isError) return <Badge tone="bad" text="unreachable" />;
  if (status.data === undefined) return <Badge text="asking" />;
  return status.data.ready === true ? (
    <Badge tone="good" text="ready" />
  ) : (
    <Badge tone="warn" text="not ready" />
  );
}

/** Counters for a look when something is slow or full. */
function Diagnostics({ status }: { readonly status: Status }): ReactElement | null {
  const known = new Set([...names.map(([member]) => member), 'ready']);
  const others = Object.keys(status)
    .filter((member) => !known.has(member))
    .map((member) => [member, statusName(member)] as const);
  if (others.length === 0) return null;
  return (
    <details className={styles.diagnostics}>
      <summary>Diagnostics</summary>
      <Facts facts={factsOf(status, others)} />
    </details>
  );
}

function factsOf(status: Status, members: typeof names): readonly Fact[] {
  return members.flatMap(([member, name]): readonly Fact[] => {
    const value = status[member];
    return value === undefined || value === null || value === ''
      ? []
      : [[name, statusText(member, value)]];
  });
}
