/** The money for a further round of a paused turn (turn-rounds.ts). */
import type { Part } from '../core/conversation.ts';
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { Call } from './call.ts';
import type { Meter } from './meter.ts';
import { spent } from './output-guard.ts';

export interface NextRound {
  /** What was answered so far. */
  readonly answered: readonly Part[];
  /** Output tokens that it may have; undefined where no budget pays. */
  readonly most: number | undefined;
}

/**
 * A further round reads the prompt and what was answered so far again: both are paid for before it is
 * asked for (Q1), and it may answer as much as the rounds before it left of what is paid for.
 * @param last what the round before it cost
 * @throws GatewayError `budget_exhausted`
 */
export async function payRound(
  { grant, head }: Pick<Call, 'grant' | 'head'>,
  { reported }: Pick<Meter, 'reported'>,
  last: Usage | undefined,
): Promise<number | undefined> {
  if (grant?.outputCap === undefined || !grant.paid || reported === undefined) return undefined;
  const { outputCap } = grant;
  const paid = await grant.outputAfter(withPrompt(reported, last ?? reported));
  const left = Math.min(paid ?? outputCap, outputCap) - (reported.outputTokens ?? 0);
  if (left <= (head.reasoningBudget ?? 0)) throw spent();
  return left;
}

/** What is reported so far, and a prompt of all that the round before read and answered. */
function withPrompt(reported: Usage, last: Usage): Usage {
  const { freshInputTokens = 0 } = reported;
  const again = (totalInputTokens(last) ?? 0) + (last.outputTokens ?? 0);
  return { ...reported, freshInputTokens: freshInputTokens + again };
}
