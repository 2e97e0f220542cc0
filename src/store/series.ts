/** Sums over time by group, of which only the groups with the most calls are told. */
import type { SeriesQuery, SeriesRow } from './calls.ts';
import {
  addSums,
  dayMs,
  hourMs,
  noSums,
  planUsage,
  type KeptSince,
  type Sums,
  type UsagePlan,
} from './roll-up.ts';
import { compareText } from './text-order.ts';

const minuteMs = 60_000;

export const stepMs: { readonly [S in SeriesQuery['step']]: number } = {
  minute: minuteMs,
  hour: hourMs,
  day: dayMs,
};

export const sourcesInOrder = ['days', 'hours', 'calls'] as const;

/** Where the sums for a step are read: minutes are in the calls only. */
export function planSeries({ step, since, until }: SeriesQuery, kept: KeptSince): UsagePlan {
  return step === 'minute'
    ? { days: [], hours: [], calls: [{ from: since, to: until }] }
    : planUsage({ by: step, since, until }, kept);
}

/**
 * Where the calls of each group in the same time are counted: of a week of hours, in its days. Of minutes the calls
 * alone are asked, as `planSeries` does, so that no group is chosen for calls that are gone.
 */
export function planCounts(query: SeriesQuery, kept: KeptSince): UsagePlan {
  const { step, since, until } = query;
  return step === 'minute' ? planSeries(query, kept) : planUsage({ by: 'day', since, until }, kept);
}

/** The groups with the most calls, in that order. */
export function busiestOf(calls: ReadonlyMap<string, number>, groups: number): readonly string[] {
  return [...calls]
    .toSorted(([a, x], [b, y]) => y - x || compareText(a, b))
    .slice(0, groups)
    .map(([name]) => name);
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

  /** What was added so far, by group. */
  calls(): Map<string, number> {
    return new Map([...this.#groups].map(([name, { calls }]) => [name, calls]));
  }

  /** By group, the one with the most calls first, and by time. */
  rows(): readonly SeriesRow[] {
    return busiestOf(this.calls(), this.#query.groups).flatMap((group) =>
      [...(this.#groups.get(group)?.steps ?? [])]
        .toSorted(([a], [b]) => a - b)
        .map(([at, sums]): SeriesRow => ({ group, at, ...sums })),
    );
  }
}
