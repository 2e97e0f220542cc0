/** What the gateway did: calls, tokens, cost, errors and how fast, over time and by group. */
import type { UseQueryResult } from '@tanstack/react-query';
import { useState, type ReactElement } from 'react';
import { addressOf } from '../../api/client.ts';
import { useSearch } from '../../api/search.ts';
import {
  groupingNames,
  groupings,
  useSeries,
  useTotal,
  type Grouping,
  type SeriesAnswer,
  type SeriesSums,
} from '../../api/series.ts';
import { Button, DownloadLink, PageLink } from '../../components/button.tsx';
import { loadPlot } from '../../components/chart.tsx';
import { FaultChart } from '../../components/fault-chart.tsx';
import { SelectField } from '../../components/field.tsx';
import { prefetch } from '../../components/once.ts';
import { PeriodChoice } from '../../components/period-choice.tsx';
import { PageHead, Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { minute } from '../../format/time.ts';
import { Link } from 'wouter';
import { Charts } from './charts.tsx';
import { GroupTable } from './group-table.tsx';
import { HealthStrip } from './health-strip.tsx';
import { maxLines } from './lines.ts';
import styles from './page.module.css';
import { periodBefore, periodOf, type Period } from '../../api/period.ts';
import { SpendPanel } from './spend-panel.tsx';
import { Stats } from './stats.tsx';

prefetch(loadPlot);

const liveMs = 10_000;
/** Sums by user are added up call by call. */
const usersMs = 60_000;
const groupChoices = [
  { value: '', label: 'Charts: all calls' },
  ...groupings.map((value) => ({ value, label: `Charts: by ${groupingNames[value]}` })),
];

export function OverviewPage(): ReactElement {
  const [search, change] = useSearch();
  const [isLive, setLive] = useState(true);
  const [now] = useState(() => Date.now());
  const period = periodOf(search);
  const everyMs = isLive && period.isOpen ? liveMs : false;
  const { since, until } = period;
  const by = groupings.find((grouping) => grouping === search['by']);
  const [tableBy, setTableBy] = useState<Grouping>('model');
  const shownBy = by ?? tableBy;
  const { all, grouped } = useSums(period, shownBy, everyMs);
  const earlier = periodBefore(period, now);
  // After the period itself: its figures come first.
  const isKnown = all.data !== undefined && earlier !== undefined;
  const before = useSeries(earlier ?? { since, until }, false, isKnown);
  return (
    <>
      <PageHead
        title="Overview"
        about={aboutPeriod(all.data)}
        actions={
          <div className={styles.filters}>
            <SelectField
              label="Lines"
              quietLabel
              value={by ?? ''}
              onChange={(value) => change({ by: value })}
              choices={groupChoices}
            />
            <PeriodChoice period={period} change={change} />
            <Button
              aria-pressed={isLive && period.isOpen}
              disabled={!period.isOpen}
              onClick={() => setLive(!isLive)}
            >
              <span
                className={isLive && period.isOpen ? styles.liveDot : styles.pausedDot}
                aria-hidden="true"
              />
              {isLive && period.isOpen ? 'Live' : 'Paused'}
            </Button>
          </div>
        }
      />
      <HealthStrip />
      <QueryState query={all}>
        {(answer) => (
          <Sums
            answer={answer}
            before={before.data?.groups[0]}
            grouped={grouped}
            by={by}
            shownBy={shownBy}
            onChoose={setTableBy}
            period={period}
          />
        )}
      </QueryState>
    </>
  );
}

/**
 * The total of the period and its groups, in one request. Sums by user are added up call by call: they have a request of
 * their own, which is repeated less often.
 */
function useSums({ since, until }: Period, by: Grouping, everyMs: number | false) {
  const isByUser = by === 'user';
  const againMs = everyMs !== false && isByUser ? usersMs : everyMs;
  const groups = { since, until, by, groups: 50, points: maxLines } as const;
  const both = { ...groups, with: 'total' } as const;
  const grouped = useSeries(isByUser ? groups : both, againMs);
  const all = useTotal(isByUser ? { since, until } : both, isByUser ? everyMs : false);
  return { all, grouped };
}

const stepTexts = {
  minute: 'by the minute',
  hour: 'by the hour',
  '6h': 'in steps of six hours',
  day: 'by the UTC day',
} as const;

function aboutPeriod(answer: SeriesAnswer | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const days = stepTexts[answer.step];
  return `Since ${minute(answer.since)}, ${days}`;
}

interface SumsProps {
  readonly answer: SeriesAnswer;
  /** Of the period before. */
  readonly before: SeriesSums | undefined;
  readonly grouped: UseQueryResult<SeriesAnswer>;
  readonly by: Grouping | undefined;
  /** Of `grouped`. */
  readonly shownBy: Grouping;
  onChoose(by: Grouping): void;
  readonly period: Period;
}

function Sums(props: SumsProps): ReactElement {
  const { answer, before, grouped, by, shownBy, onChoose, period } = props;
  const { since, until } = period;
  const [sums] = answer.groups;
  if (sums === undefined) {
    return (
      <Empty
        title="No calls in this period"
        action={<PageLink href="/playground">Make a call in the playground</PageLink>}
      >
        Calls appear here a moment after they end. A longer period may have some.
      </Empty>
    );
  }
  const forCharts = by === undefined ? answer : grouped.data;
  return (
    <>
      <Stats answer={answer} sums={sums} before={before} />
      <SpendPanel
        all={answer}
        grouped={grouped}
        by={shownBy}
        onChoose={by === undefined ? onChoose : undefined}
        period={period}
      />
      {forCharts === undefined ? null : (
        <Charts answer={forCharts} by={by}>
          <Panel title="Errors" actions={<Link href="/errors">All errors</Link>}>
            {sums.failed === 0 ? (
              <p className={styles.nothing}>No call failed in this period.</p>
            ) : (
              <FaultChart answer={answer} />
            )}
          </Panel>
        </Charts>
      )}
      {by !== undefined && (grouped.data?.groups.length ?? 0) > maxLines ? (
        <p className={styles.note}>
          {`The charts show the ${maxLines} ${groupingNames[by]}s with the most calls; the table shows all.`}
        </p>
      ) : null}
      <Panel
        title={`Top ${groupingNames[shownBy]}s`}
        flush
        actions={
          <DownloadLink
            href={addressOf('/api/usage', { format: 'csv', by: shownBy, since, until })}
          >
            CSV
          </DownloadLink>
        }
      >
        <QueryState query={grouped} withoutError={shownBy !== 'user'}>
          {({ groups }) => <GroupTable by={shownBy} groups={groups} period={period} />}
        </QueryState>
      </Panel>
      <p className={styles.note}>
        {answer.percentiles === 'exact'
          ? `Sums and percentiles are exact; percentiles cover all ${count(answer.sampled)} successful calls.`
          : `Sums are exact. Percentiles are from an evenly spread sample of ${count(answer.sampled)} successful calls.`}
      </p>
    </>
  );
}
