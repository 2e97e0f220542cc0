/** The charts of the period: of all calls, or one line for each group. */
import { useMemo, useState, type ReactElement, type ReactNode } from 'react';
import { stepMs } from '../../api/period.ts';
import type { Grouping, SeriesAnswer } from '../../api/series.ts';
import { Chart } from '../../components/chart.tsx';
import { Choice } from '../../components/choice.tsx';
import { Panel } from '../../components/panel.tsx';
import { count, shortCount, speed } from '../../format/number.ts';
import { shortSpan, span } from '../../format/time.ts';
import { linesOfGroups, linesOfMeasures, type Measure } from './lines.ts';
import styles from './page.module.css';

type Measures = readonly [Measure, ...Measure[]];

interface ChartEntry {
  readonly title: string;
  /** Of all calls, one line each. */
  readonly measures: Measures;
  /** Of groups, one line for each group: one of these is chosen. Default: the same. */
  readonly ofGroups?: Measures;
  readonly kind: 'bars' | 'band';
  readonly format: (value: number) => string;
  readonly short: (value: number) => string;
  /** Parts of one mean nothing. */
  readonly isWhole?: true;
}

/** The median has one colour in all charts, and the tail another. */
const median = '--series-1';
const tail = '--series-2';

const input: Measure = { name: 'input', of: (sums) => sums.input_tokens, empty: 0 };
const output: Measure = { name: 'output', of: (sums) => sums.output_tokens, empty: 0 };
const tokens: Measure = {
  name: 'all',
  of: (sums) => sums.input_tokens + sums.output_tokens,
  empty: 0,
};
const calls: Measure = { name: 'all', of: (sums) => sums.calls, empty: 0 };
const failed: Measure = {
  name: 'failed',
  of: (sums) => sums.failed,
  empty: 0,
  colour: '--fault-provider',
};
const good: Measure = {
  name: 'successful',
  of: (sums) => sums.calls - sums.failed,
  empty: 0,
  colour: '--series-1',
};

const entries: readonly ChartEntry[] = [
  {
    title: 'Calls',
    measures: [failed, good],
    ofGroups: [calls, failed],
    kind: 'bars',
    format: count,
    short: shortCount,
    isWhole: true,
  },
  {
    title: 'Tokens',
    measures: [input, output],
    ofGroups: [tokens, input, output],
    kind: 'bars',
    format: count,
    short: shortCount,
    isWhole: true,
  },
  {
    title: 'Latency',
    measures: [
      { name: 'p95', of: (sums) => sums.p95_ms, empty: null, colour: tail },
      { name: 'p50', of: (sums) => sums.p50_ms, empty: null, colour: median },
    ],
    kind: 'band',
    format: span,
    short: shortSpan,
  },
  {
    title: 'Time to first token',
    measures: [
      { name: 'p95', of: (sums) => sums.first_p95_ms, empty: null, colour: tail },
      { name: 'p50', of: (sums) => sums.first_p50_ms, empty: null, colour: median },
    ],
    kind: 'band',
    format: span,
    short: shortSpan,
  },
  {
    title: 'Output speed',
    measures: [
      { name: 'p50', of: (sums) => sums.speed_p50, empty: null, colour: median },
      { name: 'p5', of: (sums) => sums.speed_p5, empty: null, colour: tail },
    ],
    kind: 'band',
    format: tokensASecond,
    short: speed,
  },
];

function tokensASecond(value: number): string {
  return `${speed(value)} tokens/s`;
}

interface ChartsProps {
  readonly answer: SeriesAnswer;
  /** One line for each group instead of one for each measure. */
  readonly by: Grouping | undefined;
}

export function Charts({
  answer,
  by,
  children,
}: ChartsProps & { readonly children: ReactNode }): ReactElement {
  return (
    <div className={styles.charts}>
      {entries.map((entry) => (
        <ChartPanel key={entry.title} entry={entry} answer={answer} by={by} />
      ))}
      {children}
    </div>
  );
}

function ChartPanel({
  entry,
  answer,
  by,
}: ChartsProps & { readonly entry: ChartEntry }): ReactElement {
  const { title, measures, ofGroups = measures, kind, format, short, isWhole } = entry;
  const [name, setName] = useState(ofGroups[0].name);
  const chosen = ofGroups.find((measure) => measure.name === name) ?? ofGroups[0];
  const lines = useMemo(
    () =>
      by === undefined ? linesOfMeasures(answer, measures) : linesOfGroups(answer, chosen, by),
    [answer, chosen, by, measures],
  );
  const isChoice = by !== undefined && ofGroups.length > 1;
  const label = isChoice ? `${title} over time, ${chosen.name}` : `${title} over time`;
  return (
    <Panel
      title={title}
      actions={
        isChoice ? (
          <Choice
            label={`${title}: what is shown`}
            options={ofGroups.map((measure) => ({ value: measure.name, label: measure.name }))}
            value={chosen.name}
            onChange={setName}
          />
        ) : undefined
      }
    >
      <Chart
        label={label}
        {...lines}
        kind={kind === 'band' && by !== undefined ? 'steps' : kind}
        stepMs={stepMs[answer.step]}
        format={format}
        shortFormat={short}
        isWhole={isWhole}
      />
    </Panel>
  );
}
