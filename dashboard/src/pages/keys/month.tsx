/** What a key was used for in the last 30 days. */
import type { ReactElement } from 'react';
import { stepMs, stepsOf } from '../../api/period.ts';
import { useSeries, type SeriesPoint } from '../../api/series.ts';
import { Chart } from '../../components/chart.tsx';
import layout from '../../components/layout.module.css';
import { Failures } from '../../components/state.tsx';
import { money, roughMoney, tickMoney } from '../../format/money.ts';
import { count } from '../../format/number.ts';

/** Nothing while it is unknown, and for a key without a call. */
export function Month({ id }: { readonly id: string }): ReactElement | null {
  const query = useSeries({ since: '30d', step: 'day', key: id }, false);
  const { data } = query;
  const [sums] = data?.groups ?? [];
  if (query.isError) return <Failures of={[query]} />;
  if (data === undefined || sums === undefined || sums.calls === 0) return null;
  const times = stepsOf(data);
  const costs = new Map(sums.points.map((point) => [Date.parse(point.at), costOf(point)]));
  return (
    <section className={layout.sections} aria-label="Last 30 days">
      <h3>Last 30 days</h3>
      <div className={layout.row}>
        <strong>{roughMoney(sums.cost_usd)}</strong>
        <span className={layout.muted}>
          {`${count(sums.calls)} calls, ${count(sums.failed)} of them failed`}
          {sums.unpriced_calls === 0
            ? null
            : `; without a known price, not in the cost: ${count(sums.unpriced_calls)}`}
        </span>
      </div>
      <Chart
        label="Cost by day"
        kind="bars"
        stepMs={stepMs[data.step]}
        times={times}
        series={[
          {
            name: 'Cost',
            values: times.map((at) => (costs.has(at) ? (costs.get(at) ?? null) : 0)),
          },
        ]}
        format={money}
        shortFormat={tickMoney}
      />
    </section>
  );
}

/** Null: calls were made, and none of them has a known price. */
function costOf({ cost_usd: cost, unpriced_calls: unpriced }: SeriesPoint): number | null {
  return cost === null && unpriced === 0 ? 0 : cost;
}
