/** Writes tools and the tool choice. */
import type { Conversation, Tool, ToolChoice } from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../../json/value.ts';
import { searchRefusal, toolsOf } from '../../shared/request/tools.ts';
import { sentToolName } from '../../shared/tool-names.ts';
import { canDemandCalls, type JsonTool } from '../../shared/request/demanded-call.ts';
import { describedTool } from '../../shared/request/responses-fields.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { maxToolName, type Writing } from './write-messages.ts';

/** `tools` and `tool_choice`, each only if it is needed. */
export function writeTools(conversation: Conversation, writing: Writing): JsonObject {
  const offered = offeredTools(conversation, writing);
  if (offered.length === 0) return {};
  const choice = writeChoice(conversation, writing);
  const tools: JsonMembers[] = [];
  for (const [i, tool] of offered.entries()) {
    tools.push(writeTool(tool, pathOf(tool, ['tools', i]), writing));
  }
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

/** The forced tool whose input is the answer. */
export function writeJsonTool(
  { name, description, schema }: JsonTool,
  output: Conversation['output'],
  { notes, traits }: Writing,
): JsonObject {
  notes.changed(pathOf(output, ['response_format']), 'asked for as the input of a tool');
  const clean =
    traits.schemaRules === undefined ? schema : cleanSchema(schema, traits.schemaRules).schema;
  return {
    tools: [{ name, description, input_schema: clean }],
    tool_choice: { type: 'tool', name, disable_parallel_tool_use: true },
  };
}

/** If the client allows only some tools, only those are offered: this dialect has no other way. */
function offeredTools(conversation: Conversation, { traits, notes }: Writing): readonly Tool[] {
  const tools = toolsOf(conversation, traits, notes).filter((tool) => {
    if (!isOmitted(tool, conversation, traits)) return true;
    notes.lost([...pathOf(tool, ['tools']), 'type'], 'the model has no web search');
    return false;
  });
  const { toolChoice } = conversation;
  if (toolChoice?.type !== 'allowed') return tools;
  const { names } = toolChoice;
  notes.changed(pathOf(toolChoice, ['tool_choice']), 'only the allowed tools are offered');
  return tools.filter((tool) => names.includes(tool.name));
}

/** Agents of the Responses API always offer a web search in addition to their own tools; they work without it. */
function isOmitted(tool: Tool, conversation: Conversation, traits: UpstreamTraits): boolean {
  if (tool.native?.dialect !== 'openai-responses' || searches(traits)) return false;
  const { toolChoice, tools } = conversation;
  if (toolChoice?.type === 'tool' && toolChoice.name === tool.name) return false;
  return tools.some(({ native }) => native === undefined);
}

function searches({ serverTools, webSearch }: UpstreamTraits): boolean {
  return serverTools === true && webSearch === 'tool';
}

/** @throws GatewayError `invalid_request` for tools that another provider defines or runs. */
function writeTool(tool: Tool, path: FieldPath, writing: Writing): JsonMembers {
  const { marks } = writing;
  if (tool.native !== undefined) {
    if (tool.native.dialect === 'anthropic-messages') return { ...tool.native.value };
    return writeForeignTool(tool, path, writing);
  }
  const description = describedTool(tool, writing.notes);
  const written: JsonMembers = {
    name: sentToolName(tool.name, maxToolName, writing.tools),
    ...(description === undefined || description === '' ? {} : { description }),
    input_schema: writeSchema(tool, path, writing),
    ...tool.extras?.['anthropic-messages'],
  };
  if (tool.strict === true) writeStrict(written, tool, path, writing);
  return marks.prefix(written, tool);
}

/** @throws GatewayError for tools of other providers, except the search that this one has as well. */
function writeForeignTool(tool: Tool, path: FieldPath, { traits, notes }: Writing): JsonMembers {
  const options = tool.native?.value ?? {};
  if (tool.native?.dialect === 'openai-responses')
    return writeSearch(tool, path, { traits, notes });
  if (options['type'] !== 'web_search_options') {
    throw unsupported([...path, 'type'], 'This model has no tool of this type.');
  }
  if (!searches(traits)) throw searchRefusal(['web_search_options']);
  const { user_location: location, search_context_size: size } = options;
  if (size !== undefined && size !== null && size !== 'medium') {
    notes.lost(['web_search_options', 'search_context_size'], 'the search has no such setting');
  }
  const approximate = isObject(location) ? location['approximate'] : undefined;
  return {
    type: 'web_search_20250305',
    name: tool.name,
    ...(isObject(approximate) ? { user_location: { type: 'approximate', ...approximate } } : {}),
  };
}

/** The search of the Responses API. */
function writeSearch(
  tool: Tool,
  path: FieldPath,
  { traits, notes }: Pick<Writing, 'traits' | 'notes'>,
): JsonMembers {
  if (!searches(traits)) throw searchRefusal([...path, 'type']);
  const { type: _, filters, user_location: location, ...others } = tool.native?.value ?? {};
  const { allowed_domains: domains, ...otherFilters } = isObject(filters) ? filters : {};
  noteUnset(others, path, notes);
  noteUnset(otherFilters, [...path, 'filters'], notes);
  return {
    type: 'web_search_20250305',
    name: tool.name,
    ...(isArray(domains) ? { allowed_domains: domains } : {}),
    ...(isObject(location) ? { user_location: { ...location, type: 'approximate' } } : {}),
  };
}

/** What the Responses API does without these settings, by its published schema. */
const usualSearch: JsonObject = {
  search_context_size: 'medium',
  external_web_access: true,
  search_content_types: ['text'],
};

function noteUnset(settings: JsonObject, path: FieldPath, notes: Notes): void {
  for (const [key, value] of Object.entries(settings)) {
    if (value === null || JSON.stringify(value) === JSON.stringify(usualSearch[key])) continue;
    notes.lost([...path, key], 'the search has no such setting');
  }
}

function writeSchema(tool: Tool, path: FieldPath, { traits, notes }: Writing): JsonObject {
  const schema = objectSchema(tool.schema, path);
  if (traits.schemaRules === undefined) return schema;
  const { schema: clean, removed } = cleanSchema(schema, traits.schemaRules);
  if (removed.length > 0) {
    const why = `the model knows no ${removed.join(', ')}`;
    notes.changed(schemaPath(tool.schema, path), why);
  }
  return clean;
}

function writeStrict(
  written: JsonMembers,
  tool: Tool,
  path: FieldPath,
  { traits, notes }: Writing,
): void {
  const { input_schema: schema } = written;
  if (traits.responseFormat !== 'schema' || !isObject(schema)) {
    const where = [...schemaPath(tool.schema, path).slice(0, -1), 'strict'];
    notes.lost(where, 'the model does not enforce schemas');
    return;
  }
  const { schema: subset, moved } = strictSchema(schema);
  written['input_schema'] = subset;
  written['strict'] = true;
  if (moved.length > 0) {
    const why = `only described in the schema: ${moved.join(', ')}`;
    notes.changed(schemaPath(tool.schema, path), why);
  }
}

/** The path of a tool's schema in the client's request: chat tools have their definition in a member. */
function schemaPath(schema: JsonObject, path: FieldPath): FieldPath {
  const definition = path[0] === 'tools' ? [...path, 'function'] : path;
  return pathOf(schema, [...definition, 'parameters']);
}

function objectSchema(schema: JsonObject, path: FieldPath): JsonObject {
  const { type } = schema;
  if (type === 'object') return schema;
  if (type !== undefined && type !== null) {
    throw unsupported(
      schemaPath(schema, path),
      'The parameters of a tool must be the schema of an object.',
    );
  }
  return { ...schema, type: 'object', properties: schema['properties'] ?? {} };
}

function writeChoice(
  { toolChoice, parallelTools }: Conversation,
  { traits, notes, tools }: Writing,
): JsonObject | undefined {
  const single = parallelTools === false;
  if (!traits.toolChoice) {
    if (toolChoice !== undefined && toolChoice.type !== 'auto') {
      notes.lost(pathOf(toolChoice, ['tool_choice']), 'the model chooses by itself');
    }
    if (single) notes.changed(['parallel_tool_calls'], 'only the first call is kept');
    return undefined;
  }
  const choice = unforced(choiceOf(toolChoice, single, tools), toolChoice, { traits, notes });
  if (choice === undefined || !single) return choice;
  if (choice['type'] === 'none') {
    notes.lost(['parallel_tool_calls'], 'no tool may be called');
    return choice;
  }
  if (traits.parallelFlag) return { ...choice, disable_parallel_tool_use: true };
  notes.changed(['parallel_tool_calls'], 'only the first call is kept');
  return choice;
}

/** Models that always think refuse a forced tool call. */
function unforced(
  choice: JsonObject | undefined,
  asked: ToolChoice | undefined,
  { traits, notes }: Pick<Writing, 'traits' | 'notes'>,
): JsonObject | undefined {
  const type = choice?.['type'];
  if (choice === undefined || canDemandCalls(traits)) return choice;
  if (type !== 'any' && type !== 'tool') return choice;
  notes.lost(pathOf(asked ?? choice, ['tool_choice']), 'the model cannot be made to call a tool');
  return { type: 'auto' };
}

/** The limit to one call is a member of the choice, so a choice is written for it. */
function choiceOf(
  choice: ToolChoice | undefined,
  single: boolean,
  tools: readonly Tool[],
): JsonObject | undefined {
  switch (choice?.type) {
    case undefined:
      return single ? { type: 'auto' } : undefined;
    case 'auto':
    case 'none':
      return { type: choice.type };
    case 'required':
      return { type: 'any' };
    case 'tool':
      return { type: 'tool', name: sentToolName(choice.name, maxToolName, tools) };
    case 'allowed':
      return { type: choice.mode === 'required' ? 'any' : 'auto' };
    default:
      return choice satisfies never;
  }
}

// The part of JSON Schema that the native service can enforce. What it refuses
// moves into the description, where the model still reads it.

interface SubsetSchema {
  readonly schema: JsonObject;
  /** Keywords that were moved, each once, in order of appearance. */
  readonly moved: readonly string[];
}

/** Keywords that are retained unchanged. */
const plainKeywords: ReadonlySet<string> = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  'default',
  'required',
  '$ref',
]);
/** Keywords whose value is a schema, or a list of schemas. */
const nestedKeywords: ReadonlySet<string> = new Set(['items', 'anyOf', 'allOf']);
/** Keywords whose members are schemas under names of their own. */
const namedKeywords: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
/** Keywords without an effect on the value. */
const silentKeywords: ReadonlySet<string> = new Set(['$schema', '$id', '$comment']);
const stringFormats: ReadonlySet<string> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);

