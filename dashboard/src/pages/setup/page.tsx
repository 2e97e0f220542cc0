/** What clients need, how the gateway is, and which settings hold. */
import type { ReactElement } from 'react';
import { PageHead } from '../../components/panel.tsx';
import { ConfigPanel } from './config-panel.tsx';
import { ConnectPanel } from './connect-panel.tsx';
import { HealthPanel } from './health-panel.tsx';
import styles from './setup.module.css';
import { useStatus } from '../../api/status.ts';

export function SetupPage(): ReactElement {
  const status = useStatus();
  return (
    <>
      <PageHead title="Setup" about="Snippets for each client, and the status of this gateway." />
      <div className={styles.page}>
        <div className={styles.column}>
          <ConnectPanel url={status.data?.url} />
        </div>
        <div className={styles.column}>
          <HealthPanel status={status} />
        </div>
        <div className={styles.whole}>
          <ConfigPanel />
        </div>
      </div>
    </>
  );
}
