/** Which stop sequences an upstream looks for, and which the gateway must. */
import type { UpstreamTraits } from './traits.ts';

export interface StopPlan {
  /** Sent upstream. */
  readonly native: readonly string[];
  /** Found by the gateway in the text of the answer, which it then cuts. */
  readonly scanned: readonly string[];
}

/**
 * The request writer sends `native`, the path scans for `scanned`; both use this plan, so that every sequence
 * is handled exactly once. If there are more than the upstream takes, the gateway scans for all of them, since
 * the choice of which to leave out would be arbitrary.
 */
export function plannedStops(
  stop: readonly string[] | undefined,
  { stopMax, refusesBlankStops }: Pick<UpstreamTraits, 'stopMax' | 'refusesBlankStops'>,
): StopPlan {
  const wanted = stop ?? [];
  const usable = refusesBlankStops === true ? wanted.filter((text) => text.trim() !== '') : wanted;
  if (stopMax !== undefined && usable.length > stopMax) return { native: [], scanned: wanted };
  return { native: usable, scanned: wanted.filter((text) => !usable.includes(text)) };
}
