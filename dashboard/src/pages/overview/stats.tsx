/** The sums of the period, one number each. */
import type { ReactElement } from 'react';
import type { SeriesSums } from '../../api/series.ts';
import { exactMoney, money } from '../../format/money.ts';
import { count, percent } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import styles from './page.module.css';

interface StatProps {
  readonly name: string;
  readonly value: string;
  readonly aside: string;
  readonly title?: string;
}

function Stat({ name, value, aside, title }: StatProps): ReactElement {
  return (
    <div className={styles.stat}>
      <dt>{name}</dt>
      <dd title={title}>{value}</dd>
      <dd className={styles.aside}>{aside}</dd>
    </div>
  );
}

export function Stats({ sums }: { sums: SeriesSums }): ReactElement {
  const { calls, failed, input_tokens: input, cache_read_tokens: cached } = sums;
  return (
    <dl className={styles.stats}>
      <Stat name="Calls" value={count(calls)} aside="in this period" />
      <Stat name="Errors" value={count(failed)} aside={`${percent(failed, calls)} of the calls`} />
      <Stat
        name="Cost"
        value={money(sums.cost_usd)}
        title={exactMoney(sums.cost_usd)}
        aside="of calls with a price"
      />
      <Stat name="Input tokens" value={count(input)} aside="including cached tokens" />
      <Stat name="Cached input" value={percent(cached, input)} aside={`${count(cached)} tokens`} />
      <Stat name="Output tokens" value={count(sums.output_tokens)} aside="including reasoning" />
      <Stat name="Latency p50" value={span(sums.p50_ms)} aside={`p95 ${span(sums.p95_ms)}`} />
      <Stat
        name="First token p50"
        value={span(sums.first_p50_ms)}
        aside={`p95 ${span(sums.first_p95_ms)}`}
      />
    </dl>
  );
}
