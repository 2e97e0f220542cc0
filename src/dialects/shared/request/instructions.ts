/** Instructions of a conversation, for upstreams that take them in fewer places than the client sent them. */
import type { Conversation, Part, Turn } from '../../../core/conversation.ts';
import { type Notes, pathOf, withPathOf } from '../../../core/notes.ts';

/**
 * Claude Code puts a text with a changing nonce first in its instructions: no prompt prefix would
 * ever be cached.
 */
const billingHeader = 'x-anthropic-billing-header:';

/**
 * Instructions before the first answer are in front, where they stay in later requests; those after it are left to
 * be sent at their position, or the beginning of the prompt would change with each turn.
 */
export function withInstructionsInFront(
  { system, turns }: Conversation,
  notes: Notes,
): Pick<Conversation, 'system' | 'turns'> {
  const answer = turns.findIndex(({ role }) => role === 'assistant');
  const begun = answer === -1 ? turns : turns.slice(0, answer);
  if (!begun.some(isInstructionTurn)) return { system, turns };
  const front = [...system];
  begun.forEach((turn, i) => {
    if (!isInstructionTurn(turn)) return;
    notes.changed(pathOf(turn, ['messages', i]), frontNote);
    front.push(...turn.parts);
  });
  const asked = begun.filter((turn) => !isInstructionTurn(turn));
  const kept = withPathOf(turns, [...asked, ...turns.slice(begun.length)]);
  return { system: front, turns: kept };
}

function isInstructionTurn({ role }: Turn): boolean {
  return role === 'system';
}

/** False for a line of Claude Code that changes with each call. */
export function isInstruction(part: Part): boolean {
  return part.type !== 'text' || !part.text.startsWith(billingHeader);
}

/** A request needs a turn: without one, the last instruction becomes it. */
export function withQuestion(
  { system, turns }: Pick<Conversation, 'system' | 'turns'>,
  notes: Notes,
): Pick<Conversation, 'system' | 'turns'> {
  const last = system.at(-1);
  if (turns.length > 0 || last === undefined) return { system, turns };
  notes.changed(pathOf(last, ['messages']), 'the last instruction is sent as the user');
  return { system: system.slice(0, -1), turns: [{ role: 'user', parts: [last] }] };
}

/** Instructions as a text of the user. */
export function taggedInstructions(texts: readonly string[]): string {
  return `<system>\n${texts.join('\n\n')}\n</system>`;
}

/** The note of `withInstructionsInFront`. */
export const frontNote = 'instructions stand in one message in front for this model';

/** The note of a request with `taggedInstructions`. */
export const taggedNote = 'instructions after the first answer are sent in a user message';
