/** A histogram that costs a few additions an observation: all of its memory is there from the start. */

/** What a scrape reads; the arrays are the histogram's own and go on changing. */
export interface HistogramData {
  /** Upper bounds, rising; the last bucket (+Inf) is not among them. */
  readonly bounds: readonly number[];
  /** Of each bucket alone, the last one that of +Inf. */
  readonly counts: Float64Array;
  readonly sum: number;
  readonly exemplars?: Exemplars;
}

/** The latest observation of each bucket that could be told apart; '' = none yet. */
export interface Exemplars {
  /** Trace ids, or ids of calls where nobody traces. */
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
    const places = this.counts.length;
    this.#ids ??= Array.from({ length: places }, () => '');
    this.#values ??= new Float64Array(places);
    this.#times ??= new Float64Array(places);
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
