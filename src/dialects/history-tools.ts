/**
 * Servers of the Bedrock kind refuse a history with calls when no tools are offered
 * (wire/translation.md §1.5). Only there definitions are made up.
 */
import type { Conversation, Tool } from '../core/conversation.ts';
import type { Notes } from '../core/notes.ts';
import type { UpstreamTraits } from '../core/traits.ts';

/** The tools to offer: the client's, else a stand-in for each tool that was called. */
export function toolsOf(
  { tools, turns }: Conversation,
  { historyNeedsTools }: UpstreamTraits,
  notes: Notes,
): readonly Tool[] {
  if (historyNeedsTools !== true || tools.length > 0) return tools;
  const names = new Set<string>();
  for (const { parts } of turns) {
    for (const part of parts) if (part.type === 'tool-call') names.add(part.name);
  }
  if (names.size > 0) notes.changed(['tools'], 'tools of earlier calls are declared again');
  return [...names].map((name) => ({ name, schema: { type: 'object', properties: {} } }));
}
