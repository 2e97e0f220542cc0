/** How much the model may think, in the form that it understands (wire/translation.md §4.1, §5.3). */
import type { Conversation, Effort, JsonObject, Reasoning, Turn } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { endsPaused } from './paused-turn.ts';
import { isNative } from './signature.ts';

export interface ThinkingQuestion {
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
/** Share of the output cap, in percent; the cap includes thinking in both dialects. */
const budgetShares: ReadonlyMap<Effort, number> = new Map<Effort, number>([
  ['low', 10],
  ['medium', 30],
  ['high', 60],
  ['xhigh', 80],
  ['max', 90],
]);
const minBudget = 1024;

export function writeThinking(question: ThinkingQuestion, notes: Notes): WrittenThinking {
  const { conversation, traits } = question;
  const { reasoning } = conversation;
  if (reasoning === undefined || asksNothing(reasoning)) return writeUnasked(question);
  const wanted = reasoning.effort !== 'none';
  if (traits.thinking === 'none') {
    if (wanted) notes.lost(['reasoning_effort'], 'the model does not think');
    return nothing;
  }
  const obstacle = wanted ? findObstacle(question) : undefined;
  if (obstacle !== undefined) notes.changed(['reasoning_effort'], `thinking is off: ${obstacle}`);
  const thinks = wanted && obstacle === undefined;
  if (traits.thinking === 'adaptive') {
    return thinks ? writeAdaptive(reasoning, traits, notes) : writeOff(traits, notes);
  }
  return thinks ? writeBudget(reasoning, question, notes) : nothing;
}

/** A model that thinks unasked refuses a demanded tool call just as if it had been asked to think. */
function writeUnasked({ conversation, traits }: ThinkingQuestion): WrittenThinking {
  const { thinkingOff = 'never', thinksByDefault, thinking } = traits;
  const must = thinking === 'adaptive' && thinksByDefault === true && thinkingOff !== 'never';
  if (!must || !demandsTool(conversation) || traits.refusesForcedTools === true) return nothing;
  return { thinking: { type: thinkingOff }, on: false };
}

/** As far off as the model lets itself be switched. */
function writeOff({ thinkingOff = 'disabled' }: UpstreamTraits, notes: Notes): WrittenThinking {
  if (thinkingOff !== 'never') return { thinking: { type: thinkingOff }, on: false };
  notes.changed(['reasoning_effort'], 'the model always thinks, as little as it can');
  return { effort: 'low', on: true };
}

function asksNothing({ effort, budgetTokens, adaptive }: Reasoning): boolean {
  return effort === undefined && budgetTokens === undefined && adaptive !== true;
}

/** What the provider refuses together with thinking: the harder promise wins. */
function findObstacle({ conversation, traits }: ThinkingQuestion): string | undefined {
  const { turns } = conversation;
  if (demandsTool(conversation) && traits.refusesForcedTools !== true) {
    return 'a tool call is demanded';
  }
  if (turns.at(-1)?.role === 'assistant' && traits.prefill && !endsPaused(turns)) {
    return 'the last assistant message is to be continued';
  }
  if (traits.thinking === 'budget' && lacksSignedThinking(turns)) {
    return 'the open tool turn does not begin with signed thinking';
  }
  return undefined;
}

function demandsTool({ toolChoice }: Conversation): boolean {
  const choice = toolChoice?.type === 'allowed' ? toolChoice.mode : toolChoice?.type;
  return choice === 'required' || choice === 'tool';
}

/** The last assistant turn has calls that the turns behind it answer, and no thinking first (D3). */
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
    notes.changed(['reasoning_effort'], `the model knows ${known ?? 'no effort'} instead`);
  }
  return {
    thinking: { type: 'adaptive', display: displayOf(reasoning) },
    ...(known === undefined ? {} : { effort: known }),
    on: true,
  };
}

/** Newer models take an effort and no budget: the only published thresholds. */
function adaptiveEffort(
  { effort, budgetTokens, adaptive }: Reasoning,
  notes: Notes,
): Effort | undefined {
  if (effort !== undefined) return effort === 'minimal' ? 'low' : effort;
  if (budgetTokens === undefined || adaptive === true) return undefined;
  notes.changed(['thinking', 'budget_tokens'], 'the model takes an effort instead of a budget');
  if (budgetTokens >= 10_000) return 'high';
  return budgetTokens >= 5000 ? 'medium' : 'low';
}

/** `xhigh` may become `max` where only that is known, and both become `high` where neither is. */
function knownEffort(effort: Effort, efforts: readonly Effort[]): Effort | undefined {
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
    notes.lost(['reasoning_effort'], `thinking needs an output cap above ${minBudget} tokens`);
    return nothing;
  }
  const wanted = reasoning.budgetTokens ?? budgetOf(reasoning.effort ?? 'high', maxTokens);
  const budget = Math.min(Math.max(wanted, minBudget), maxTokens - 1);
  if (reasoning.budgetTokens !== undefined && budget !== wanted) {
    notes.changed(['thinking', 'budget_tokens'], `the budget must be from ${minBudget} to the cap`);
  }
  return {
    thinking: { type: 'enabled', budget_tokens: budget, display: displayOf(reasoning) },
    on: true,
  };
}

function budgetOf(effort: Effort, maxTokens: number): number {
  return Math.floor((maxTokens * (budgetShares.get(effort) ?? 0)) / 100);
}

/** Said explicitly, so that there is text to return. */
function displayOf({ hidden }: Reasoning): string {
  return hidden === true ? 'omitted' : 'summarized';
}
