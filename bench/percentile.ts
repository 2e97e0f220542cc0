/** The value below which that share of the values lies; NaN of none. `sorted` is in ascending order. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The middle and the late end of times, which are sorted in place. */
export function lateness(times: number[]): { readonly p50: number; readonly p99: number } {
  times.sort((a, b) => a - b);
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}
