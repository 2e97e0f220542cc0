/**
 * Cache marks for clients that set none: on the last tool, the last instruction and the last two turns of the
 * user, as Anthropic recommends for conversations that grow. That is four, the most that a request may have. A
 * client's own marks hold: then nothing is added.
 */
import type { Conversation, Part, PartBase, Turn } from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { withPathOf } from '../../../core/notes.ts';
import type { JsonEdit } from '../../../json/edit.ts';
import type { JsonSource } from '../../../core/client-body.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';

/** The conversation with marks; the same where it has any. */
export function withAutoMarks(conversation: Conversation): Conversation {
  if (hasMarks(conversation)) return conversation;
  const { tools, system, turns } = conversation;
  return {
    ...conversation,
    tools: markedLast(tools, ({ native }) => native === undefined),
    system: markedLast(system, isMarkable),
    turns: markedTurns(turns),
  };
}

function hasMarks({ tools, system, turns, extras }: Conversation): boolean {
  const isMarked = (each: PartBase): boolean => each.cacheUntilHere !== undefined;
  const holdsMark = (part: Part): boolean =>
    isMarked(part) || (part.type === 'tool-result' && part.parts.some(isMarked));
  return (
    extras['anthropic-messages']?.['cache_control'] !== undefined ||
    tools.some(isMarked) ||
    system.some(isMarked) ||
    turns.some(({ parts }) => parts.some(holdsMark))
  );
}

function markedTurns(turns: readonly Turn[]): readonly Turn[] {
  const marked = [...turns];
  let left = 2;
  for (let i = turns.length - 1; i >= 0 && left > 0; i -= 1) {
    const turn = turns[i];
    if (turn?.role !== 'user' || !turn.parts.some(isMarkable)) continue;
    marked[i] = withPathOf(turn, { ...turn, parts: markedLast(turn.parts, isMarkable) });
    left -= 1;
  }
  return marked;
}

/** Empty texts are not sent, and a mark would go with them. */
function isMarkable(part: Part): boolean {
  if (part.type === 'text') return part.text.trim() !== '';
  return part.type === 'media' || part.type === 'tool-result';
}

function markedLast<T extends PartBase>(
  all: readonly T[],
  fits: (each: T) => boolean,
): readonly T[] {
  const at = all.findLastIndex(fits);
  const last = all[at];
  return last === undefined ? all : all.with(at, withPathOf(last, { ...last, cacheUntilHere: {} }));
}

// Cache marks for relayed requests of clients that set none.

const mark = { type: 'ephemeral' };
const markText = JSON.stringify(mark);
const reservedMarks = 2;

/** On tools, instructions and the last two messages of the user; none where the client set one. */
export function autoMarkEdits(source: JsonSource, { traits, cache }: Ask): readonly JsonEdit[] {
  if (cache !== 'auto' || !traits.cacheMarks || source.has('cacheControl')) return [];
  const { tools, system, messages } = source.value;
  return [
    ...toolEdits(tools),
    ...contentEdits(system, ['system']),
    ...(isList(messages) ? messagesEdits(messages) : []),
  ];
}

function toolEdits(tools: Json | undefined): readonly JsonEdit[] {
  if (!isList(tools)) return [];
  const last = tools.findLastIndex((tool) => isObject(tool));
  return last < 0 ? [] : [{ path: ['tools', last, 'cache_control'], text: markText }];
}

function messagesEdits(messages: readonly Json[]): readonly JsonEdit[] {
  const edits: JsonEdit[] = [];
  let left = reservedMarks;
  const system = messages.findLastIndex(
    (each) => isObject(each) && (each['role'] === 'system' || each['role'] === 'developer'),
  );
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!isObject(message)) continue;
    const wanted = i === system || (message['role'] === 'user' && left > 0);
    if (!wanted) continue;
    const found = contentEdits(message['content'], ['messages', i, 'content']);
    edits.push(...found);
    if (i !== system && found.length > 0) left -= 1;
  }
  return edits;
}

/** A text becomes one block, since only blocks can be marked. */
function contentEdits(content: Json | undefined, path: JsonEdit['path']): readonly JsonEdit[] {
  if (typeof content === 'string') {
    if (content.trim() === '') return [];
    const block: JsonObject = { type: 'text', text: content, cache_control: mark };
    return [{ path, text: JSON.stringify([block]) }];
  }
  if (!isList(content)) return [];
  const last = content.findLastIndex(
    (block) =>
      isObject(block) &&
      !(block.type === 'text' && typeof block.text === 'string' && block.text.trim() === ''),
  );
  return last < 0 ? [] : [{ path: [...path, last, 'cache_control'], text: markText }];
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
