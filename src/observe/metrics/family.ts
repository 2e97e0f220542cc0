/**
 * Families of samples for a scrape: plain data that can be sent to another process and summed
 * there (`labels` distinguishes series). `metrics.ts` writes them as text.
 */

/** A number by its labels. */
export interface NumberSample {
  /** As `labelText` writes it; '' = none. */
  readonly labels: string;
  readonly value: number;
}

export interface HistogramSample {
  readonly labels: string;
  readonly data: HistogramData;
}

interface FamilyHead {
  /** Ends in the unit where there is one; a counter's without `_total`. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** `seconds`, `bytes`, `ratio`, `dollars`; absent = a count. */
  readonly unit?: string;
}

export interface NumberFamily extends FamilyHead {
  readonly type: 'counter' | 'gauge';
  /** How the gauges of several processes of one gateway are combined; absent = the sum. */
  readonly across?: 'max' | 'min';
  readonly samples: readonly NumberSample[];
}

export interface HistogramFamily extends FamilyHead {
  readonly type: 'histogram';
  readonly samples: readonly HistogramSample[];
}

export type Family = NumberFamily | HistogramFamily;

/** Nothing that a terminal, a log or a page may obey reaches a label. */
const obeyed = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const oneObeyed = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Written with a backslash, in both formats. */
const special = /[\\"]/g;

/** The text of labels in the order given; values may be anything. */
export function labelText(labels: { readonly [name: string]: string }): string {
  return Object.entries(labels)
    .map(
      ([name, value]) =>
        `${name}="${value.replace(obeyed, '\ufffd').replace(special, String.raw`\$&`)}"`,
    )
    .join(',');
}

/** One sample without labels. */
export function single(value: number): readonly NumberSample[] {
  return [{ labels: '', value }];
}

// A histogram that costs a few additions an observation: all of its memory is there from the start.

/** The data for a scrape. The arrays belong to the histogram and continue to change. */
interface HistogramData {
  /** Upper bounds, rising; the last bucket (+Inf) is not among them. */
  readonly bounds: readonly number[];
  /** The count of each bucket alone; the last one is that of +Inf. */
  readonly counts: Float64Array;
  readonly sum: number;
  readonly exemplars?: Exemplars;
}

/** The latest observation of each bucket, for exemplars; '' = none yet. */
export interface Exemplars {
  /** Trace ids, or call ids when tracing is off. */
  readonly ids: readonly string[];
  readonly values: Float64Array;
  /** Seconds since the epoch. */
  readonly times: Float64Array;
}

export class Histogram implements HistogramData {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  sum = 0;
  #ids: string[] | undefined;
  #values: Float64Array | undefined;
  #times: Float64Array | undefined;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    this.#count(value);
  }

  /** @param at seconds since the epoch */
  observeAs(id: string, value: number, at: number): void {
    const bucket = this.#count(value);
    const size = this.counts.length;
    this.#ids ??= Array.from({ length: size }, () => '');
    this.#values ??= new Float64Array(size);
    this.#times ??= new Float64Array(size);
    this.#ids[bucket] = id;
    this.#values[bucket] = value;
    this.#times[bucket] = at;
  }

  get exemplars(): Exemplars {
    return {
      ids: this.#ids ?? [],
      values: this.#values ?? nothing,
      times: this.#times ?? nothing,
    };
  }

  #count(value: number): number {
    const { bounds, counts } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    this.sum += value;
    return bucket;
  }
}

const nothing = new Float64Array(0);

// Series by an unbounded name: the first names get a series each, the others share the series `other`. Clients
// that choose names cannot fill memory or databases.

/** How many series may still be made; several tables can share one. */
export interface Room {
  left: number;
}

export const other = 'other';
/** Longer names never become labels. */
const maxLabelLength = 128;

/** Whether the name is unambiguous and short enough to read. */
export function mayBeLabel(name: string): boolean {
  // Whether a label holds this name as it is: two names that are not plain can look the same.
  return name !== other && name.length <= maxLabelLength && !oneObeyed.test(name);
}

export class Capped<T> {
  readonly #series = new Map<string, T>();
  readonly #room: Room;
  readonly #make: (label: string) => T;
  #other: T | undefined;

  constructor(room: Room, make: (label: string) => T) {
    this.#room = room;
    this.#make = make;
  }

  /** @param mayAdd whether the name may get a series if it has none. */
  of(name: string, mayAdd = true): T {
    return this.#series.get(name) ?? this.#begin(name, mayAdd);
  }

  *values(): Iterable<T> {
    yield* this.#series.values();
    if (this.#other !== undefined) yield this.#other;
  }

  #begin(name: string, mayAdd: boolean): T {
    const fits = mayAdd && this.#room.left > 0 && mayBeLabel(name);
    if (!fits) {
      this.#other ??= this.#make(other);
      return this.#other;
    }
    this.#room.left -= 1;
    const series = this.#make(name);
    this.#series.set(name, series);
    return series;
  }
}

// A counter with labels, for what happens seldom.

interface CounterOptions {
  /** Without `_total`. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** Names of the labels, in the order of the values. */
  readonly labels: readonly string[];
  /** Values of series that are there with 0 from the start. */
  readonly known?: readonly (readonly string[])[];
}

/** Series that one counter may have. */
const maxSeries = 200;
/** No label value of the gateway's own code has one. */
const between = '|';

export class LabelledCounter {
  readonly #options: CounterOptions;
  readonly #series: Capped<{ readonly labels: string; value: number }>;

  constructor(options: CounterOptions) {
    this.#options = options;
    const { labels } = options;
    this.#series = new Capped({ left: maxSeries }, (joined) => {
      const values = joined.split(between);
      const named = labels.map((label, i) => [label, values[i] ?? joined]);
      return { labels: labelText(Object.fromEntries(named)), value: 0 };
    });
    for (const values of options.known ?? []) this.#series.of(values.join(between));
  }

  add(values: readonly string[]): void {
    this.#series.of(values.join(between)).value += 1;
  }

  family(): NumberFamily {
    const { name, help } = this.#options;
    return { name, type: 'counter', help, samples: [...this.#series.values()] };
  }
}

// The families of several processes of one gateway as those of one.

/** By name and labels; in the order in which they are found. Histograms of one name have the same bounds. */
export function sumFamilies(processes: readonly (readonly Family[])[]): readonly Family[] {
  const sums = new Map<string, Family>();
  for (const family of processes.flat()) {
    const known = sums.get(family.name);
    sums.set(family.name, known === undefined ? family : sumOf(known, family));
  }
  return [...sums.values()];
}

/** The counts of an ended process that must stay in the sum, which would decrease otherwise. */
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
