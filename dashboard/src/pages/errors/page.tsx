/** Failed calls: whose fault, what it was, and where. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import {
  faultColours,
  faultNames,
  faults,
  useErrors,
  type ErrorsAnswer,
  type Fault,
} from '../../api/errors.ts';
import { periodOf, type Period } from '../../api/period.ts';
import { useSearch } from '../../api/search.ts';
import { useSeries, type SeriesSums } from '../../api/series.ts';
import { loadPlot } from '../../components/chart.tsx';
import { failedOf, FaultChart } from '../../components/fault-chart.tsx';
import { prefetch } from '../../components/once.ts';
import { PeriodChoice } from '../../components/period-choice.tsx';
import { PageHead, Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { count, percent } from '../../format/number.ts';
import { CauseTable } from './cause-table.tsx';
import { Facet, mostRows } from './facet.tsx';
import styles from './errors.module.css';

prefetch(loadPlot);

const everyMs = 10_000;
const facets = [
  { by: 'provider', title: 'By provider' },
  { by: 'model', title: 'By model' },
  { by: 'answered', title: 'By answering model' },
  { by: 'key', title: 'By key' },
  { by: 'team', title: 'By team' },
  { by: 'limit', title: 'By limit' },
] as const;

export function ErrorsPage(): ReactElement {
  const [search, change] = useSearch();
  const period = periodOf(search);
  const { since, until } = period;
  const every = period.isOpen ? everyMs : false;
  const series = useSeries({ since, until }, every);
  const fault = faults.find((each) => each === search['fault']);
  // In parallel to the series.
  const errors = useErrors({ since, until, fault, limit: 100, facets: mostRows + 1 }, every);
  const [sums] = series.data?.groups ?? [];
  return (
    <>
      <PageHead
        title="Errors"
        about={aboutErrors(sums)}
        actions={<PeriodChoice period={period} change={change} />}
      />
      <QueryState query={series}>
        {(answer) =>
          sums === undefined || sums.failed === 0 ? (
            <Empty title="No failed calls in this period">
              Refused, failed and broken calls appear here a moment after they end.
            </Empty>
          ) : (
            <div className={styles.panels}>
              <FaultTiles
                sums={sums}
                chosen={fault}
                onChoose={(chosen) => change({ fault: chosen })}
              />
              <Panel title="Over time">
                <FaultChart answer={answer} />
              </Panel>
              <Groups errors={errors} period={period} fault={fault} />
            </div>
          )
        }
      </QueryState>
    </>
  );
}

function aboutErrors(sums: SeriesSums | undefined): string | undefined {
  if (sums === undefined) return undefined;
  const { failed, calls } = sums;
  return `${count(failed)} of ${count(calls)} calls failed (${percent(failed, calls)}).`;
}

interface FaultTilesProps {
  readonly sums: SeriesSums;
  readonly chosen: Fault | undefined;
  readonly onChoose: (fault: Fault | undefined) => void;
}

/** One tile a kind; a click shows its errors alone, another all. */
function FaultTiles({ sums, chosen, onChoose }: FaultTilesProps): ReactElement {
  return (
    <div className={styles.tiles} role="group" aria-label="Whose fault">
      {faults.map((fault) => (
        <button
          key={fault}
          type="button"
          className={styles.tile}
          aria-pressed={fault === chosen}
          onClick={() => onChoose(fault === chosen ? undefined : fault)}
        >
          <span className={styles.tileName}>
            <span
              className={styles.swatch}
              style={{ background: `var(${faultColours[fault]})` }}
              aria-hidden="true"
            />
            {faultNames[fault]}
          </span>
          <span className={styles.tileValue}>{count(failedOf[fault](sums))}</span>
          <span className={styles.tileAside}>
            {`${percent(failedOf[fault](sums), sums.calls)} of all calls`}
          </span>
        </button>
      ))}
    </div>
  );
}

interface GroupsProps {
  readonly errors: UseQueryResult<ErrorsAnswer>;
  readonly period: Period;
  readonly fault: Fault | undefined;
}

function Groups({ errors, period, fault }: GroupsProps): ReactElement {
  return (
    <QueryState query={errors}>
      {({ groups, facets: found, cut }) => (
        <>
          <Panel title="By cause" flush>
            <CauseTable groups={groups} period={period} />
            {cut ? <p className={styles.cut}>Only the newest 50,000 are counted.</p> : null}
          </Panel>
          <div className={styles.facets}>
            {facets.map(({ by, title }) => (
              <Panel key={by} title={title}>
                <Facet by={by} title={title} groups={found[by]} period={period} fault={fault} />
              </Panel>
            ))}
          </div>
        </>
      )}
    </QueryState>
  );
}
