/** How much the model may reason, in the members that the upstream has for it (translation.md §4.2). */
import type { Effort, Reasoning } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import { placeOf } from '../../core/places.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { JsonMembers } from './fields.ts';

export interface ReasoningQuestion {
  readonly reasoning: Reasoning | undefined;
  readonly traits: UpstreamTraits;
  /** Tools go with the request. */
  readonly offersTools: boolean;
  /** The model is to continue the last assistant message. */
  readonly continues: boolean;
  readonly notes: Notes;
}

/** Nothing where the client said nothing, unless the upstream would refuse the request without. */
export function writeReasoning(question: ReasoningQuestion): JsonMembers {
  const { reasoning, traits, notes } = question;
  const wanted = reasoning === undefined ? undefined : wantedEffort(reasoning);
  const obstacle = findObstacle(question);
  if (obstacle !== undefined) {
    if (wanted !== undefined && wanted !== 'none') notes.changed(pathOf(reasoning), obstacle.why);
    return obstacle.members;
  }
  if (reasoning === undefined || wanted === undefined) return {};
  return writeControl({ reasoning, wanted, traits, notes });
}

interface Obstacle {
  readonly why: string;
  readonly members: JsonMembers;
}

/**
 * What is refused beside reasoning. Such models reason by default, so they must be told not to, or
 * every such call fails.
 */
function findObstacle(question: ReasoningQuestion): Obstacle | undefined {
  const { traits, offersTools, continues } = question;
  if (offersTools && traits.toolsExcludeReasoning === true) {
    return {
      why: 'the model does not reason where tools are offered',
      members: { reasoning_effort: 'none' },
    };
  }
  // llama.cpp: "Assistant response prefill is incompatible with enable_thinking."
  if (continues && traits.reasoningControl === 'template') {
    return {
      why: 'the model does not reason in the middle of an answer',
      members: templateSwitch(false),
    };
  }
  return undefined;
}

interface Wanted {
  readonly reasoning: Reasoning;
  readonly wanted: Effort;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

function writeControl(question: Wanted): JsonMembers {
  const { reasoning, wanted, traits } = question;
  const off = wanted === 'none';
  const budget = traits.reasoningBudget === true && !off ? reasoning.budgetTokens : undefined;
  switch (traits.reasoningControl) {
    case 'effort':
      return writeEffort(question);
    case 'openrouter':
      return { reasoning: budget === undefined ? namedEffort(question) : { max_tokens: budget } };
    case 'gemini':
      return budget === undefined ? writeEffort(question) : geminiBudget(budget);
    case 'thinking-type':
      return {
        thinking: { type: off ? 'disabled' : 'enabled' },
        ...(off ? {} : writeWord(question)),
      };
    case 'template':
      return off ? templateSwitch(false) : { ...templateSwitch(true), ...writeWord(question) };
    case 'qwen':
      if (budget !== undefined) return { enable_thinking: true, thinking_budget: budget };
      return { enable_thinking: !off, ...(off ? {} : writeWord(question)) };
    case 'none':
      noteUncontrolled(question);
      return {};
    default:
      return traits.reasoningControl satisfies never;
  }
}

function noteUncontrolled({ reasoning, wanted, traits, notes }: Wanted): void {
  if (wanted !== 'none') {
    notes.lost(pathOf(reasoning), 'the model has no control over its reasoning');
  } else if (traits.thinkingOff === 'never') {
    notes.lost(pathOf(reasoning), 'the model always reasons');
  }
}

/** `reasoning_effort` with the nearest word that the model knows. */
function writeEffort(question: Wanted): JsonMembers {
  const { effort } = namedEffort(question);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/** The word beside a switch; where there are no words, on and off is all that can be said. */
function writeWord(question: Wanted): JsonMembers {
  const { reasoning, traits, notes } = question;
  if (traits.efforts.length > 0) return writeEffort(question);
  if (reasoning.effort !== undefined || reasoning.budgetTokens !== undefined) {
    notes.changed(pathOf(reasoning), 'the model decides itself how much it reasons');
  }
  return {};
}

function namedEffort({ reasoning, wanted, traits, notes }: Wanted): { readonly effort?: Effort } {
  const effort = nearestEffort(wanted, traits.efforts);
  if (effort === undefined) {
    if (wanted !== 'none') {
      notes.lost(pathOf(reasoning), 'the model has no control over how much it reasons');
    }
    return {};
  }
  if (effort !== wanted) {
    notes.changed(pathOf(reasoning), `the model knows the effort ${effort} instead`);
  }
  return { effort };
}

function templateSwitch(on: boolean): JsonMembers {
  return { chat_template_kwargs: { enable_thinking: on } };
}

function geminiBudget(budget: number): JsonMembers {
  return { extra_body: { google: { thinking_config: { thinking_budget: budget } } } };
}

function wantedEffort({ effort, budgetTokens, adaptive }: Reasoning): Effort | undefined {
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
  // Who wants some reasoning does not want none.
  const usable = wanted === 'none' ? ordered : ordered.filter((effort) => effort !== 'none');
  return usable.findLast((effort) => order.indexOf(effort) <= limit) ?? usable[0];
}

/** Where a messages client said it: the only dialect that is translated to this one. */
function pathOf(reasoning: Reasoning | undefined): FieldPath {
  if (reasoning?.effort !== undefined && reasoning.effort !== 'none') {
    return placeOf(reasoning, ['output_config', 'effort']);
  }
  return reasoning?.budgetTokens === undefined ? ['thinking'] : ['thinking', 'budget_tokens'];
}
