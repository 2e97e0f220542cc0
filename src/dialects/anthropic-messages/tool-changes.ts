/**
 * Tools that come and go in mid-conversation (beta `mid-conversation-tool-changes`). Other dialects
 * have one list of tools for the whole request: it holds what is offered in the end, and the
 * conversation says in words what changed where.
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray, textOf } from './fields.ts';

/** A tool that a message defines, and where. */
export interface AddedTool {
  readonly definition: JsonObject;
  readonly path: readonly (string | number)[];
}

export interface ToolChanges {
  readonly added: readonly AddedTool[];
  /** Names that are not offered any more when the messages end. */
  readonly removed: ReadonlySet<string>;
}

/** Everything that the messages say of the tools. */
export function readToolChanges(messages: Json | undefined): ToolChanges {
  const added: AddedTool[] = [];
  const removed = new Set<string>();
  (isArray(messages) ? messages : []).forEach((message, i) => {
    const content = isObject(message) ? message['content'] : undefined;
    if (!isArray(content)) return;
    content.forEach((block, j) => {
      if (!isObject(block) || !isToolChange(block)) return;
      const name = changedTool(block);
      if (block['type'] === 'tool_removal') removed.add(name);
      else {
        removed.delete(name);
        const tool = block['tool'];
        const definition = isObject(tool) ? tool['definition'] : undefined;
        const path = ['messages', i, 'content', j, 'tool', 'definition'];
        if (isObject(definition)) added.push({ definition, path });
      }
    });
  });
  return { added, removed };
}

export function isToolChange({ type }: JsonObject): boolean {
  return type === 'tool_addition' || type === 'tool_removal';
}

/** The change in words. */
export function describeChange(block: JsonObject): string {
  const what = `The tool "${changedTool(block)}"`;
  return block['type'] === 'tool_removal'
    ? `${what} is not available any more.`
    : `${what} is available from here on.`;
}

function changedTool({ tool }: JsonObject): string {
  if (!isObject(tool)) return '';
  const { definition, name, server_name: server } = tool;
  if (isObject(definition)) return textOf(definition['name']);
  const own = textOf(name);
  if (typeof server !== 'string') return own;
  return own === '' ? server : `${server}/${own}`;
}
