/** Who spends: cost over time as stacked bars of the groups with the most calls, and the sums beside them. */
import type { UseQueryResult } from '@tanstack/react-query';
import { useMemo, type ReactElement } from 'react';
import { addressOf } from '../../api/client.ts';
import { stepMs, stepsOf, type Period } from '../../api/period.ts';
import {
  filterOfGroup,
  groupingNames,
  groupings,
  type Grouping,
  type SeriesAnswer,
  type SeriesGroup,
} from '../../api/series.ts';
import { BarList } from '../../components/bar-list.tsx';
import { Chart } from '../../components/chart.tsx';
import { Choice } from '../../components/choice.tsx';
import { Panel } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { exactMoney, roughMoney, tickMoney } from '../../format/money.ts';
import { groupColours, groupName, linesOfGroups, maxLines } from './lines.ts';
import styles from './page.module.css';

interface SpendProps {
  readonly all: SeriesAnswer;
  readonly by: Grouping;
  readonly period: Period;
}

interface SpendPanelProps extends SpendProps {
  readonly grouped: UseQueryResult<SeriesAnswer>;
  readonly onChoose: ((by: Grouping) => void) | undefined;
}

const cost = {
  name: 'cost',
  of: ({ cost_usd: usd }: { readonly cost_usd: number | null }) => usd,
  empty: 0,
} as const;

export function SpendPanel({ all, grouped, by, onChoose, period }: SpendPanelProps): ReactElement {
  return (
    <Panel
      title={`Cost by ${groupingNames[by]}`}
      actions={
        onChoose === undefined ? undefined : (
          <Choice
            label="Cost by"
            options={groupings.map((value) => ({ value, label: `By ${groupingNames[value]}` }))}
            value={by}
            onChange={(value) => onChoose(groupings.find((each) => each === value) ?? 'model')}
          />
        )
      }
    >
      {/* Of users alone: else it is the question of the page, which shows its error. */}
      <QueryState query={grouped} withoutError={by !== 'user'}>
        {(answer) => <Spend all={all} grouped={answer} by={by} period={period} />}
      </QueryState>
    </Panel>
  );
}

function Spend({
  all,
  grouped,
  by,
  period,
}: SpendProps & { readonly grouped: SeriesAnswer }): ReactElement {
  const dearest = useMemo(() => byCost(grouped), [grouped]);
  const { times, series } = useMemo(() => stacks(all, dearest, by), [all, dearest, by]);
  const colours = useMemo(() => groupColours(grouped), [grouped]);
  const { since, until } = period;
  return (
    <>
      <div className={styles.spend}>
        <Chart
          label={`Cost over time, by ${groupingNames[by]}`}
          kind="bars"
          stepMs={stepMs[all.step]}
          times={times}
          series={series}
          format={roughMoney}
          shortFormat={tickMoney}
        />
        <BarList
          label={`Cost by ${groupingNames[by]}`}
          items={dearest.groups.slice(0, maxLines).map((group) => ({
            id: group.name ?? '',
            name: groupName(group, by),
            value: group.cost_usd ?? 0,
            text: roughMoney(group.cost_usd),
            title: exactMoney(group.cost_usd),
            colour: colours.get(group.name) ?? '--series-1',
            ...(group.name === null
              ? {}
              : {
                  href: addressOf('/calls', { since, until, ...filterOfGroup(by, group.name) }),
                }),
          }))}
        />
      </div>
      {by === 'tag' ? <p className={styles.note}>A call counts for each of its tags.</p> : null}
    </>
  );
}

function byCost(answer: SeriesAnswer): SeriesAnswer {
  const dollars = ({ cost_usd: usd }: SeriesGroup): number => usd ?? 0;
  return { ...answer, groups: answer.groups.toSorted((a, b) => dollars(b) - dollars(a)) };
}

/** What the shown groups leave of each step is `others`; rounding leaves nothing. */
function stacks(all: SeriesAnswer, grouped: SeriesAnswer, by: Grouping) {
  const { times, series } = linesOfGroups(grouped, cost, by);
  const totals = new Map(
    all.groups[0]?.points.map((point) => [Date.parse(point.at), point.cost_usd ?? 0]),
  );
  const others = stepsOf(all).map((at, i) => {
    const shown = series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0);
    return Math.max(0, Math.round(((totals.get(at) ?? 0) - shown) * 1e9) / 1e9);
  });
  if (others.every((value) => value < 1e-6)) return { times, series };
  return {
    times,
    series: [...series, { name: 'others', values: others, colour: '--line-strong' }],
  };
}
