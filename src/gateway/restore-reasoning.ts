/**
 * Gives turns of a translated conversation what their upstream wrote and the client did not bring back
 * (wire/translation.md §5.3; D3, D5, D6). Nothing is made up: a turn of which nothing is known stays.
 */
import type { Conversation, Origin, Part, ToolCallPart, Turn } from '../core/conversation.ts';
import {
  PromptTrail,
  withReasoning,
  type KeptTurn,
  type PlacedReasoning,
  type Recall,
} from '../core/kept-turn.ts';
import { inPlaceOf } from '../core/places.ts';

/** @param upstream who is asked now: what another one sealed is of no use to it. */
export function restoreReasoning(
  conversation: Conversation,
  upstream: Origin,
  recall: Recall,
): Conversation {
  const asked = new PromptTrail();
  let changed = false;
  const turns = conversation.turns.map((turn) => {
    asked.addTurn(turn);
    const restored = turn.role === 'assistant' ? restoreTurn(turn) : turn;
    if (restored !== turn) changed = true;
    return restored;
  });
  return changed ? { ...conversation, turns } : conversation;

  function restoreTurn(turn: Turn): Turn {
    const call = turn.parts.find((part) => part.type === 'tool-call');
    if (call === undefined) return turn;
    const kept = recall(call, asked);
    if (kept === undefined || kept.origin.dialect !== upstream.dialect) return turn;
    const parts = withCallExtras(withKept(turn.parts, kept, upstream), kept, upstream);
    return parts === turn.parts ? turn : { ...turn, parts };
  }
}

/** The last resort, where an upstream refuses what it or another one is said to have thought. */
export function withoutReasoning(conversation: Conversation): Conversation {
  const turns = conversation.turns.map((turn) =>
    turn.role === 'assistant'
      ? inPlaceOf(turn, { ...turn, parts: turn.parts.filter(({ type }) => type !== 'reasoning') })
      : turn,
  );
  return { ...conversation, turns };
}

/** The turn with the kept reasoning, unless it brings its own. */
function withKept(parts: readonly Part[], kept: KeptTurn, upstream: Origin): readonly Part[] {
  const usable = kept.reasoning.filter((placed) => isUsable(placed, upstream));
  if (usable.length === 0) return parts;
  const brought = parts.filter((part) => part.type === 'reasoning' && part.broken !== true);
  const sealed = usable.some(({ part }) => isSealedPart(part));
  if (brought.some((part) => !sealed || isSealedPart(part))) return parts;
  const others = parts.filter((part) => part.type !== 'reasoning');
  return withReasoning(others, usable);
}

/** Signatures of one messages provider hold at the others; chat providers take back their own. */
function isUsable({ part }: PlacedReasoning, upstream: Origin): boolean {
  const own = part.origin?.provider === upstream.provider;
  return own || upstream.dialect === 'anthropic-messages' || !isSealedPart(part);
}

function isSealedPart(part: Part): boolean {
  if (part.type !== 'reasoning') return false;
  const { signature, encrypted, extras } = part;
  return signature !== undefined || encrypted !== undefined || extras !== undefined;
}

function withCallExtras(parts: readonly Part[], kept: KeptTurn, upstream: Origin): readonly Part[] {
  const { origin, calls } = kept;
  if (calls.size === 0 || origin.provider !== upstream.provider) return parts;
  const lacking = (part: Part): part is ToolCallPart =>
    part.type === 'tool-call' && calls.has(part.id) && part.extras?.[origin.dialect] === undefined;
  if (!parts.some(lacking)) return parts;
  return parts.map((part) =>
    lacking(part)
      ? { ...part, extras: { ...part.extras, [origin.dialect]: calls.get(part.id) }, origin }
      : part,
  );
}
