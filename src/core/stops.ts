/** Which stop sequences an upstream looks for, and which the gateway must (translation.md §1.4). */
import type { UpstreamTraits } from './traits.ts';

export interface StopPlan {
  /** Sent upstream. */
  readonly native: readonly string[];
  /** Found by the gateway in the text of the answer, which it then cuts. */
  readonly scanned: readonly string[];
}

/**
 * The request's writer sends `native`, the path scans for `scanned`; both ask here, so that no
 * sequence is looked for by nobody. More than the upstream takes, and the gateway owns all of them:
 * which ones it would leave out would be a guess.
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
