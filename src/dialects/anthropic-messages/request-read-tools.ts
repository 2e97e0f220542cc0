/** Tools and the choice among them (wire/messages.md §5, wire/translation.md §2.2). */
import type { Json, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray, textOf } from './fields.ts';
import { isClientTool } from './head-tools.ts';
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

/** Tools that search among deferred tools have nothing to search once all are offered. */
const searchTool = /^tool_search_tool_/;

export function readTools(tools: Json | undefined, reading: Reading): readonly Tool[] {
  if (!isArray(tools)) return [];
  const read: Tool[] = [];
  let deferred = false;
  for (const tool of tools) {
    if (!isObject(tool)) continue;
    if (tool['defer_loading'] === true || searchTool.test(textOf(tool['type']))) deferred = true;
    if (!isPlaceholder(tool)) read.push(readTool(tool));
  }
  if (deferred) {
    reading.notes.changed(['tools'], 'tools to be loaded on demand are all offered at once');
  }
  return read;
}

/** A tool that only stands for others: a deferred one without a schema, or the search for them. */
function isPlaceholder(tool: JsonObject): boolean {
  if (searchTool.test(textOf(tool['type']))) return true;
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
