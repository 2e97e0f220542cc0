/** From samples to figures: medians, and ratios between subjects paired within a round. */
import type { Sample } from './measure.ts';
import type { Measurement } from './protocol.ts';
import { busyLimit, percent, stealLimit } from './machine.ts';
import { direct } from './subject.ts';
import { streamCount, type Workload } from './workloads.ts';

export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly count: number;
}

/** Undefined when there is no value: absent is not zero. */
export function summarize(values: readonly number[]): Summary | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [min] = sorted;
  const max = sorted.at(-1);
  const middle = sorted[Math.floor(sorted.length / 2)];
  const below = sorted[Math.ceil(sorted.length / 2) - 1];
  if (min === undefined || max === undefined) return undefined;
  if (middle === undefined || below === undefined) return undefined;
  return { median: (middle + below) / 2, min, max, count: sorted.length };
}

/** Reads one figure from a measurement; undefined where it has none. */
export type Figure = (measurement: Measurement) => number | undefined;

export function cpuPerUnit(workload: Extract<Workload, { readonly kind: 'cpu' }>): Figure {
  return (measurement) => {
    const units = unitsOf(workload, measurement);
    return units === 0 ? undefined : measurement.subjectUs / units;
  };
}

export const cpuPerRequest: Figure = (m) =>
  m.requests === 0 ? undefined : m.subjectUs / m.requests;

export function unitsOf(workload: Workload, measurement: Measurement): number {
  return workload.kind === 'cpu' && workload.unit === 'chunk'
    ? measurement.chunks
    : measurement.requests;
}

/** The samples of all rounds, asked by workload and subject. A measurement with failures gives none. */
export class Results {
  readonly samples: readonly Sample[];

  constructor(samples: readonly Sample[]) {
    this.samples = samples;
  }

  of(workload: string, subject: string): readonly Sample[] {
    return this.samples.filter(
      (sample) => sample.workload === workload && sample.subject === subject,
    );
  }

  summary(workload: string, subject: string, figure: Figure): Summary | undefined {
    return summarize([...this.byRound(workload, subject, figure).values()]);
  }

  /** `combine` of the figures of two subjects in the same round, over all rounds that have both. */
  paired(
    one: { readonly workload: string; readonly subject: string },
    other: { readonly workload: string; readonly subject: string },
    figure: Figure,
    combine: (one: number, other: number) => number,
  ): Summary | undefined {
    const others = this.byRound(other.workload, other.subject, figure);
    const values: number[] = [];
    for (const [round, value] of this.byRound(one.workload, one.subject, figure)) {
      const base = others.get(round);
      if (base !== undefined) values.push(combine(value, base));
    }
    return summarize(values);
  }

  /** Who was measured in it, in the order of measurement. */
  subjectsOf(workload: string): readonly string[] {
    const own = this.samples.filter((sample) => sample.workload === workload);
    return [...new Set(own.map(({ subject }) => subject))];
  }

  /** The subject that plays that part in an `added` workload. */
  inRole(workload: string, role: Sample['role']): string | undefined {
    const found = this.samples.find((each) => each.workload === workload && each.role === role);
    return found?.subject;
  }

  failed(): readonly Sample[] {
    return this.samples.filter((sample) => sample.measurement.failures > 0);
  }

  private byRound(workload: string, subject: string, figure: Figure): Map<number, number> {
    const values = new Map<number, number>();
    for (const { round, measurement } of this.of(workload, subject)) {
      const value = measurement.failures > 0 ? undefined : figure(measurement);
      if (value !== undefined) values.set(round, value);
    }
    return values;
  }
}

/** Share of one core over the window. */
export function coreShare(us: number, measurement: Measurement): number {
  return measurement.wallMs === 0 ? 0 : us / 1000 / measurement.wallMs;
}

/** Why figures of this run may not be trusted, seen while it ran. */
export function doubts(
  results: Results,
  workloads: readonly Workload[],
  chunksPerSecond: number,
): string[] {
  return [
    ...countOver(results, 'other processes used', (m) => m.foreignUs, busyLimit),
    ...countOver(results, 'the hypervisor took', (m) => m.stealUs, stealLimit),
    ...workloads.flatMap((workload) => capacityDoubts(results, workload, chunksPerSecond)),
  ];
}

function countOver(
  results: Results,
  what: string,
  used: (measurement: Measurement) => number,
  limit: number,
): string[] {
  const shares = results.samples.map(({ measurement }) =>
    coreShare(used(measurement), measurement),
  );
  const over = shares.filter((share) => share > limit);
  if (over.length === 0) return [];
  return [
    `${what} more than ${percent(limit)} of a core in ${over.length} of ${shares.length} measurements (at most ${percent(Math.max(...over))})`,
  ];
}

/** Is the rig faster than what it measures, and did everyone keep up with a paced load? */
function capacityDoubts(results: Results, workload: Workload, chunksPerSecond: number): string[] {
  if (workload.kind !== 'cpu') return [];
  const rate: Figure = (m) => (unitsOf(workload, m) * 1000) / m.wallMs;
  const names = results.subjectsOf(workload.id);
  const found: string[] = [];
  const alone = results.summary(workload.id, direct.name, rate)?.median;
  for (const name of names) {
    const reached = results.summary(workload.id, name, rate)?.median;
    if (reached === undefined) continue;
    const offered = streamCount * (workload.togetherPerSecond ?? chunksPerSecond);
    if (workload.unit === 'chunk' && reached < 0.9 * offered) {
      found.push(
        `${workload.title}: ${name} got ${Math.round(reached)} of ${offered} chunks a second`,
      );
    }
    if (workload.perSecond !== undefined && reached < 0.97 * workload.perSecond) {
      found.push(
        `${workload.title}: ${name} answered ${Math.round(reached)} of ${workload.perSecond} requests a second`,
      );
    }
    const together = results.summary(workload.id, name, (m) => m.chunks / m.reads)?.median ?? 1;
    if (workload.unit === 'chunk' && together > 1.1) {
      found.push(
        `${workload.title}: ${name} sent ${together.toFixed(1)} chunks at once, which costs less for each than one by one`,
      );
    }
    const busy = results.summary(workload.id, name, (m) => coreShare(m.subjectUs, m))?.median ?? 0;
    const tight = workload.unit === 'request' && alone !== undefined && alone < 1.5 * reached;
    if (name !== direct.name && tight && busy < 0.8) {
      found.push(
        `${workload.title}: load and mock alone reach only ${(alone / reached).toFixed(1)} times the rate of ${name}, whose core was ${percent(busy)} busy: its figure includes waking up`,
      );
    }
  }
  return found;
}
