/** What an operator needs when something is wrong, on one page and in one file. */
import type { ReactElement } from 'react';
import { Badge } from '../../components/badge.tsx';
import { DownloadLink } from '../../components/button.tsx';
import { CopyButton } from '../../components/code-block.tsx';
import { Facts, PageHead, Panel, type Fact } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { count, percent } from '../../format/number.ts';
import { moment, span } from '../../format/time.ts';
import { bytes } from '../models/bytes.ts';
import { statusName, statusText } from '../setup/status-text.ts';
import setup from '../setup/setup.module.css';
import { useDiagnostics, type Asked, type Diagnostics } from './api.ts';
import { BuildPanel } from './build-panel.tsx';

export function DiagnosticsPage(): ReactElement {
  const query = useDiagnostics();
  const state = query.data?.state;
  return (
    <>
      <PageHead
        title="Diagnostics"
        about="State of this gateway, its stores and providers. The file has no secrets, prompts or answers."
        actions={
          <>
            <DownloadLink href="/api/diagnostics?file=1">Save as a file</DownloadLink>
            {state === undefined ? null : (
              <CopyButton label="Copy as JSON" text={JSON.stringify(state, null, 2)} />
            )}
          </>
        }
      />
      <QueryState query={query}>{(asked) => <Panels {...asked} />}</QueryState>
    </>
  );
}

function Panels({ state, clockAheadMs, askedAt }: Asked): ReactElement {
  return (
    <div className={setup.page}>
      <div className={setup.column}>
        <BuildPanel state={state} askedAt={askedAt} />
        <Panel title="Store" actions={<UpBadge isUp={state.store.up} />}>
          <Facts facts={storeFacts(state)} />
        </Panel>
        <Panel title="Providers">
          <Facts facts={providerFacts(state)} />
        </Panel>
      </div>
      <div className={setup.column}>
        <Panel title="Process">
          <Facts facts={processFacts(state, clockAheadMs)} />
        </Panel>
        <Panel title="Configuration">
          <ReloadFacts state={state} />
        </Panel>
        <Panel title="Counters">
          <Facts facts={counterFacts(state)} />
        </Panel>
      </div>
    </div>
  );
}

function UpBadge({ isUp }: { readonly isUp: boolean }): ReactElement {
  return isUp ? <Badge tone="good" text="writes" /> : <Badge tone="bad" text="does not write" />;
}

function processFacts({ process, calls, engines }: Diagnostics, aheadMs: number): readonly Fact[] {
  return [
    ['Event loop delay', span(process.loop_delay_ms)],
    ['Memory', `${bytes(process.rss_bytes)}, ${percent(process.memory_share, 1)} of its limit`],
    ['Heap', `${bytes(process.heap_bytes)} of ${bytes(process.heap_limit_bytes)}`],
    ['Pressure', `${process.pressure} of 3`],
    ['Running calls', count(calls.live)],
    ['Open streams', count(calls.streams)],
    ['Clock', clockText(aheadMs)],
    ...engines.map(({ model, phase, reason }): Fact => [
      model,
      reason === null ? phase : `${phase}: ${reason}`,
    ]),
  ];
}

/** Below it the answer's own way is as long. */
const clockSlackMs = 2_000;

function clockText(aheadMs: number): string {
  if (Math.abs(aheadMs) < clockSlackMs) return 'difference to this browser below 2 s';
  return `${span(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} this browser`;
}

function storeFacts({ store, counters, data }: Diagnostics): readonly Fact[] {
  const known = (size: number | null): string => (size === null ? 'not known' : bytes(size));
  return [
    ['Kind', store.server === null ? store.kind : `${store.kind}, ${store.server}`],
    ...(store.reason === null ? [] : [['Error', store.reason] as const]),
    ['Schema', String(store.schema)],
    ['Last write took', store.last_write_ms === null ? 'none yet' : span(store.last_write_ms)],
    ['Test read took', store.read_ms === null ? 'no answer' : span(store.read_ms)],
    ['Rows saved', count(store.saved)],
    ['Rows waiting', `${count(store.queued + store.spooled)}, for ${span(store.waiting_ms)}`],
    ['Failed writes', count(store.failures)],
    ['Refused rows', count(store.refused)],
    [
      'Limits counted by',
      `${counters.server ?? counters.kind}${counters.up ? '' : ', which does not answer'}`,
    ],
    ['Data directory', `${data.directory}, ${known(data.bytes)}`],
    ['Free on its disk', `${known(data.free_bytes)} of ${known(data.total_bytes)}`],
  ];
}

function ReloadFacts({ state }: { readonly state: Diagnostics }): ReactElement {
  const { last_reload: reload, certificates, warnings } = state;
  const facts: readonly Fact[] = [
    [
      'Last reload',
      reload === null
        ? 'none since the start'
        : `${moment(reload.at)}, ${reload.applied ? 'applied' : 'refused'}`,
    ],
    ...(reload === null || reload.needs_restart.length === 0
      ? []
      : [['Waits for a restart', reload.needs_restart.join(', ')] as const]),
    ...certificates.map(({ plane, subject, valid_to: end, days_left: days }): Fact => [
      `Certificate (${plane})`,
      `${subject}, until ${end.slice(0, 10)} (${days} days)`,
    ]),
    ...(certificates.length === 0 ? [['Certificates', 'none: plain HTTP'] as const] : []),
  ];
  return (
    <>
      <Facts facts={facts} />
      {[...(reload?.problems ?? []), ...warnings].map((line) => (
        <p key={line} className={setup.warning}>
          {line}
        </p>
      ))}
    </>
  );
}

function providerFacts({ providers }: Diagnostics): readonly Fact[] {
  const there = providers.filter((each) => each.there);
  return there.map(({ id, address, health }) => [id, `${health} · ${address}`]);
}

/** Those at 0 say nothing; the file has them. */
function counterFacts({ tallies }: Diagnostics): readonly Fact[] {
  const facts = Object.entries(tallies)
    .filter(([, value]) => value !== 0)
    .map(([name, value]): Fact => [statusName(name), statusText(name, value)]);
  return facts.length === 0 ? [['All', '0']] : facts;
}
