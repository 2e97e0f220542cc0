/** How much the model may think: a budget before Gemini 3, a level from there on. */
import type { Conversation, Effort, Reasoning } from '../../../core/conversation.ts';
import type { FieldPath } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  budgetOf,
  minBudget,
  namedEffort,
  noteUncontrolled,
  wantedEffort,
} from '../../shared/request/effort.ts';
import type { JsonMembers } from '../../../json/value.ts';

interface Thinking {
  readonly reasoning: Reasoning;
  readonly wanted: Effort;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** The API refuses both controls in one request. Empty if the client requested nothing. */
export function writeThinking(
  { reasoning, sampling }: Conversation,
  { traits, notes }: Pick<Thinking, 'traits' | 'notes'>,
): JsonMembers {
  const wanted = reasoning === undefined ? undefined : wantedEffort(reasoning);
  const { thinkingBudget: range, efforts } = traits;
  const thinks = range !== undefined || efforts.length > 0;
  if (reasoning === undefined || wanted === undefined) {
    // The model thinks by default. It returns its thoughts only on request.
    return thinks && reasoning?.hidden === false
      ? { thinkingConfig: { includeThoughts: true } }
      : {};
  }
  if (!thinks) {
    noteUncontrolled({ reasoning, wanted, traits, notes });
    return {};
  }
  const asked = { reasoning, wanted, traits, notes };
  const control =
    range === undefined
      ? writeLevel(asked)
      : { thinkingBudget: budgetIn(range, asked, sampling.maxOutputTokens ?? range.most) };
  const shown = wanted !== 'none' && reasoning.hidden !== true;
  return { thinkingConfig: { ...control, ...(shown ? { includeThoughts: true } : {}) } };
}

type BudgetRange = NonNullable<UpstreamTraits['thinkingBudget']>;

/** Lets the model choose its budget. */
const dynamic = -1;

function budgetIn(range: BudgetRange, { reasoning, wanted, notes }: Thinking, cap: number): number {
  const { effort, budgetTokens } = reasoning;
  if (wanted === 'none') {
    if (range.off) return 0;
    notes.changed(reasoningPath(reasoning), 'the model always thinks, as little as it can');
    return range.least;
  }
  if (effort === undefined && budgetTokens === undefined) return dynamic;
  const share = wanted === 'minimal' ? minBudget : budgetOf(wanted, cap);
  const tokens = effort === undefined ? (budgetTokens ?? share) : share;
  const budget = Math.min(Math.max(tokens, range.least), range.most);
  if (effort === undefined && budget !== tokens) {
    const why = `the budget must be from ${range.least} to ${range.most}`;
    notes.changed(reasoningPath(reasoning), why);
  }
  return budget;
}

function writeLevel(asked: Thinking): JsonMembers {
  const { reasoning, wanted, traits, notes } = asked;
  if (reasoning.effort === undefined && reasoning.budgetTokens === undefined) return {};
  if (wanted === 'none' && !traits.efforts.includes('none')) {
    const [least] = traits.efforts;
    notes.changed(reasoningPath(reasoning), 'the model always thinks, as little as it can');
    return least === undefined ? {} : { thinkingLevel: least };
  }
  const { effort } = namedEffort(asked);
  return effort === undefined ? {} : { thinkingLevel: effort };
}

/** The path of the client's member. */
function reasoningPath(reasoning: Reasoning): FieldPath {
  const { effort, budgetTokens } = reasoning;
  if (effort === undefined && budgetTokens !== undefined) {
    return pathOf(reasoning, ['thinking', 'budget_tokens']);
  }
  return pathOf(reasoning, ['thinking']);
}
