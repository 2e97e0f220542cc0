/** The line of what was left of a budget over its period. */
import type { Budget } from './api.ts';

export const width = 300;
export const height = 100;

export interface Spent {
  readonly at: string;
  readonly cost_usd: number | null;
}

export interface BurnPeriod {
  readonly start: number;
  readonly end: number;
  /** When the spending was looked at. */
  readonly now: number;
}

export interface BurnLine {
  readonly left: number;
  /** As `points` of a polyline in a box of `width` and `height`. */
  readonly points: string;
}

export function burnLine(all: number, spent: readonly Spent[], period: BurnPeriod): BurnLine {
  const { start, end, now } = period;
  const corner = (at: number, left: number): string => {
    const x = Math.min(width, Math.max(0, ((at - start) / (end - start)) * width));
    return `${x.toFixed(1)},${(height - (left / all) * height).toFixed(1)}`;
  };
  let left = all;
  const corners = ['0,0'];
  for (const { at, cost_usd: cost } of spent) {
    left = Math.max(0, left - (cost ?? 0));
    corners.push(corner(Date.parse(at), left));
  }
  return { left, points: [...corners, corner(now, left)].join(' ') };
}

/** The beginning of the calendar period that ends then. */
export function beginOf(end: number, per: Budget['per']): number {
  const dayMs = 86_400_000;
  if (per === 'day') return end - dayMs;
  if (per === 'week') return end - 7 * dayMs;
  const begin = new Date(end);
  begin.setUTCMonth(begin.getUTCMonth() - 1);
  return begin.getTime();
}
