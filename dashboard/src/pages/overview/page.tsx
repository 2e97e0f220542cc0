/** What the gateway did: calls, tokens, cost, errors and how fast, over time and by group. */
import { useState, type ReactElement } from 'react';
import { addressOf } from '../../api/client.ts';
import { useSearch } from '../../api/search.ts';
import { groupings, useSeries, type Grouping, type SeriesAnswer } from '../../api/series.ts';
import { Button, DownloadLink } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { Dates } from '../../components/dates.tsx';
import { SelectField } from '../../components/field.tsx';
import { PageHead, Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { minute } from '../../format/time.ts';
import { Charts } from './charts.tsx';
import { GroupTable } from './group-table.tsx';
import { maxLines } from './lines.ts';
import styles from './page.module.css';
import { periodOf, ranges, type Period } from '../../api/period.ts';
import { Stats } from './stats.tsx';

const liveMs = 10_000;
const groupChoices = [
  { value: '', label: 'Total' },
  { value: 'model', label: 'By model' },
  { value: 'provider', label: 'By provider' },
  { value: 'key', label: 'By key' },
  { value: 'team', label: 'By team' },
];

export function OverviewPage(): ReactElement {
  const [search, change] = useSearch();
  const [isLive, setLive] = useState(true);
  const [isChoosing, setChoosing] = useState(false);
  const period = periodOf(search);
  const everyMs = isLive && period.isOpen ? liveMs : false;
  const { since, until } = period;
  const all = useSeries({ since, until }, everyMs);
  const by = groupings.find((grouping) => grouping === search['by']);
  const chooseRange = (range: string): void => {
    if (range === 'own') setChoosing(true);
    else change({ range, since: undefined, until: undefined });
  };
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
            <Choice label="Period" options={ranges} value={period.range} onChange={chooseRange} />
            <Button
              aria-pressed={isLive}
              icon="refresh"
              disabled={!period.isOpen}
              onClick={() => setLive(!isLive)}
            >
              {isLive && period.isOpen ? 'Live' : 'Paused'}
            </Button>
          </div>
        }
      />
      <Dates
        open={isChoosing}
        onClose={() => setChoosing(false)}
        onChosen={(from, to) => change({ range: undefined, since: from, until: to })}
      />
      <QueryState query={all} loading="Loading…">
        {(answer) => <Sums answer={answer} by={by} period={period} everyMs={everyMs} />}
      </QueryState>
    </>
  );
}

function aboutPeriod(answer: SeriesAnswer | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const days = answer.step === 'day' ? 'UTC day' : answer.step;
  return `Since ${minute(answer.since)}, by the ${days}`;
}

interface SumsProps {
  readonly answer: SeriesAnswer;
  readonly by: Grouping | undefined;
  readonly period: Period;
  readonly everyMs: number | false;
}

function Sums({ answer, by, period, everyMs }: SumsProps): ReactElement {
  const [tableBy, setTableBy] = useState<Grouping>('model');
  const shownBy = by ?? tableBy;
  const { since, until } = period;
  const grouped = useSeries({ since, until, by: shownBy, groups: 50 }, everyMs);
  const [sums] = answer.groups;
  if (sums === undefined) {
    return (
      <Empty title="No calls in this period">
        Calls appear here a moment after they end. Choose a longer period, or make a call in the
        playground.
      </Empty>
    );
  }
  const forCharts = by === undefined ? answer : grouped.data;
  return (
    <>
      <Stats sums={sums} />
      {forCharts === undefined ? null : <Charts answer={forCharts} isGrouped={by !== undefined} />}
      {by !== undefined && (grouped.data?.groups.length ?? 0) > maxLines ? (
        <p className={styles.note}>
          {`The charts show the ${maxLines} ${by}s with the most calls; the table shows all.`}
        </p>
      ) : null}
      <Panel
        title={`Top ${shownBy}s`}
        flush
        actions={
          <>
            {by === undefined ? (
              <Choice
                label="Rows"
                options={groupings.map((value) => ({ value, label: `By ${value}` }))}
                value={tableBy}
                onChange={(value) =>
                  setTableBy(groupings.find((each) => each === value) ?? 'model')
                }
              />
            ) : null}
            <DownloadLink
              href={addressOf('/api/usage', { format: 'csv', by: shownBy, since, until })}
            >
              CSV
            </DownloadLink>
          </>
        }
      >
        <QueryState query={grouped}>
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
