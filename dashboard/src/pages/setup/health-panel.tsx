/** Whether the gateway and its stores work. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { failedStatus } from '../../api/api-error.ts';
import { Badge } from '../../components/badge.tsx';
import { Facts, Panel, type Fact } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import styles from './setup.module.css';
import { statusText } from './status-text.ts';
import type { Status } from '../../api/status.ts';

/** Shown by their own names, in this order; the others are on the page of diagnostics. */
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
            <p className={styles.note}>
              <Link href="/diagnostics">Diagnostics</Link> has stores, providers, memory and more.
            </p>
          </>
        )}
      </QueryState>
    </Panel>
  );
}

function ReadyBadge({ status }: { status: UseQueryResult<Status> }): ReactElement {
  if (status.isError) return <Badge tone="bad" text={failedStatus(status.error)} />;
  if (status.data === undefined) return <Badge text="asking" />;
  return status.data.ready === true ? (
    <Badge tone="good" text="ready" />
  ) : (
    <Badge tone="warn" text="not ready" />
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
