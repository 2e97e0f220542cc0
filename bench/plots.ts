/** The pictures of the report. */
import { cpuPerUnit, type Figure, type Results } from './analysis.ts';
import { barChart, type Bar, type BarChart } from './bar-chart.ts';
import { direct } from './subject.ts';
import type { Workload } from './workloads.ts';

export interface Plot {
  readonly title: string;
  /** Name of the file. */
  readonly file: string;
  readonly svg: string;
}

/** A picture of each kind of figure that there is a result of. */
export function plotsOf(workloads: readonly Workload[], results: Results): Plot[] {
  return [
    ...plot('cpu-per-request.svg', {
      title: 'CPU of a request',
      unit: 'µs',
      scale: 'logarithmic',
      groups: cpuGroups(workloads, results, 'request'),
    }),
    ...plot('cpu-per-chunk.svg', {
      title: 'CPU of a chunk of a stream',
      unit: 'µs',
      scale: 'linear',
      groups: cpuGroups(workloads, results, 'chunk'),
    }),
    ...plot('latency.svg', {
      title: 'Whole answers at a constant rate',
      unit: 'ms',
      scale: 'logarithmic',
      groups: percentileGroups(workloads, results, latencyFigures),
    }),
    ...plot('stream-delays.svg', {
      title: 'Streams: first byte and chunks on their way',
      unit: 'ms',
      scale: 'logarithmic',
      groups: percentileGroups(workloads, results, delayFigures),
    }),
    ...plot('memory.svg', {
      title: 'Resident memory of each open stream',
      unit: 'KB',
      scale: 'linear',
      groups: memoryGroups(workloads, results),
    }),
  ];
}

type Groups = BarChart['groups'];

function plot(file: string, chart: BarChart): Plot[] {
  const groups = chart.groups.filter(({ bars }) => bars.length > 0);
  if (groups.length === 0) return [];
  return [{ title: chart.title, file, svg: barChart({ ...chart, groups }) }];
}

/** A bar for each subject with a result; what is not above zero has no place on most scales. */
function bars(results: Results, workload: string, figure: Figure): Bar[] {
  return results.subjectsOf(workload).flatMap((label) => {
    const summary = results.summary(workload, label, figure);
    if (summary === undefined || !(summary.min > 0)) return [];
    return [{ label, value: summary.median, min: summary.min, max: summary.max }];
  });
}

function cpuGroups(
  workloads: readonly Workload[],
  results: Results,
  unit: 'request' | 'chunk',
): Groups {
  return workloads.flatMap((workload) => {
    if (workload.kind !== 'cpu' || workload.unit !== unit) return [];
    const all = bars(results, workload.id, cpuPerUnit(workload));
    return [{ label: workload.title, bars: all.filter(({ label }) => label !== direct.name) }];
  });
}

interface NamedFigure {
  readonly kind: Workload['kind'];
  readonly name: string;
  readonly figure: Figure;
}

const latencyFigures: readonly NamedFigure[] = [
  { kind: 'latency', name: 'p50', figure: (m) => m.p50Ms },
  { kind: 'latency', name: 'p99', figure: (m) => m.p99Ms },
];

const delayFigures: readonly NamedFigure[] = [
  { kind: 'delay', name: 'first byte p50', figure: (m) => m.p50Ms },
  { kind: 'delay', name: 'first byte p99', figure: (m) => m.p99Ms },
  { kind: 'delay', name: 'chunk p50', figure: (m) => m.chunkP50Ms },
  { kind: 'delay', name: 'chunk p99', figure: (m) => m.chunkP99Ms },
];

function percentileGroups(
  workloads: readonly Workload[],
  results: Results,
  figures: readonly NamedFigure[],
): Groups {
  return workloads.flatMap(({ id, kind, title }) =>
    figures
      .filter((each) => each.kind === kind)
      .map(({ name, figure }) => ({
        label: `${title}, ${name}`,
        bars: bars(results, id, figure),
      })),
  );
}

function memoryGroups(workloads: readonly Workload[], results: Results): Groups {
  return workloads.flatMap((workload) => {
    if (workload.kind !== 'memory') return [];
    const label = `${workload.streams} streams`;
    return [{ label, bars: bars(results, workload.id, (m) => m.kbPerStream) }];
  });
}
