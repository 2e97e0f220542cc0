/** The canvas of a chart: uPlot, in the colours of the theme, as wide as its place. Loaded where a chart is shown. */
import { useEffect, useRef, type ReactElement } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartProps } from './chart.tsx';
import { lonePoints } from './lone-points.ts';

interface PlotProps extends ChartProps {
  /** Index of the point under the mouse; undefined when there is none. */
  readonly onPoint: (index: number | undefined) => void;
}

const heightPx = 176;

export function Plot(props: PlotProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });
  const { times, series } = props;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let plot = draw(element, { ...latest.current, times, series });
    const redraw = (): void => {
      plot.destroy();
      plot = draw(element, { ...latest.current, times, series });
    };
    const resize = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: heightPx }),
    );
    resize.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', redraw);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resize.disconnect();
      theme.disconnect();
      dark.removeEventListener('change', redraw);
      plot.destroy();
    };
  }, [times, series]);
  return <div ref={place} />;
}

function draw(element: HTMLElement, props: PlotProps): uPlot {
  const { times, series, format, shortFormat = format, stacked = false, onPoint } = props;
  const colour = (name: string): string => resolved(element, name);
  const lines = stacked ? summed(series.map(({ values }) => values)) : series.map((s) => s.values);
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: heightPx,
    // Beside the axes only what half a label needs: uPlot's own leaves gaps.
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, grid: { show: false }, values: (_, splits) => timeTexts(splits) },
      { ...axis, size: 56, values: (_, splits) => splits.map((split) => shortFormat(split)) },
    ],
    series: [
      {},
      ...series.map((_, i) => {
        const stroke = colour(`--series-${(i % 8) + 1}`);
        const lone = lonePoints(lines[i] ?? []);
        return {
          stroke,
          width: 1.5,
          points: { show: false, size: 6, fill: stroke, filter: () => lone },
        };
      }),
    ],
    bands: stacked ? bandsOf(series.length, (i) => `${colour(`--series-${(i % 8) + 1}`)}`) : [],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] },
  };
  return new uPlot(
    options,
    [times.map((time) => time / 1000), ...lines.map((line) => [...line])],
    element,
  );
}

const hourText = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayText = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** The hour where the days are one, else the day at midnight. Seconds since the epoch. */
function timeTexts(splits: readonly number[]): string[] {
  return splits.map((seconds) => {
    const at = new Date(seconds * 1000);
    const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
    return (isMidnight ? dayText : hourText).format(at);
  });
}

/** A custom property as a colour: the canvas knows no `light-dark()`. */
function resolved(element: HTMLElement, property: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${property})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Each line is what lies below it and its own; the first series is the uppermost. */
function summed(lines: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  for (const line of lines.toReversed()) {
    const below = sums[0];
    sums.unshift(line.map((value, i) => (value ?? 0) + (below?.[i] ?? 0)));
  }
  return sums;
}

/** Between a line and the one below it, in a lighter shade of its colour. */
function bandsOf(length: number, colour: (index: number) => string): uPlot.Band[] {
  return Array.from({ length: Math.max(0, length - 1) }, (_, i) => ({
    series: [i + 1, i + 2] as [number, number],
    fill: faded(colour(i)),
  }));
}

function faded(colour: string): string {
  return colour.replace(/^rgb\(([^)]*)\)$/, 'rgba($1, 0.25)');
}
