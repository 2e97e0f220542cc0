/** The line of what was left of a budget over its period. */

export const width = 300;
export const height = 100;

const hourMs = 3_600_000;

/** What the calls of one hour cost. */
export interface Spent {
  readonly at: string;
  readonly cost_usd: number | null;
}

/** Milliseconds since the epoch. */
export interface BurnPeriod {
  readonly start: number;
  readonly end: number;
  /** When the spending was looked at. */
  readonly now: number;
}

/** As `points` of a polyline in a box of `width` and `height`: an hour's spending goes from its begin to its end. */
export function burnLine(all: number, spent: readonly Spent[], period: BurnPeriod): string {
  const { start, end, now } = period;
  const corner = (at: number, left: number): string => {
    const x = Math.min(width, Math.max(0, ((at - start) / (end - start)) * width));
    return `${x.toFixed(1)},${(height - (left / all) * height).toFixed(1)}`;
  };
  let left = all;
  const corners = [corner(start, all)];
  for (const { at, cost_usd: cost } of spent) {
    const began = Date.parse(at);
    corners.push(corner(began, left));
    left = Math.max(0, left - (cost ?? 0));
    corners.push(corner(Math.min(now, began + hourMs), left));
  }
  return [...corners, corner(now, left)].join(' ');
}
