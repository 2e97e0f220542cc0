/**
 * How long calls took: of all calls of a short or quiet period, else of a bounded sample of them, since
 * percentiles over millions of rows need no look at each.
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
  /** Of streams alone: the first part of a document comes when all of it is there. */
  readonly firstEventMs?: number;
}

export interface LatencySamples {
  readonly calls: readonly LatencySample[];
  /** These are all calls of the period and filter that ended well: what is made of them is exact. */
  readonly isAll: boolean;
}

export const mostSlices = 200;
/** A period with no more calls is read as a whole; else of all slices together, each takes its part. */
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
