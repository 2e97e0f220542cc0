/** How much the model may think, in the form that it understands. */
import type { Conversation, Effort, Reasoning, Turn } from '../../../core/conversation.ts';
import type { FieldPath } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonObject } from '../../../json/value.ts';
import { demandsCall } from '../../shared/request/demanded-call.ts';
import { endsPaused } from './write-messages.ts';
import { isNative } from '../answer/response.ts';
import { minBudget, budgetOf } from '../../shared/request/effort.ts';

interface ThinkingQuestion {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly maxTokens: number;
}

/** What is sent; `on` means that sampling must be left alone. */
export interface WrittenThinking {
  readonly thinking?: JsonObject;
  readonly effort?: Effort;
  readonly on: boolean;
}

const nothing: WrittenThinking = { on: false };

/** @param question.maxTokens what the answer may have, thinking included */
export function writeThinking(question: ThinkingQuestion, notes: Notes): WrittenThinking {
  const { conversation, traits } = question;
  const { reasoning } = conversation;
  if (reasoning === undefined || requestsNothing(reasoning)) return writeDefaultThinking(question);
  const wanted = reasoning.effort !== 'none';
  if (traits.thinking === 'none') {
    if (wanted) notes.lost(reasoningPath(reasoning), 'the model does not think');
    return nothing;
  }
  const obstacle = wanted ? findObstacle(question) : undefined;
  if (obstacle !== undefined)
    notes.changed(reasoningPath(reasoning), `thinking is off: ${obstacle}`);
  const thinks = wanted && obstacle === undefined;
  if (traits.thinking === 'adaptive') {
    return thinks ? writeAdaptive(reasoning, traits, notes) : writeOff(reasoning, traits, notes);
  }
  if (thinks) return writeBudget(reasoning, question, notes);
  // Claude does not think unasked on a budget; models of other vendors do.
  return traits.thinksByDefault === true ? writeOff(reasoning, traits, notes) : nothing;
}

/** A model that thinks by default refuses a demanded tool call, too. */
function writeDefaultThinking({ conversation, traits }: ThinkingQuestion): WrittenThinking {
  const { thinkingOff = 'never', thinksByDefault, thinking } = traits;
  const must = thinking === 'adaptive' && thinksByDefault === true && thinkingOff !== 'never';
  if (!must || !demandsCall(conversation) || traits.refusesForcedTools === true) return nothing;
  return { thinking: { type: thinkingOff }, on: false };
}

/** As far off as the model lets itself be switched. */
function writeOff(
  reasoning: Reasoning,
  { thinkingOff = 'disabled', efforts }: UpstreamTraits,
  notes: Notes,
): WrittenThinking {
  if (thinkingOff !== 'never') return { thinking: { type: thinkingOff }, on: false };
  notes.changed(reasoningPath(reasoning), 'the model always thinks, as little as it can');
  return efforts.includes('low') ? { effort: 'low', on: true } : { on: true };
}

function requestsNothing({ effort, budgetTokens, adaptive }: Reasoning): boolean {
  return effort === undefined && budgetTokens === undefined && adaptive !== true;
}

/** What the provider refuses together with thinking: the harder promise wins. */
function findObstacle({ conversation, traits }: ThinkingQuestion): string | undefined {
  const { turns } = conversation;
  if (demandsCall(conversation) && traits.refusesForcedTools !== true) {
    return 'a tool call is required';
  }
  if (turns.at(-1)?.role === 'assistant' && traits.prefill && !endsPaused(turns)) {
    return 'the last assistant message is to be continued';
  }
  if (traits.thinking === 'budget' && lacksSignedThinking(turns)) {
    return 'the open tool turn does not begin with signed thinking';
  }
  return undefined;
}

/** The last assistant turn has calls that the turns after it answer, and no thinking first. */
function lacksSignedThinking(turns: readonly Turn[]): boolean {
  const at = turns.findLastIndex((turn) => turn.role === 'assistant');
  const parts = turns[at]?.parts ?? [];
  const answered = turns
    .slice(at + 1)
    .some((turn) => turn.parts.some((part) => part.type === 'tool-result'));
  if (!answered || !parts.some((part) => part.type === 'tool-call')) return false;
  const first = parts.find((part) => part.type !== 'reasoning' || isNative(part));
  return first?.type !== 'reasoning';
}

function writeAdaptive(
  reasoning: Reasoning,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenThinking {
  const effort = adaptiveEffort(reasoning, notes);
  const known = effort === undefined ? undefined : knownEffort(effort, traits.efforts);
  if (effort !== undefined && known !== effort) {
    notes.changed(reasoningPath(reasoning), `the model knows ${known ?? 'no effort'} instead`);
  }
  return {
    thinking: { type: 'adaptive', display: displayOf(reasoning) },
    ...(known === undefined ? {} : { effort: known }),
    on: true,
  };
}

/** Newer models take an effort and no budget. */
function adaptiveEffort(reasoning: Reasoning, notes: Notes): Effort | undefined {
  const { effort, budgetTokens, adaptive } = reasoning;
  if (effort !== undefined) return effort === 'minimal' ? 'low' : effort;
  if (budgetTokens === undefined || adaptive === true) return undefined;
  notes.changed(reasoningPath(reasoning), 'the model takes an effort instead of a budget');
  return effortOfBudget(budgetTokens);
}

/** The only published thresholds. */
export function effortOfBudget(budgetTokens: number): Effort {
  if (budgetTokens >= 10_000) return 'high';
  return budgetTokens >= 5000 ? 'medium' : 'low';
}

/** `xhigh` may become `max` where only that is known, and both become `high` where neither is. */
export function knownEffort(effort: Effort, efforts: readonly Effort[]): Effort | undefined {
  const candidates: readonly Effort[] =
    effort === 'xhigh' ? ['xhigh', 'max', 'high'] : [effort, 'high'];
  return candidates.find((candidate) => efforts.includes(candidate));
}

function writeBudget(
  reasoning: Reasoning,
  { maxTokens }: ThinkingQuestion,
  notes: Notes,
): WrittenThinking {
  if (maxTokens <= minBudget) {
    notes.lost(reasoningPath(reasoning), `thinking needs an output cap above ${minBudget} tokens`);
    return nothing;
  }
  const wanted = reasoning.budgetTokens ?? budgetOf(reasoning.effort ?? 'high', maxTokens);
  const budget = Math.min(Math.max(wanted, minBudget), maxTokens - 1);
  if (reasoning.budgetTokens !== undefined && budget !== wanted) {
    notes.changed(reasoningPath(reasoning), `the budget must be from ${minBudget} to the cap`);
  }
  return {
    thinking: { type: 'enabled', budget_tokens: budget, display: displayOf(reasoning) },
    on: true,
  };
}

/** Where the client said it: chat clients have three spellings (openai-chat/request/read.ts). */
function reasoningPath(reasoning: Reasoning): FieldPath {
  const { budgetTokens } = reasoning;
  return pathOf(
    reasoning,
    budgetTokens === undefined ? ['reasoning_effort'] : ['thinking', 'budget_tokens'],
  );
}

/** Set explicitly, so that the answer contains thinking text to return. */
function displayOf({ hidden }: Reasoning): string {
  return hidden === true ? 'omitted' : 'summarized';
}
