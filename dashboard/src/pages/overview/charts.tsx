/** The charts of the period: of all calls, or one line for each group. */
import { useMemo, type ReactElement } from 'react';
import type { SeriesAnswer } from '../../api/series.ts';
import { Chart } from '../../components/chart.tsx';
import { Panel } from '../../components/panel.tsx';
import { money } from '../../format/money.ts';
import { count, shortCount } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import { linesOfGroups, linesOfMeasures, type Measure } from './lines.ts';
import styles from './page.module.css';

interface ChartEntry {
  readonly title: string;
  /** Of all calls, one line each; of groups, the first. */
  readonly measures: readonly [Measure, ...Measure[]];
  readonly format: (value: number) => string;
  readonly short: (value: number) => string;
}

const entries: readonly ChartEntry[] = [
  {
    title: 'Calls',
    measures: [
      { name: 'all', of: ({ calls }) => calls, empty: 0 },
      { name: 'failed', of: ({ failed }) => failed, empty: 0 },
    ],
    format: count,
    short: shortCount,
  },
  {
    title: 'Tokens',
    measures: [
      { name: 'input', of: (sums) => sums.input_tokens, empty: 0 },
      { name: 'output', of: (sums) => sums.output_tokens, empty: 0 },
    ],
    format: count,
    short: shortCount,
  },
  {
    title: 'Cost',
    measures: [{ name: 'cost', of: ({ cost_usd: cost }) => cost, empty: 0 }],
    format: money,
    short: money,
  },
  {
    title: 'Errors',
    measures: [{ name: 'failed', of: ({ failed }) => failed, empty: 0 }],
    format: count,
    short: shortCount,
  },
  {
    title: 'Latency',
    measures: [
      { name: 'p95', of: (sums) => sums.p95_ms, empty: null },
      { name: 'p50', of: (sums) => sums.p50_ms, empty: null },
    ],
    format: span,
    short: span,
  },
  {
    title: 'Time to first token',
    measures: [
      { name: 'p95', of: (sums) => sums.first_p95_ms, empty: null },
      { name: 'p50', of: (sums) => sums.first_p50_ms, empty: null },
    ],
    format: span,
    short: span,
  },
];

/** Of tokens by group all of them count, not the first measure alone. */
const allTokens: Measure = {
  name: 'tokens',
  of: (sums) => sums.input_tokens + sums.output_tokens,
  empty: 0,
};

interface ChartsProps {
  readonly answer: SeriesAnswer;
  /** One line for each group instead of one for each measure. */
  readonly isGrouped: boolean;
}

export function Charts({ answer, isGrouped }: ChartsProps): ReactElement {
  return (
    <div className={styles.charts}>
      {entries.map((entry) => (
        <ChartPanel key={entry.title} entry={entry} answer={answer} isGrouped={isGrouped} />
      ))}
    </div>
  );
}

function ChartPanel({
  entry,
  answer,
  isGrouped,
}: ChartsProps & { readonly entry: ChartEntry }): ReactElement {
  const { title, measures, format, short } = entry;
  const lines = useMemo(() => {
    if (!isGrouped) return linesOfMeasures(answer, measures);
    return linesOfGroups(answer, title === 'Tokens' ? allTokens : measures[0]);
  }, [answer, isGrouped, measures, title]);
  const isOneOfSeveral = isGrouped && (title === 'Latency' || title === 'Time to first token');
  const shown = isOneOfSeveral ? `, ${measures[0].name}` : '';
  return (
    <Panel title={`${title}${shown}`}>
      <Chart label={`${title} over time${shown}`} {...lines} format={format} shortFormat={short} />
    </Panel>
  );
}
