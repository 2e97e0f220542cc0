/** `prompt_cache_retention: "24h"` asks for the longest life that cache marks can have (translation.md §1.1). */
import type { CacheMark, Conversation, Part } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import { inPlaceOf } from '../../core/places.ts';

/** The conversation with longer marks; noted where there are any. */
export function keepLonger(conversation: Conversation, notes: Notes): Conversation {
  let any = false;
  const longer = <T extends { readonly cacheUntilHere?: CacheMark }>(marked: T): T => {
    if (marked.cacheUntilHere === undefined || marked.cacheUntilHere.ttl !== undefined) {
      return marked;
    }
    any = true;
    return inPlaceOf(marked, { ...marked, cacheUntilHere: { ttl: '1h' } });
  };
  const part = (each: Part): Part =>
    longer(
      each.type === 'tool-result'
        ? inPlaceOf(each, { ...each, parts: each.parts.map(part) })
        : each,
    );
  const kept = {
    ...conversation,
    tools: conversation.tools.map(longer),
    system: conversation.system.map(part),
    turns: conversation.turns.map((turn) =>
      inPlaceOf(turn, { ...turn, parts: turn.parts.map(part) }),
    ),
  };
  if (any) notes.changed(['prompt_cache_retention'], 'a marked prompt is kept for one hour');
  return kept;
}
