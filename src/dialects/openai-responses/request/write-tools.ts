/** Writes tools and the tool choice for a Responses server. */
import type { Conversation, Tool, ToolChoice } from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { isObject, type JsonObject, type JsonMembers, isArray } from '../../../json/value.ts';
import {
  isOptional,
  isSearch,
  isStrict,
  objectSchema,
  schemaPath,
  typeOf,
} from '../../shared/request/offered-tools.ts';
import { writeParallel } from '../../openai-chat/request/write-tools.ts';
import { describedTool, grammarOf } from '../../shared/request/responses-fields.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { publishedTool, searchRefusal, toolsOf } from '../../shared/request/tools.ts';
import { sentToolName } from '../../shared/tool-names.ts';
import { dialectId } from '../items.ts';

export const maxToolName = 64;

interface ToolSetting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** @throws GatewayError `invalid_request` for a tool that this upstream cannot offer. */
export function writeTools(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const setting = { conversation, traits, notes };
  const offered: Tool[] = [];
  const written: JsonObject[] = [];
  toolsOf(conversation, traits, notes).forEach((tool, i) => {
    const item = writeTool(tool, pathOf(tool, ['tools', i]), setting);
    if (item === undefined) return;
    offered.push(tool);
    written.push(item);
  });
  if (written.length === 0) return {};
  const { toolChoice } = conversation;
  if (toolChoice?.type === 'none' && !traits.toolChoice) {
    notes.changed(
      pathOf(toolChoice, ['tool_choice']),
      'the tools are not sent: the model does not support tool_choice none',
    );
    return {};
  }
  return {
    tools: written,
    ...writeChoice(toolChoice, offered, setting),
    ...writeParallel(conversation, traits, notes),
  };
}

/** Undefined for a tool that is omitted. */
function writeTool(tool: Tool, path: FieldPath, setting: ToolSetting): JsonObject | undefined {
  const { native } = tool;
  if (native === undefined) return writeOwnTool(tool, path, setting);
  if (native.dialect === dialectId) return native.value;
  const { conversation, traits, notes } = setting;
  const type = typeOf(tool);
  const published = publishedTool(type);
  if (published !== undefined) {
    notes.changed([...path, 'type'], 'offered as an ordinary function tool');
    return writeOwnTool({ name: tool.name, ...published }, path, setting);
  }
  if (!isSearch(tool)) {
    throw unsupported([...path, 'type'], `This model has no tool of the type '${type}'.`);
  }
  if (traits.serverTools === true && traits.webSearch === 'tool') {
    return writeSearch(native.value, path, notes);
  }
  // Chat clients request a search by an option.
  const at = native.dialect === 'openai-chat' ? path : [...path, 'type'];
  if (!isOptional(tool, conversation)) throw searchRefusal(at);
  notes.lost(at, 'the model has no web search');
  return undefined;
}

function writeOwnTool(tool: Tool, path: FieldPath, setting: ToolSetting): JsonObject {
  const { conversation, traits, notes } = setting;
  const { name, freeText } = tool;
  const isCustom = freeText === true && traits.customTools === true;
  const description = isCustom ? tool.description : describedTool(tool, notes);
  const described = {
    name: sentToolName(name, maxToolName, conversation.tools),
    ...(description === undefined || description === '' ? {} : { description }),
  };
  if (isCustom) {
    const grammar = grammarOf(tool);
    const format = grammar === undefined ? {} : { format: { type: 'grammar', ...grammar } };
    return { type: 'custom', ...described, ...format };
  }
  return {
    type: 'function',
    ...described,
    parameters: writeSchema(tool, path, setting),
    strict: isEnforced(tool, path, setting),
  };
}

function writeSchema(tool: Tool, path: FieldPath, { traits, notes }: ToolSetting): JsonObject {
  const whole = objectSchema(tool.schema);
  if (traits.schemaRules === undefined) return whole;
  const { schema: clean, removed } = cleanSchema(whole, traits.schemaRules);
  if (removed.length > 0) {
    notes.changed(schemaPath(tool, path), `the model knows no ${removed.join(', ')}`);
  }
  return clean;
}

/** `strict` is always written. Without it a server may enforce the schema and so make optional properties required. */
function isEnforced(tool: Tool, path: FieldPath, { traits, notes }: ToolSetting): boolean {
  const { strict, schema } = tool;
  if (strict !== true) return false;
  if (traits.schemaRules === undefined && isStrict(schema)) return true;
  const where = [...schemaPath(tool, path).slice(0, -1), 'strict'];
  notes.lost(where, 'the model does not enforce this schema');
  return false;
}

const carried: ReadonlySet<string> = new Set([
  'type',
  'name',
  'allowed_domains',
  'user_location',
  'search_context_size',
  'cache_control',
]);

/** The search of a messages or chat client as the provider's own. */
function writeSearch(tool: JsonObject, path: FieldPath, notes: Notes): JsonObject {
  for (const [key, value] of Object.entries(tool)) {
    if (value === null || value === undefined || carried.has(key)) continue;
    notes.lost([...path, key], 'the search of this model has no such setting');
  }
  const { allowed_domains: domains, user_location: location, search_context_size: size } = tool;
  const approximate =
    isObject(location) && isObject(location['approximate']) ? location['approximate'] : {};
  return {
    type: 'web_search',
    ...(isArray(domains) && domains.length > 0 ? { filters: { allowed_domains: domains } } : {}),
    ...(isObject(location) ? { user_location: located(location, approximate) } : {}),
    ...(typeof size === 'string' ? { search_context_size: size } : {}),
  };
}

/** Chat completions nest the location one level deeper. */
function located(
  { approximate: _inner, ...location }: JsonObject,
  approximate: JsonObject,
): JsonObject {
  return { ...location, ...approximate };
}

function writeChoice(
  choice: ToolChoice | undefined,
  offered: readonly Tool[],
  setting: ToolSetting,
): JsonMembers {
  const { traits, notes } = setting;
  if (choice === undefined) return {};
  if (!traits.toolChoice) {
    if (choice.type !== 'auto')
      notes.lost(pathOf(choice, ['tool_choice']), 'the model chooses by itself');
    return {};
  }
  switch (choice.type) {
    case 'auto':
    case 'none':
    case 'required':
      return { tool_choice: choice.type };
    case 'tool': {
      const tool = offered.find(({ name }) => name === choice.name);
      return tool === undefined ? {} : { tool_choice: writeNamed(tool, setting) };
    }
    case 'allowed': {
      const tools = offered
        .filter(({ name }) => choice.names.includes(name))
        .map((tool) => writeNamed(tool, setting));
      return { tool_choice: { type: 'allowed_tools', mode: choice.mode, tools } };
    }
    default:
      return choice satisfies never;
  }
}

function writeNamed(tool: Tool, { conversation, traits }: ToolSetting): JsonObject {
  if (tool.native !== undefined && publishedTool(typeOf(tool)) === undefined) {
    return { type: 'web_search' };
  }
  const name = sentToolName(tool.name, maxToolName, conversation.tools);
  const isCustom = tool.freeText === true && traits.customTools === true;
  return { type: isCustom ? 'custom' : 'function', name };
}
