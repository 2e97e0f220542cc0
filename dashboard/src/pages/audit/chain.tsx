/** Whether the log is as it was written: its hash chain, verified by the gateway. */
import type { ReactElement } from 'react';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/code-block.tsx';
import { Panel } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { useAuditCheck, type AuditCheck } from './api.ts';
import styles from './audit.module.css';

export function ChainPanel(): ReactElement {
  const check = useAuditCheck();
  return (
    <Panel
      title="Hash chain"
      actions={
        <>
          <ChainBadge check={check.data} isError={check.isError} />
          <Button small icon="refresh" busy={check.isFetching} onClick={() => void check.refetch()}>
            Verify again
          </Button>
        </>
      }
    >
      <QueryState query={check} loading="Verifying the log…">
        {(data) => (
          <>
            <p className={data.intact ? styles.note : styles.broken}>{textOf(data)}</p>
            {data.head === null ? null : (
              <p className={styles.head}>
                <span>Newest hash</span>
                <code>{data.head}</code>
                <CopyButton text={data.head} label="Copy the hash" />
              </p>
            )}
          </>
        )}
      </QueryState>
    </Panel>
  );
}

interface ChainBadgeProps {
  readonly check: AuditCheck | undefined;
  readonly isError: boolean;
}

function ChainBadge({ check, isError }: ChainBadgeProps): ReactElement {
  if (isError) return <Badge tone="warn" text="not verified" />;
  if (check === undefined) return <Badge text="verifying" />;
  return check.intact ? <Badge tone="good" text="intact" /> : <Badge tone="bad" text="broken" />;
}

function textOf({ intact, entries, broken_at: brokenAt, missing }: AuditCheck): string {
  if (intact) {
    const each = entries === 1 ? '1 entry' : `${count(entries)} entries, each`;
    return `${each} with a hash over itself and the hash before it. Keep the newest hash elsewhere to prove later that none was cut off.`;
  }
  if (brokenAt !== null) {
    return `Entry ${brokenAt} does not match its hash: the log was changed. Compare it with a backup, or with the lines "audit" in the gateway's log.`;
  }
  return `Entry ${missing?.seq ?? '?'} is missing: the end of the log was cut off. This is expected after a backup was restored. Otherwise look for hash ${missing?.hash ?? '?'} in a backup, or in the lines "audit" of the gateway's log.`;
}
