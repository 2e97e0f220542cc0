/** What of a request is sent differently after an upstream refused it by name (learned-parameters.ts). */
import type { Pieces } from '../core/pieces.ts';
import type { Correction } from './corrections.ts';
import type { Refused } from './learned-parameters.ts';

/** A refusal and the body that got it. */
export interface RefusedRequest extends Refused {
  readonly body: Pieces;
}

/** A request that is sent once more, and why. */
export interface Again {
  readonly refused: RefusedRequest;
  /** All that was refused so far. */
  readonly members: readonly string[];
  /** What is to be known of the model if it answers now. */
  readonly lasting: Correction['traits'];
}

/** The next request after one more refusal; `before` is what was corrected for the ones before it. */
export function corrected(
  refused: RefusedRequest,
  { members, lasting, traits }: Correction,
  before: Again | undefined,
): Again {
  return {
    refused,
    members: [...(before?.members ?? []), ...members],
    lasting: { ...before?.lasting, ...(lasting ? traits : {}) },
  };
}
