/** What was left of a budget over its period, step by step. */

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** What the calls of one hour cost. */
export interface Spent {
  readonly at: string;
  readonly cost_usd: number | null;
}

/** Milliseconds since the epoch. */
export interface BurnPeriod {
  readonly start: number;
  readonly end: number;
  /** When the spending was examined. */
  readonly now: number;
}

export interface BurnDown {
  readonly stepMs: number;
  readonly times: readonly number[];
  /** At the end of each step, or now; null: it has not begun. */
  readonly left: readonly (number | null)[];
  /** The same, had each step spent the same. */
  readonly even: readonly number[];
}

/** Steps are hours of a day, quarters of the days of a week, and days of longer periods. */
export function burnDown(all: number, spent: readonly Spent[], period: BurnPeriod): BurnDown {
  const { start, end, now } = period;
  const length = end - start;
  const stepMs = length <= 2 * dayMs ? hourMs : length <= 8 * dayMs ? 6 * hourMs : dayMs;
  const count = Math.ceil(length / stepMs);
  const times = Array.from({ length: count }, (_, i) => start + i * stepMs);
  const left = times.map((time) => {
    if (time > now) return null;
    const before = spent.filter(({ at }) => Date.parse(at) < time + stepMs);
    const gone = before.reduce((sum, { cost_usd: cost }) => sum + (cost ?? 0), 0);
    return Math.max(0, all - gone);
  });
  return { stepMs, times, left, even: times.map((_, i) => all * (1 - (i + 1) / count)) };
}
