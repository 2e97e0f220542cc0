/** The money for a further round of a paused turn (turn-rounds.ts). */
import type { Part } from '../core/conversation.ts';
import type { Usage } from '../core/generation.ts';
import type { Call } from './call.ts';
import { spent } from './output-guard.ts';
import { withFurther } from './turn-rounds.ts';

export interface NextRound {
  /** What was answered so far. */
  readonly answered: readonly Part[];
  /** Output tokens that it may have; undefined where no budget pays. */
  readonly most: number | undefined;
}

/**
 * A further round reads the prompt and what was answered so far again: both are paid for before it is
 * asked for (Q1), and it may answer as much as the rounds before it left of what is paid for.
 * @param used by the rounds before it
 * @throws GatewayError `budget_exhausted`
 */
export async function payRound(
  { grant, head }: Pick<Call, 'grant' | 'head'>,
  used: Usage,
): Promise<number | undefined> {
  if (grant?.outputCap === undefined || !grant.paid) return undefined;
  const { outputCap } = grant;
  const paid = await grant.outputOfRound(withFurther(used));
  const left = Math.min(paid ?? outputCap, outputCap) - (used.outputTokens ?? 0);
  if (left <= (head.reasoningBudget ?? 0)) throw spent();
  return left;
}
