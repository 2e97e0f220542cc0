/** A chart over time. The canvas is for the eyes; the same numbers are in a table for everybody else. */
import { useDeferredValue, useState, type ReactElement } from 'react';
import styles from './chart.module.css';
import { later } from './later.tsx';
import { once } from './once.ts';
import { seriesColour, type Series } from './series-colour.ts';
import { minute } from '../format/time.ts';

export interface ChartProps {
  /** What it shows; read aloud. */
  readonly label: string;
  /** Milliseconds since the epoch, rising. */
  readonly times: readonly number[];
  /** At most eight: people cannot distinguish more colours. */
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** For the axis, where there is less room. */
  readonly shortFormat?: (value: number) => string;
  /** Ticks are whole numbers: counts. */
  readonly isWhole?: boolean | undefined;
  /**
   * `bars`: stacked, for counts and amounts of each step. `steps`: lines that stay at their value for the step, for
   * percentiles. `band`: the same, with the space between the first two filled.
   */
  readonly kind?: 'bars' | 'steps' | 'band';
  /** Length of a step, ms: the last one ends so much behind its time. */
  readonly stepMs: number;
}

/** Fetches the code of charts. Pages with charts call it before their data are there. */
export const loadPlot = once(async () => (await import('./plot.tsx')).Plot);
const Plot = later(loadPlot);

export function Chart(props: ChartProps): ReactElement {
  const { label, times, series, format } = props;
  const [at, setAt] = useState<number>();
  // After the first frame: the charts of a page have hundreds of rows, none of them visible.
  const hasTable = useDeferredValue(true, false);
  const shown = at === undefined ? undefined : times[at];
  return (
    <figure className={styles.figure} aria-label={label}>
      <div className={styles.plot} aria-hidden="true">
        <Plot {...props} onPoint={setAt} />
      </div>
      <figcaption>
        <ul className={styles.legend} aria-hidden="true">
          {series.map(({ name, values, colour }, i) => (
            <li key={name}>
              <span
                className={styles.swatch}
                style={{ background: `var(${colour ?? seriesColour(i)})` }}
              />
              <span className={styles.name} title={name}>
                {name}
              </span>
              {at === undefined ? null : (
                <span className={styles.value}>{valueText(values[at], format)}</span>
              )}
            </li>
          ))}
          {shown === undefined ? null : <li>{minute(shown)}</li>}
        </ul>
        {hasTable ? <ChartTable {...props} /> : null}
      </figcaption>
    </figure>
  );
}

function valueText(value: number | null | undefined, format: ChartProps['format']): string {
  return value === null || value === undefined ? '–' : format(value);
}

function ChartTable({ label, times, series, format }: ChartProps): ReactElement {
  return (
    <div className="visually-hidden">
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, i) => (
            <tr key={time}>
              <th scope="row">{minute(time)}</th>
              {series.map(({ name, values }) => (
                <td key={name}>{valueText(values[i], format)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
