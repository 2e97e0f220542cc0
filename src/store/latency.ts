/**
 * How long calls took, from a bounded sample of them: percentiles over millions of rows need no look at each.
 * Slices of the period are sampled alike, so that a quiet hour has as good a value as a busy one.
 */
import type { UsageFilter } from './calls.ts';

export interface LatencyQuery {
  readonly since: number;
  readonly until: number;
  /** The period is cut into so many equal parts; at most `mostSlices`. */
  readonly slices: number;
  readonly filter?: UsageFilter;
}

/** One call that ended well. */
export interface LatencySample {
  readonly startedAt: number;
  readonly keyId: string;
  readonly team?: string;
  readonly model: string;
  readonly provider?: string;
  readonly totalMs: number;
  readonly firstEventMs?: number;
}

export const mostSlices = 200;
/** Of all slices together; each takes its part of it. */
export const mostLooks = 6_000;

export interface Slice {
  readonly from: number;
  readonly to: number;
  /** Rows that may be looked at in it. */
  readonly looks: number;
}

export function slicesOf({ since, until, slices }: LatencyQuery): readonly Slice[] {
  const count = Math.max(1, Math.min(mostSlices, Math.floor(slices)));
  const width = (until - since) / count;
  const looks = Math.floor(mostLooks / count);
  return Array.from({ length: count }, (_, i) => ({
    from: Math.round(since + i * width),
    to: Math.round(since + (i + 1) * width),
    looks,
  })).filter(({ from, to }) => from < to);
}
