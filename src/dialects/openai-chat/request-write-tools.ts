/** Tools and the choice among them (wire/translation.md §2.2). */
import type { Conversation, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { allowedToolName } from '../tool-ids.ts';
import { writeCacheMark } from './cache-marks.ts';
import type { JsonMembers } from './fields.ts';
import { publishedTool } from './native-tools.ts';

/** Chat completions and nearly all its servers take names of this length. */
export const maxToolName = 64;

export function writeTools(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const offered = offeredTools(conversation, notes);
  if (offered.length === 0) return {};
  const { toolChoice, parallelTools } = conversation;
  if (toolChoice?.type === 'none' && !traits.toolChoice) {
    notes.changed(['tool_choice'], 'the tools are not offered, as the model cannot be held back');
    return {};
  }
  return {
    tools: offered.map((tool) => writeTool(tool, traits)),
    ...writeChoice(toolChoice, { offered, traits, notes }),
    ...writeParallel(parallelTools, traits, notes),
  };
}

/** The tools that the model gets to see, the ones of other dialects in their function form. */
function offeredTools(conversation: Conversation, notes: Notes): readonly Tool[] {
  return conversation.tools
    .map((tool, i) =>
      tool.native === undefined ? tool : usableNative(tool, i, { conversation, notes }),
    )
    .filter((tool) => tool !== undefined);
}

interface ToolSetting {
  readonly conversation: Conversation;
  readonly notes: Notes;
}

/** A provider-defined tool as a function that the client runs; undefined when it is left out. */
function usableNative(
  tool: Tool,
  i: number,
  { conversation, notes }: ToolSetting,
): Tool | undefined {
  if (tool.native?.dialect === 'openai-chat') return tool;
  const type = String(tool.native?.value['type'] ?? '');
  const published = publishedTool(type);
  if (published !== undefined) {
    notes.changed(['tools', i, 'type'], 'offered as an ordinary function tool');
    return { name: tool.name, ...published };
  }
  if (type.startsWith('web_search_') && isOptional(tool, conversation)) {
    notes.lost(['tools', i, 'type'], 'the model has no web search');
    return undefined;
  }
  throw unsupported(['tools', i, 'type'], `This model has no tool of the type '${type}'.`);
}

/** Some agents always list web search among their own tools; they work without it. */
function isOptional(tool: Tool, { tools, toolChoice }: Conversation): boolean {
  if (toolChoice?.type === 'tool' && toolChoice.name === tool.name) return false;
  return tools.some((other) => other.native === undefined);
}

function writeTool(tool: Tool, traits: UpstreamTraits): JsonObject {
  if (tool.native !== undefined) return tool.native.value;
  const { name, description, schema, strict, cacheUntilHere } = tool;
  const described = {
    name: allowedToolName(name, maxToolName),
    ...(description === undefined || description === '' ? {} : { description }),
  };
  const mark =
    traits.cacheMarks && cacheUntilHere !== undefined ? writeCacheMark(cacheUntilHere) : {};
  if (tool.freeText === true) return { type: 'custom', custom: described, ...mark };
  return {
    type: 'function',
    function: {
      ...described,
      parameters: objectSchema(schema),
      ...(strict === undefined ? {} : { strict }),
    },
    ...mark,
  };
}

/** Some engines refuse an object schema without `properties` (B8). */
function objectSchema(schema: JsonObject): JsonObject {
  const typed = schema['type'] === undefined ? { type: 'object', ...schema } : schema;
  if (typed['type'] !== 'object' || isObject(typed['properties'])) return typed;
  return { ...typed, properties: {} };
}

interface ChoiceSetting {
  readonly offered: readonly Tool[];
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

function writeChoice(
  choice: ToolChoice | undefined,
  { offered, traits, notes }: ChoiceSetting,
): JsonMembers {
  if (choice === undefined) return {};
  if (!traits.toolChoice) {
    if (choice.type !== 'auto') notes.lost(['tool_choice'], 'the model chooses by itself');
    return {};
  }
  switch (choice.type) {
    case 'auto':
    case 'none':
    case 'required':
      return { tool_choice: choice.type };
    case 'tool': {
      const tool = offered.find(({ name }) => name === choice.name);
      return tool === undefined ? {} : { tool_choice: writeNamed(tool) };
    }
    case 'allowed': {
      const tools = offered.filter(({ name }) => choice.names.includes(name)).map(writeNamed);
      return {
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } },
      };
    }
    default:
      return choice satisfies never;
  }
}

function writeNamed(tool: Tool): JsonObject {
  const name = allowedToolName(tool.name, maxToolName);
  return tool.freeText === true
    ? { type: 'custom', custom: { name } }
    : { type: 'function', function: { name } };
}

function writeParallel(
  parallelTools: boolean | undefined,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  if (parallelTools !== false) return {};
  if (traits.parallelFlag) return { parallel_tool_calls: false };
  notes.lost(['tool_choice', 'disable_parallel_tool_use'], 'the model may call several tools');
  return {};
}
