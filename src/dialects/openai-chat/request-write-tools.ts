/** Tools and the choice among them (wire/translation.md §2.2). */
import type { Conversation, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { Steps } from '../../core/steps.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { toolsOf } from '../history-tools.ts';
import type { JsonTool } from '../json-tool.ts';
import { sentToolName } from '../tool-ids.ts';
import { cleanSchema } from '../tool-schema.ts';
import { writeCacheMark } from './cache-marks.ts';
import type { JsonMembers } from './fields.ts';
import { publishedTool } from './native-tools.ts';
import { isStrict } from './strict-schema.ts';
import { searchesByItself, writeWebSearch } from './web-search.ts';

/** Chat completions and nearly all its servers take names of this length. */
export const maxToolName = 64;

interface ToolSetting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

export function* writeTools(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): Steps<JsonMembers> {
  const setting = { conversation, traits, notes };
  const { tools, search } = offeredTools(setting);
  if (tools.length === 0) return search;
  const { toolChoice, parallelTools } = conversation;
  if (toolChoice?.type === 'none' && !traits.toolChoice) {
    notes.changed(['tool_choice'], 'the tools are not offered, as the model cannot be held back');
    return search;
  }
  const offered = tools.map(({ tool }) => tool);
  const written: JsonObject[] = [];
  for (const each of tools) written.push(yield* writeTool(each, setting));
  return {
    ...search,
    tools: written,
    ...writeChoice(toolChoice, { ...setting, offered }),
    ...writeParallel(parallelTools, traits, notes),
  };
}

/** The forced tool whose input is the answer. */
export function* writeJsonTool(
  { name, description, schema }: JsonTool,
  { schemaRules }: UpstreamTraits,
): Steps<JsonMembers> {
  const parameters =
    schemaRules === undefined ? schema : (yield* cleanSchema(schema, schemaRules)).schema;
  return {
    tools: [{ type: 'function', function: { name, description, parameters } }],
    tool_choice: { type: 'function', function: { name } },
  };
}

/** A tool and its place among the client's tools. */
interface OfferedTool {
  readonly tool: Tool;
  readonly path: FieldPath;
}

interface Offer {
  readonly tools: readonly OfferedTool[];
  /** Members that let the model search the web, where a tool asked for that. */
  readonly search: JsonMembers;
}

/** The tools that the model gets to see, the ones of other dialects in their function form. */
function offeredTools(setting: ToolSetting): Offer {
  const { conversation, traits, notes } = setting;
  const tools: OfferedTool[] = [];
  let search: JsonMembers = {};
  toolsOf(conversation, traits, notes).forEach((tool, i) => {
    const path = ['tools', i];
    if (tool.native === undefined || tool.native.dialect === 'openai-chat') {
      tools.push({ tool, path });
    } else if (isSearch(tool) && searchesByItself(traits)) {
      search = writeWebSearch(tool.native.value, traits, { notes, path });
    } else {
      const usable = usableNative(tool, path, setting);
      if (usable !== undefined) tools.push({ tool: usable, path });
    }
  });
  return { tools, search };
}

/** A provider-defined tool as a function that the client runs; undefined when it is left out. */
function usableNative(
  tool: Tool,
  path: FieldPath,
  { conversation, notes }: ToolSetting,
): Tool | undefined {
  const type = typeOf(tool);
  const published = publishedTool(type);
  if (published !== undefined) {
    notes.changed([...path, 'type'], 'offered as an ordinary function tool');
    return { name: tool.name, ...published };
  }
  if (isSearch(tool) && isOptional(tool, conversation)) {
    notes.lost([...path, 'type'], 'the model has no web search');
    return undefined;
  }
  throw unsupported([...path, 'type'], `This model has no tool of the type '${type}'.`);
}

function typeOf({ native }: Tool): string {
  return String(native?.value['type'] ?? '');
}

function isSearch(tool: Tool): boolean {
  return typeOf(tool).startsWith('web_search_');
}

/** Some agents always list web search among their own tools; they work without it. */
function isOptional(tool: Tool, { tools, toolChoice }: Conversation): boolean {
  if (toolChoice?.type === 'tool' && toolChoice.name === tool.name) return false;
  return tools.some((other) => other.native === undefined);
}

function* writeTool({ tool, path }: OfferedTool, setting: ToolSetting): Steps<JsonObject> {
  if (tool.native !== undefined) return tool.native.value;
  const { traits, conversation } = setting;
  const { name, description, cacheUntilHere } = tool;
  const described = {
    name: sentToolName(name, maxToolName, conversation.tools),
    ...(description === undefined || description === '' ? {} : { description }),
  };
  const mark =
    traits.cacheMarks && cacheUntilHere !== undefined ? writeCacheMark(cacheUntilHere) : {};
  if (tool.freeText === true) return { type: 'custom', custom: described, ...mark };
  return {
    type: 'function',
    function: {
      ...described,
      parameters: yield* writeSchema({ tool, path }, setting),
      ...writeStrict({ tool, path }, setting),
    },
    ...mark,
  };
}

function* writeSchema(
  { tool, path }: OfferedTool,
  { traits, notes }: ToolSetting,
): Steps<JsonObject> {
  const schema = objectSchema(tool.schema);
  if (traits.schemaRules === undefined) return schema;
  const { schema: clean, removed } = yield* cleanSchema(schema, traits.schemaRules);
  if (removed.length > 0) {
    notes.changed([...path, 'input_schema'], `the model knows no ${removed.join(', ')}`);
  }
  return clean;
}

/** Strict mode refuses schemas with optional properties: better a loose tool than none. */
function writeStrict({ tool, path }: OfferedTool, { traits, notes }: ToolSetting): JsonMembers {
  const { strict, schema } = tool;
  if (strict !== true) return strict === undefined ? {} : { strict };
  if (traits.schemaRules === undefined && isStrict(schema)) return { strict };
  notes.lost([...path, 'strict'], 'the model does not enforce this schema');
  return {};
}

/** Some engines refuse an object schema without `properties` (B8). */
function objectSchema(schema: JsonObject): JsonObject {
  const typed = schema['type'] === undefined ? { type: 'object', ...schema } : schema;
  if (typed['type'] !== 'object' || isObject(typed['properties'])) return typed;
  return { ...typed, properties: {} };
}

interface ChoiceSetting extends ToolSetting {
  readonly offered: readonly Tool[];
}

function writeChoice(
  choice: ToolChoice | undefined,
  { offered, conversation, traits, notes }: ChoiceSetting,
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
      return tool === undefined ? {} : { tool_choice: writeNamed(tool, conversation) };
    }
    case 'allowed': {
      const tools = offered
        .filter(({ name }) => choice.names.includes(name))
        .map((tool) => writeNamed(tool, conversation));
      return {
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } },
      };
    }
    default:
      return choice satisfies never;
  }
}

function writeNamed(tool: Tool, { tools }: Conversation): JsonObject {
  const name = sentToolName(tool.name, maxToolName, tools);
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
  notes.changed(['tool_choice', 'disable_parallel_tool_use'], 'only the first call is kept');
  return {};
}
