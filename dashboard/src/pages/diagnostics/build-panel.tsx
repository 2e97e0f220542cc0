/** Which build this is, and how to look for a newer one: the gateway itself makes no call outside. */
import type { ReactElement } from 'react';
import { CodeBlock } from '../../components/code-block.tsx';
import { Facts, Panel } from '../../components/panel.tsx';
import { span } from '../../format/time.ts';
import setup from '../setup/setup.module.css';
import type { Asked } from './api.ts';

/** Put in by the build: `2026-11-27`. */
declare const __BUILT_ON__: string;

const oldAfterDays = 90;
const dayMs = 86_400_000;

export function BuildPanel({ state, askedAt }: Omit<Asked, 'clockAheadMs'>): ReactElement {
  const days = Math.floor((askedAt - Date.parse(__BUILT_ON__)) / dayMs);
  return (
    <Panel title="Program">
      <Facts
        facts={[
          ['Version', state.version],
          ['Node', `${state.node}, ${state.platform}`],
          ['Process', `${state.pid}${state.workers > 1 ? `, ${state.workers} workers` : ''}`],
          ['Up for', span(state.uptime_s * 1000)],
          ['Data plane', state.url],
          ['Admin plane', state.admin_url],
        ]}
      />
      <p className={setup.note}>Built on {__BUILT_ON__}.</p>
      {days > oldAfterDays ? (
        <>
          <p className={setup.warning}>
            This build is more than {oldAfterDays} days old. The gateway does not look for newer
            ones itself: ask the registry, and read the changelog before you upgrade.
          </p>
          <CodeBlock label="Look for a newer version" text="npm view model-gateway version" />
        </>
      ) : null}
    </Panel>
  );
}
