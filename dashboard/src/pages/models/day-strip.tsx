/** The last day of a model, a cell for each hour: how many of its calls failed at the provider or here. */
import type { ReactElement } from 'react';
import { stepMs } from '../../api/period.ts';
import type { SeriesPoint } from '../../api/series.ts';
import { classNames } from '../../components/class-names.ts';
import { count } from '../../format/number.ts';
import { moment } from '../../format/time.ts';
import styles from './day-strip.module.css';

const hours = 24;

interface DayStripProps {
  /** By the hour; hours without a call may be missing. */
  readonly points: readonly SeriesPoint[];
  /** When they were requested, ms since the epoch. */
  readonly now: number;
}

export function DayStrip({ points, now }: DayStripProps): ReactElement {
  const last = Math.floor(now / stepMs.hour) * stepMs.hour;
  const known = new Map(points.map((point) => [Date.parse(point.at), point]));
  const cells = Array.from({ length: hours }, (_, i) => {
    const at = last - (hours - 1 - i) * stepMs.hour;
    return { at, point: known.get(at) };
  });
  const bad = cells.filter(({ point }) => point !== undefined && faulty(point) > 0).length;
  const called = cells.filter(({ point }) => point !== undefined && point.calls > 0).length;
  return (
    <span
      className={styles.strip}
      role="img"
      aria-label={`Last 24 hours: calls in ${called}, failures of providers or the gateway in ${bad}`}
    >
      {cells.map(({ at, point }) => (
        <span
          key={at}
          className={classNames(styles.cell, toneOf(point))}
          title={cellText(at, point)}
        />
      ))}
    </span>
  );
}

/** Failures that are neither the client's nor of a limit. */
export function faulty(sums: Pick<SeriesPoint, 'failed_provider' | 'failed_gateway'>): number {
  return sums.failed_provider + sums.failed_gateway;
}

/** From this part of the calls on an hour is bad. */
const badShare = 0.1;

function toneOf(point: SeriesPoint | undefined): string | undefined {
  if (point === undefined || point.calls === 0) return undefined;
  const failed = faulty(point);
  if (failed === 0) return styles.good;
  return failed / point.calls < badShare ? styles.warn : styles.bad;
}

function cellText(at: number, point: SeriesPoint | undefined): string {
  const time = moment(new Date(at).toISOString());
  if (point === undefined || point.calls === 0) return `${time}: no calls`;
  const failed = faulty(point);
  return `${time}: ${count(point.calls)} calls, ${count(failed)} failed at the provider or here`;
}
