/** How much a model may reason: a word of effort or a budget of tokens, in terms of what the upstream knows. */
import type { Effort, Reasoning } from '../../../core/conversation.ts';
import type { FieldPath } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';

/** Reasoning that a client wants, and the upstream that is asked for it. */
export interface Wanted {
  readonly reasoning: Reasoning;
  readonly wanted: Effort;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** Notes that the upstream has no member for the wanted reasoning. */
export function noteUncontrolled({ reasoning, wanted, traits, notes }: Wanted): void {
  if (wanted !== 'none') {
    notes.lost(reasoningPath(reasoning), 'the model has no control over its reasoning');
  } else if (traits.thinkingOff === 'never' || traits.reasonsFirst === true) {
    notes.lost(reasoningPath(reasoning), 'the model always reasons');
  }
}

/** The nearest word that the model knows. */
export function namedEffort({ reasoning, wanted, traits, notes }: Wanted): {
  readonly effort?: Effort;
} {
  const effort = nearestEffort(wanted, traits.efforts);
  if (effort === undefined) {
    if (wanted !== 'none') {
      notes.lost(reasoningPath(reasoning), 'the model has no control over how much it reasons');
    }
    return {};
  }
  if (effort !== wanted) {
    notes.changed(reasoningPath(reasoning), `the model knows the effort ${effort} instead`);
  }
  return { effort };
}

/** The effort that a client asks for in any form; undefined = it says nothing. */
export function wantedEffort({ effort, budgetTokens, adaptive }: Reasoning): Effort | undefined {
  if (effort !== undefined) return effort;
  if (budgetTokens !== undefined) return effortOfBudget(budgetTokens);
  return adaptive === true ? 'high' : undefined;
}

/** The only published thresholds. */
function effortOfBudget(budgetTokens: number): Effort {
  if (budgetTokens >= 10_000) return 'high';
  if (budgetTokens >= 5000) return 'medium';
  return budgetTokens >= 2000 ? 'low' : 'minimal';
}

const order: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The highest known effort up to the wanted one, else the lowest known. */
function nearestEffort(wanted: Effort, known: readonly Effort[]): Effort | undefined {
  const limit = order.indexOf(wanted);
  const ordered = order.filter((effort) => known.includes(effort));
  // A client that wants some reasoning does not get none.
  const usable = wanted === 'none' ? ordered : ordered.filter((effort) => effort !== 'none');
  return usable.findLast((effort) => order.indexOf(effort) <= limit) ?? usable[0];
}

/** The path of the wish in the client's request. Requests of messages clients record none. */
export function reasoningPath(reasoning: Reasoning | undefined): FieldPath {
  if (reasoning === undefined) return ['thinking'];
  const { effort, budgetTokens } = reasoning;
  if (effort !== undefined && effort !== 'none') {
    return pathOf(reasoning, ['output_config', 'effort']);
  }
  return pathOf(
    reasoning,
    budgetTokens === undefined ? ['thinking'] : ['thinking', 'budget_tokens'],
  );
}

interface BudgetShare {
  /** Of the output cap, which includes thinking in both dialects. */
  readonly percent: number;
  /** Tokens at most: a cap that the client did not choose is the model's own, 64,000 tokens and more. */
  readonly most: number;
}

/**
 * The bounds lie between the thresholds by which budgets are read as efforts, so that an effort comes
 * back as itself; other gateways send 1,024 to 16,384 tokens (docs/user/reasoning.md).
 */
const budgetShares: ReadonlyMap<Effort, BudgetShare> = new Map<Effort, BudgetShare>([
  ['low', { percent: 10, most: 4096 }],
  ['medium', { percent: 30, most: 8192 }],
  ['high', { percent: 60, most: 16_384 }],
  ['xhigh', { percent: 80, most: 32_768 }],
  ['max', { percent: 90, most: Infinity }],
]);
/** Tokens. The messages API refuses a smaller budget. */
export const minBudget = 1024;

/** The budget in tokens that stands for an effort under this output cap. */
export function budgetOf(effort: Effort, maxTokens: number): number {
  const { percent, most } = budgetShares.get(effort) ?? { percent: 0, most: 0 };
  return Math.min(Math.floor((maxTokens * percent) / 100), most);
}
