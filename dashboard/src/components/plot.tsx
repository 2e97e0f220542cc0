/** The canvas of a chart: uPlot, in the colours of the theme, as wide as its place. Loaded where a chart is shown. */
import { useEffect, useRef, type ReactElement } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartProps } from './chart.tsx';
import { seriesColour } from './series-colour.ts';

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
  const { times, series, format, shortFormat = format, kind = 'steps', stepMs, onPoint } = props;
  const increments = props.isWhole === true ? { incrs: wholeIncrements } : {};
  const colour = (name: string): string => resolved(element, name);
  const strokes = series.map((each, i) => colour(each.colour ?? seriesColour(i)));
  const values = series.map((each) => [...each.values]);
  const lines = kind === 'bars' ? summed(values) : values;
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const begin = (times[0] ?? 0) / 1000;
  const end = ((times.at(-1) ?? 0) + stepMs) / 1000;
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: heightPx,
    // Beside the axes only what half a label needs: uPlot's own leaves gaps.
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: () => [begin, end] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      // The gap keeps the first time apart from the 0 of the other axis.
      {
        ...axis,
        size: 32,
        gap: 9,
        grid: { show: false },
        values: (_, splits) => timeTexts(splits),
      },
      {
        ...axis,
        ...increments,
        size: 56,
        values: (_, splits) => splits.map((split) => shortFormat(split)),
      },
    ],
    series: [
      {},
      ...strokes.map((stroke) =>
        kind === 'bars'
          ? { stroke, fill: stroke, width: 0, points: { show: false }, paths: bars }
          : { stroke, width: 1.5, points: { show: false } },
      ),
    ],
    bands: kind === 'band' ? [{ series: [1, 2], fill: faded(colour(seriesColour(0))) }] : [],
    hooks: { setCursor: [({ cursor: { idx } }) => onPoint(pointAt(idx, kind))] },
  };
  const at = times.map((time) => time / 1000);
  if (kind === 'bars') return new uPlot(options, [at, ...lines], element);
  // Both ends of each step are points, so that a lone one is seen too.
  const length = stepMs / 1000;
  const ends = at.flatMap((time) => [time, time + 0.999 * length]);
  return new uPlot(options, [ends, ...lines.map(twice)], element);
}

/** 1, 2, 5, 10 …: steps of the ticks of counts. */
const wholeIncrements = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((each) => each * 10 ** power),
).flat();

function pointAt(index: number | null | undefined, kind: ChartProps['kind']): number | undefined {
  if (index === null || index === undefined) return undefined;
  return kind === 'bars' ? index : Math.floor(index / 2);
}

function twice(values: readonly (number | null)[]): (number | null)[] {
  return values.flatMap((value) => [value, value]);
}

const bars = uPlot.paths.bars?.({ size: [0.84, 44], align: 1 }) ?? (() => null);

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

function faded(colour: string): string {
  return colour.replace(/^rgb\(([^)]*)\)$/, 'rgba($1, 0.25)');
}
