/** How much the model may think, in the members that its maker defines (`additionalModelRequestFields`). */
import type { Conversation } from '../../../core/conversation.ts';
import { type Notes, pathOf, withPath } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonMembers } from '../../../json/value.ts';
import { writeThinking as writeClaudeThinking } from '../../anthropic-messages/request/thinking.ts';
import { namedEffort, wantedEffort } from '../../shared/request/effort.ts';

interface ThinkingQuestion {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly maxTokens: number;
}

export interface WrittenThinking {
  /** The model thinks: the API then refuses changed sampling and forced calls. */
  readonly on: boolean;
  /** Members of `outputConfig`. */
  readonly config: JsonMembers;
  /** Members of the model's own request. */
  readonly more: JsonMembers;
  /** The model refuses a cap on its output. */
  readonly unbounded?: true;
}

const nothing: WrittenThinking = { on: false, config: {}, more: {} };

export function writeThinking(question: ThinkingQuestion, notes: Notes): WrittenThinking {
  const { traits } = question;
  const { reasoningControl, reasoningConfig } = traits;
  if (reasoningControl === 'effort' || reasoningConfig === true) {
    return writeEffort(question.conversation, traits, notes);
  }
  const conversation = withNamedReasoning(question.conversation);
  const { on, thinking, effort } = writeClaudeThinking({ ...question, conversation }, notes);
  return {
    on,
    config: effort === undefined ? {} : { effort },
    more: thinking === undefined ? {} : { thinking },
  };
}

/** Reasoning without a path comes from a messages client. The writer for Claude expects the path of a chat client. */
function withNamedReasoning(conversation: Conversation): Conversation {
  const { reasoning } = conversation;
  if (reasoning === undefined) return conversation;
  const path = pathOf(reasoning, ['thinking']);
  return { ...conversation, reasoning: withPath({ ...reasoning }, path) };
}

/** An effort: as a member for OpenAI's models, in a configuration for Nova, which does not reason without it. */
function writeEffort(
  { reasoning }: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenThinking {
  const wanted = reasoning === undefined ? undefined : wantedEffort(reasoning);
  if (reasoning === undefined || wanted === undefined) return nothing;
  if (traits.reasoningConfig === true && wanted === 'none') return nothing;
  const { effort } = namedEffort({ reasoning, wanted, traits, notes });
  if (effort === undefined) return nothing;
  if (traits.reasoningConfig !== true) return { ...nothing, more: { reasoning_effort: effort } };
  const more = { reasoningConfig: { type: 'enabled', maxReasoningEffort: effort } };
  if (effort !== 'high') return { ...nothing, more };
  const path = pathOf(reasoning, ['max_tokens']);
  notes.changed(path, 'at this effort the model takes no cap on its output');
  return { on: true, config: {}, more, unbounded: true };
}
