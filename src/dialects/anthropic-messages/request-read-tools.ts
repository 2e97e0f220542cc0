/** Tools and the choice among them (wire/messages.md §5, wire/translation.md §2.2). */
import type { Json, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray, textOf } from './fields.ts';
import { isClientTool } from './head-tools.ts';
import { readToolChanges } from './tool-changes.ts';
import { nativeExtras, readMark, without, type Reading } from './request-reading.ts';

const toolKeys: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
  // All tools are offered at once, so nothing is deferred.
  'defer_loading',
]);

/** It keeps the search for tools alive in clients (clients.md §2.7). */
const placeholder = 'DeferredToolPlaceholder';
/** Tools that search among deferred tools have nothing to search once all are offered. */
const searchTool = /^tool_search_tool_/;

/** What the client declares, with what it adds and without what it removes along the way. */
export function readTools({ tools, messages }: JsonObject, reading: Reading): readonly Tool[] {
  const read = new Map<string, Tool>();
  let deferred = false;
  for (const tool of isArray(tools) ? tools : []) {
    if (!isObject(tool)) continue;
    if (tool['defer_loading'] === true || searchTool.test(textOf(tool['type']))) deferred = true;
    if (!isPlaceholder(tool)) keep(read, readTool(tool));
  }
  if (deferred) {
    reading.notes.changed(['tools'], 'tools to be loaded on demand are all offered at once');
  }
  const { added, removed } = readToolChanges(messages);
  for (const { definition } of added)
    if (!isPlaceholder(definition)) keep(read, readTool(definition));
  for (const name of removed) read.delete(name);
  return [...read.values()];
}

/** A name that is declared again stays at its place. */
function keep(tools: Map<string, Tool>, tool: Tool): void {
  tools.set(tool.name, tool);
}

/** A tool that only stands for others: a deferred one without a schema, or the search for them. */
function isPlaceholder(tool: JsonObject): boolean {
  if (searchTool.test(textOf(tool['type']))) return true;
  if (tool['name'] === placeholder && tool['defer_loading'] === true) return true;
  return tool['defer_loading'] === true && isClientTool(tool) && !isObject(tool['input_schema']);
}

function readTool(tool: JsonObject): Tool {
  const { name, type, description, input_schema: schema, strict } = tool;
  if (!isClientTool(tool)) {
    return {
      name: typeof name === 'string' ? name : textOf(type),
      schema: {},
      native: { dialect: 'anthropic-messages', value: tool },
    };
  }
  return {
    name: textOf(name),
    ...(typeof description === 'string' ? { description } : {}),
    schema: isObject(schema) ? schema : {},
    ...(typeof strict === 'boolean' ? { strict } : {}),
    ...readMark(tool),
    ...nativeExtras(without(tool, toolKeys)),
  };
}

export function readToolChoice(choice: Json | undefined): ToolChoice | undefined {
  if (!isObject(choice)) return undefined;
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return { type: choice['type'] };
    case 'any':
      return { type: 'required' };
    case 'tool':
      return { type: 'tool', name: textOf(choice['name']) };
    default:
      return undefined;
  }
}
