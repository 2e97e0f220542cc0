/** Sums over time by group, of which only the groups with the most calls are told. */
import type { SeriesQuery, SeriesRow, UsageGrouping } from './calls.ts';
import { addSums, dayMs, hourMs, noSums, type Sums } from './roll-up.ts';
import { compareText } from './text-order.ts';

const minuteMs = 60_000;

export const stepMs: { readonly [S in SeriesQuery['step']]: number } = {
  minute: minuteMs,
  hour: hourMs,
  day: dayMs,
};

/** How the sums for a step are looked for (`planUsage`): minutes are in the calls only. */
export function groupingOf({ step }: SeriesQuery): UsageGrouping {
  return step === 'day' ? 'day' : 'hour';
}

export class SeriesSums {
  readonly #query: SeriesQuery;
  readonly #groups = new Map<string, { calls: number; readonly steps: Map<number, Sums> }>();

  constructor(query: SeriesQuery) {
    this.#query = query;
  }

  /** @param at a time in the step, or in a day whose hours are gone. */
  add(at: number, name: string, sums: Sums): void {
    const unit = stepMs[this.#query.step];
    const step = Math.floor(at / unit) * unit;
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { calls: 0, steps: new Map() };
      this.#groups.set(name, group);
    }
    group.calls += sums.calls;
    const there = group.steps.get(step) ?? noSums();
    group.steps.set(step, there);
    addSums(there, sums);
  }

  /** By group, the one with the most calls first, and by time. */
  rows(): readonly SeriesRow[] {
    return [...this.#groups]
      .toSorted(([a, x], [b, y]) => y.calls - x.calls || compareText(a, b))
      .slice(0, this.#query.groups)
      .flatMap(([group, { steps }]) =>
        [...steps]
          .toSorted(([a], [b]) => a - b)
          .map(([at, sums]): SeriesRow => ({ group, at, ...sums })),
      );
  }
}
