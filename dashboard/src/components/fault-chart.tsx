/** Failed calls over time, stacked by whose fault they were. */
import { useMemo, type ReactElement } from 'react';
import { faultColours, faultNames, faults, type Fault } from '../api/errors.ts';
import { stepMs, stepsOf } from '../api/period.ts';
import type { SeriesAnswer, SeriesSums } from '../api/series.ts';
import { count, shortCount } from '../format/number.ts';
import { Chart } from './chart.tsx';

export const failedOf: { readonly [F in Fault]: (sums: SeriesSums) => number } = {
  provider: (sums) => sums.failed_provider,
  gateway: (sums) => sums.failed_gateway,
  client: (sums) => sums.failed_client,
  limit: (sums) => sums.failed_limit,
};

export function FaultChart({ answer }: { answer: SeriesAnswer }): ReactElement {
  const { times, series } = useMemo(() => stacksOf(answer), [answer]);
  return (
    <Chart
      label="Errors over time, by whose fault"
      kind="bars"
      stepMs={stepMs[answer.step]}
      times={times}
      series={series}
      format={count}
      shortFormat={shortCount}
      isWhole
    />
  );
}

function stacksOf(answer: SeriesAnswer) {
  const times = stepsOf(answer);
  const points = new Map(answer.groups[0]?.points.map((point) => [Date.parse(point.at), point]));
  const series = faults.map((fault) => ({
    name: faultNames[fault],
    colour: faultColours[fault],
    values: times.map((at) => {
      const point = points.get(at);
      return point === undefined ? 0 : failedOf[fault](point);
    }),
  }));
  return { times, series };
}
