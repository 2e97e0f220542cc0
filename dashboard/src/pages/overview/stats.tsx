/** The period in figures: four large ones with the change against the period before, four small ones below. */
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { stepsOf } from '../../api/period.ts';
import type { SeriesAnswer, SeriesSums } from '../../api/series.ts';
import { classNames } from '../../components/class-names.ts';
import { Sparkline } from '../../components/sparkline.tsx';
import { exactMoney, roughMoney } from '../../format/money.ts';
import { count, percent, speed } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import styles from './page.module.css';

interface LargeStat {
  readonly name: string;
  readonly value: string;
  readonly title?: string;
  readonly aside: string;
  readonly of: (sums: SeriesSums) => number | null;
  /** More of it is worse: the change is red upwards. */
  readonly isBadUp?: true;
  readonly href?: string;
}

interface StatsProps {
  readonly answer: SeriesAnswer;
  readonly sums: SeriesSums;
  /** Of the period before; undefined: not known. */
  readonly before: SeriesSums | undefined;
}

export function Stats({ answer, sums, before }: StatsProps): ReactElement {
  const times = stepsOf(answer);
  const points = new Map(answer.groups[0]?.points.map((point) => [Date.parse(point.at), point]));
  return (
    <>
      <dl className={styles.stats}>
        {largeStats(sums, answer).map((stat) => (
          <Large
            key={stat.name}
            stat={stat}
            now={stat.of(sums)}
            before={before === undefined ? null : stat.of(before)}
            values={times.map((at) => {
              const point = points.get(at);
              return point === undefined ? null : stat.of(point);
            })}
          />
        ))}
      </dl>
      <dl className={styles.small}>
        {smallStats(sums).map(({ name, value, title, aside }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={title}>{value}</dd>
            <dd className={styles.aside}>{aside}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function largeStats(sums: SeriesSums, answer: SeriesAnswer): readonly LargeStat[] {
  const { calls, failed, cost_usd: cost } = sums;
  return [
    {
      name: 'Cost',
      value: roughMoney(cost),
      title: exactMoney(cost),
      aside: cost === null ? 'no call has a known price' : `${roughMoney(cost / calls)} per call`,
      of: (each) => each.cost_usd,
      isBadUp: true,
    },
    {
      name: 'Calls',
      value: count(calls),
      aside: callRate(calls, answer),
      of: (each) => each.calls,
    },
    {
      name: 'Errors',
      value: count(failed),
      aside: `${percent(failed, calls)} of calls; ${count(sums.failed_limit)} by limits`,
      of: (each) => each.failed,
      isBadUp: true,
      href: '/errors',
    },
    {
      name: 'Latency p50',
      value: span(sums.p50_ms),
      aside: `p95 ${span(sums.p95_ms)}`,
      of: (each) => each.p50_ms,
      isBadUp: true,
    },
  ];
}

/** `12 per minute on average`: by the hour or the day where that is less than one. */
function callRate(calls: number, { since, until }: SeriesAnswer): string {
  const minutes = (Date.parse(until) - Date.parse(since)) / 60_000;
  const units = [
    ['minute', 1],
    ['hour', 60],
    ['day', 1440],
  ] as const;
  const [unit, size] = units.find((each) => (calls * each[1]) / minutes >= 1) ?? units[2];
  return `${speed((calls * size) / minutes)} per ${unit} on average`;
}

type SmallStat = Pick<LargeStat, 'name' | 'value' | 'title' | 'aside'>;

function smallStats(sums: SeriesSums): readonly SmallStat[] {
  const { input_tokens: input, output_tokens: output, cache_read_tokens: cached } = sums;
  const { first_p50_ms: first, first_p95_ms: late, speed_p50: usual, speed_p5: slow } = sums;
  return [
    { name: 'Input tokens', value: count(input), aside: 'including cached tokens' },
    { name: 'Cached input', value: percent(cached, input), aside: `${count(cached)} tokens` },
    savedByCaches(sums),
    { name: 'Output tokens', value: count(output), aside: 'including reasoning' },
    { name: 'Output speed p50', value: `${speed(usual)} tokens/s`, aside: `p5 ${speed(slow)}` },
    { name: 'First token p50', value: span(first), aside: `p95 ${span(late)}` },
  ];
}

function savedByCaches(sums: SeriesSums): SmallStat {
  const { cost_usd: cost, cache_saved_usd: saved, unpriced_calls: unpriced } = sums;
  const share = `${percent(saved ?? 0, (cost ?? 0) + (saved ?? 0))} of the uncached cost`;
  const unknown = `excludes ${count(unpriced)} calls without a known price`;
  return {
    name: 'Saved by caches',
    value: roughMoney(saved),
    title: exactMoney(saved),
    aside: unpriced === 0 ? share : `${share}; ${unknown}`,
  };
}

interface LargeProps {
  readonly stat: LargeStat;
  readonly now: number | null;
  readonly before: number | null;
  readonly values: readonly (number | null)[];
}

function Large({ stat, now, before, values }: LargeProps): ReactElement {
  const { name, value, title, aside, isBadUp, href } = stat;
  return (
    <div className={styles.stat}>
      <dt>{href === undefined ? name : <Link href={href}>{name}</Link>}</dt>
      <dd className={styles.value} title={title}>
        {value}
      </dd>
      <dd>
        <Change now={now} before={before} isBadUp={isBadUp === true} />
      </dd>
      <dd className={styles.aside}>{aside}</dd>
      <dd className={styles.spark}>
        <Sparkline values={values} />
      </dd>
    </div>
  );
}

/** `▲ 12%`: against the period before; the word says the same to a screen reader. More calls are neither good nor bad. */
function Change({
  now,
  before,
  isBadUp,
}: {
  readonly now: number | null;
  readonly before: number | null;
  readonly isBadUp: boolean;
}): ReactElement {
  if (now === null || before === null) {
    return <span className={styles.change}>no earlier data</span>;
  }
  if (before === 0 && now > 0) return <span className={styles.change}>none before</span>;
  const share = before === 0 ? 0 : (now - before) / before;
  const text = percentText(Math.abs(share));
  if (text === '0%') return <span className={styles.change}>as before</span>;
  const isUp = share > 0;
  return (
    <span className={classNames(styles.change, isBadUp && (isUp ? styles.worse : styles.better))}>
      <span aria-hidden="true">{isUp ? '▲ ' : '▼ '}</span>
      {`${text} ${isUp ? 'more' : 'less'} than before`}
    </span>
  );
}

const wholePercent = new Intl.NumberFormat('en-US', {
  style: 'percent',
  maximumFractionDigits: 0,
});

function percentText(share: number): string {
  return share > 10 ? 'over 1,000%' : wholePercent.format(share);
}
