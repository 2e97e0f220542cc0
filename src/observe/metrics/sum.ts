/** The families of several processes of one gateway as those of one. */
import type {
  Family,
  HistogramFamily,
  HistogramSample,
  NumberFamily,
  NumberSample,
} from './family.ts';
import type { Exemplars, HistogramData } from './histogram.ts';

/** By name and labels; in the order in which they are found. Histograms of one name have the same bounds. */
export function sumFamilies(processes: readonly (readonly Family[])[]): readonly Family[] {
  const sums = new Map<string, Family>();
  for (const family of processes.flat()) {
    const known = sums.get(family.name);
    sums.set(family.name, known === undefined ? family : sumOf(known, family));
  }
  return [...sums.values()];
}

/** What a process has counted and does not take back when it ends: a sum without it would go down. */
export function countedFamilies(families: readonly Family[]): readonly Family[] {
  return families.filter(({ type }) => type !== 'gauge');
}

function sumOf(a: Family, b: Family): Family {
  if (a.type === 'histogram') return b.type === 'histogram' ? histograms(a, b) : a;
  return b.type === 'histogram' ? a : numbers(a, b);
}

function numbers(a: NumberFamily, b: NumberFamily): NumberFamily {
  const together = (one: number, other: number): number => {
    if (a.across === 'max') return Math.max(one, other);
    return a.across === 'min' ? Math.min(one, other) : one + other;
  };
  const samples = merged<NumberSample>(a.samples, b.samples, (one, other) => ({
    ...one,
    value: together(one.value, other.value),
  }));
  return { ...a, samples };
}

function histograms(a: HistogramFamily, b: HistogramFamily): HistogramFamily {
  const samples = merged<HistogramSample>(a.samples, b.samples, (one, other) => ({
    ...one,
    data: summed(one.data, other.data),
  }));
  return { ...a, samples };
}

function merged<T extends { readonly labels: string }>(
  a: readonly T[],
  b: readonly T[],
  together: (one: T, other: T) => T,
): readonly T[] {
  const found = new Map(a.map((sample) => [sample.labels, sample]));
  for (const sample of b) {
    const known = found.get(sample.labels);
    found.set(sample.labels, known === undefined ? sample : together(known, sample));
  }
  return [...found.values()];
}

function summed(a: HistogramData, b: HistogramData): HistogramData {
  const exemplars = latest(a.exemplars, b.exemplars);
  return {
    bounds: a.bounds,
    counts: a.counts.map((count, i) => count + (b.counts[i] ?? 0)),
    sum: a.sum + b.sum,
    ...(exemplars === undefined ? {} : { exemplars }),
  };
}

/** Of each bucket the later one. */
function latest(a: Exemplars | undefined, b: Exemplars | undefined): Exemplars | undefined {
  if (a === undefined || a.ids.length === 0) return b;
  if (b === undefined || b.ids.length === 0) return a;
  const isOlder = (i: number): boolean => (a.times[i] ?? 0) < (b.times[i] ?? 0);
  const pick = (ofA: Float64Array, ofB: Float64Array): Float64Array =>
    ofA.map((value, i) => (isOlder(i) ? (ofB[i] ?? 0) : value));
  return {
    ids: a.ids.map((id, i) => (isOlder(i) ? (b.ids[i] ?? '') : id)),
    values: pick(a.values, b.values),
    times: pick(a.times, b.times),
  };
}