/** The schema in the form that the native service accepts, and the moved keywords. */
export function strictSchema(schema: JsonObject): SubsetSchema {
  const moved = new Set<string>();
  return { schema: subset(schema, moved), moved: [...moved] };
}

function subset(schema: JsonObject, moved: Set<string>): JsonObject {
  const kept: JsonMembers = {};
  const hints: string[] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || silentKeywords.has(key)) continue;
    const name = key === 'oneOf' ? 'anyOf' : key;
    const enforced = enforceable(name, value, moved);
    if (enforced !== undefined) setMember(kept, name, enforced);
    else if (name !== 'additionalProperties' || value !== false) {
      moved.add(key);
      hints.push(`${key}: ${JSON.stringify(value)}`);
    }
  }
  if (isObjectSchema(kept)) kept['additionalProperties'] = false;
  if (hints.length > 0) kept['description'] = described(kept['description'], hints);
  return kept;
}

/** The keyword's value in the form that the service accepts. Undefined for a keyword that it refuses. */
function enforceable(name: string, value: Json, moved: Set<string>): Json | undefined {
  if (plainKeywords.has(name)) return value;
  if (nestedKeywords.has(name)) return subsetValue(value, moved);
  if (namedKeywords.has(name)) return subsetMembers(value, moved);
  return name === 'format' && stringFormats.has(String(value)) ? value : undefined;
}

function subsetValue(value: Json, moved: Set<string>): Json {
  if (!isArray(value)) return isObject(value) ? subset(value, moved) : value;
  const items: Json[] = [];
  for (const each of value) items.push(isObject(each) ? subset(each, moved) : each);
  return items;
}

/** Property names are data: one may be called like a keyword, or `__proto__`. */
function subsetMembers(value: Json, moved: Set<string>): Json {
  if (!isObject(value)) return value;
  const members: JsonMembers = {};
  // Making pairs of 80,000 names takes five times as long.
  for (const name of Object.keys(value)) {
    const schema = value[name];
    setMember(members, name, isObject(schema) ? subset(schema, moved) : (schema ?? null));
  }
  return members;
}

function setMember(members: JsonMembers, key: string, value: Json): void {
  Object.defineProperty(members, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function isObjectSchema(schema: JsonObject): boolean {
  const { type } = schema;
  return (
    type === 'object' ||
    (isArray(type) && type.includes('object')) ||
    isObject(schema['properties'])
  );
}

function described(description: Json | undefined, hints: readonly string[]): string {
  const rules = `(${hints.join(', ')})`;
  return typeof description === 'string' && description !== '' ? `${description} ${rules}` : rules;
}
