/** Tools and the choice among them (wire/translation.md §1.5, §1.6). */
import type { Conversation, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Steps } from '../../core/steps.ts';
import { toolsOf } from '../history-tools.ts';
import type { JsonTool } from '../json-tool.ts';
import { sentToolName } from '../tool-ids.ts';
import { cleanSchema } from '../tool-schema.ts';
import { maxToolName, type Writing } from './request-write-blocks.ts';
import type { JsonMembers } from './fields.ts';
import { strictSchema } from './schema-subset.ts';

/** `tools` and `tool_choice`, each only where there is something to say. */
export function* writeTools(conversation: Conversation, writing: Writing): Steps<JsonObject> {
  const offered = offeredTools(conversation, writing);
  if (offered.length === 0) return {};
  const choice = writeChoice(conversation, writing);
  const tools: JsonMembers[] = [];
  for (const [i, tool] of offered.entries()) tools.push(yield* writeTool(tool, i, writing));
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

/** A call can be demanded of this model. */
export function canForceTools({ toolChoice, refusesForcedTools }: Writing['traits']): boolean {
  return toolChoice && refusesForcedTools !== true;
}

/** The forced tool whose input is the answer. */
export function* writeJsonTool(
  { name, description, schema }: JsonTool,
  { notes, traits }: Writing,
): Steps<JsonObject> {
  notes.changed(['response_format'], 'asked for as the input of a tool');
  const clean =
    traits.schemaRules === undefined
      ? schema
      : (yield* cleanSchema(schema, traits.schemaRules)).schema;
  return {
    tools: [{ name, description, input_schema: clean }],
    tool_choice: { type: 'tool', name, disable_parallel_tool_use: true },
  };
}

/** A choice among some tools offers only those: this dialect cannot narrow it otherwise. */
function offeredTools(conversation: Conversation, { traits, notes }: Writing): readonly Tool[] {
  const tools = toolsOf(conversation, traits, notes);
  const { toolChoice } = conversation;
  if (toolChoice?.type !== 'allowed') return tools;
  const { names } = toolChoice;
  notes.changed(['tool_choice'], 'only the allowed tools are offered');
  return tools.filter((tool) => names.includes(tool.name));
}

/** @throws GatewayError `invalid_request` for tools that another provider defines or runs. */
function* writeTool(tool: Tool, i: number, writing: Writing): Steps<JsonMembers> {
  const { marks } = writing;
  if (tool.native !== undefined) {
    if (tool.native.dialect === 'anthropic-messages') return { ...tool.native.value };
    return writeForeignTool(tool, i, writing);
  }
  const written: JsonMembers = {
    name: sentToolName(tool.name, maxToolName, writing.tools),
    ...(tool.description === undefined || tool.description === ''
      ? {}
      : { description: tool.description }),
    input_schema: yield* writeSchema(tool, i, writing),
    ...tool.extras?.['anthropic-messages'],
  };
  if (tool.strict === true) yield* writeStrict(written, i, writing);
  return marks.prefix(written, tool);
}

/** @throws GatewayError for tools of other providers but the search that this one has as well (A10). */
function writeForeignTool(tool: Tool, i: number, { traits, notes }: Writing): JsonMembers {
  const options = tool.native?.value ?? {};
  if (options['type'] !== 'web_search_options') {
    throw unsupported(['tools', i, 'type'], 'This model has no tool of this type.');
  }
  if (traits.serverTools !== true || traits.webSearch !== 'tool') {
    throw unsupported(['web_search_options'], 'This model has no web search of its own.');
  }
  const { user_location: location, search_context_size: size } = options;
  if (size !== undefined && size !== null && size !== 'medium') {
    notes.lost(['web_search_options', 'search_context_size'], 'the search cannot be told so');
  }
  const place = isObject(location) ? location['approximate'] : undefined;
  return {
    type: 'web_search_20250305',
    name: tool.name,
    ...(isObject(place) ? { user_location: { type: 'approximate', ...place } } : {}),
  };
}

function* writeSchema(tool: Tool, i: number, { traits, notes }: Writing): Steps<JsonObject> {
  const schema = objectSchema(tool.schema, i);
  if (traits.schemaRules === undefined) return schema;
  const { schema: clean, removed } = yield* cleanSchema(schema, traits.schemaRules);
  if (removed.length > 0) {
    notes.changed(
      ['tools', i, 'function', 'parameters'],
      `the model knows no ${removed.join(', ')}`,
    );
  }
  return clean;
}

function* writeStrict(written: JsonMembers, i: number, { traits, notes }: Writing): Steps<void> {
  const { input_schema: schema } = written;
  if (traits.responseFormat !== 'schema' || !isObject(schema)) {
    notes.lost(['tools', i, 'strict'], 'the model does not enforce schemas');
    return;
  }
  const { schema: subset, moved } = yield* strictSchema(schema);
  written['input_schema'] = subset;
  written['strict'] = true;
  if (moved.length > 0) {
    notes.changed(['tools', i], `only described in the schema: ${moved.join(', ')}`);
  }
}

function objectSchema(schema: JsonObject, i: number): JsonObject {
  const { type } = schema;
  if (type === 'object') return schema;
  if (type !== undefined && type !== null) {
    throw unsupported(
      ['tools', i, 'function', 'parameters'],
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
    if (single || (toolChoice !== undefined && toolChoice.type !== 'auto')) {
      notes.lost(['tool_choice'], 'the model chooses by itself');
    }
    return undefined;
  }
  const choice = unforced(choiceOf(toolChoice, single, tools), traits, notes);
  if (choice === undefined || !single) return choice;
  if (choice['type'] === 'none') {
    notes.lost(['parallel_tool_calls'], 'no tool may be called');
    return choice;
  }
  if (traits.parallelFlag) return { ...choice, disable_parallel_tool_use: true };
  notes.changed(['parallel_tool_calls'], 'only the first call is kept');
  return choice;
}

/** Models whose thinking is never off refuse to be made to call a tool (§1.6). */
function unforced(
  choice: JsonObject | undefined,
  traits: Writing['traits'],
  notes: Writing['notes'],
): JsonObject | undefined {
  const type = choice?.['type'];
  if (canForceTools(traits) || (type !== 'any' && type !== 'tool')) return choice;
  notes.lost(['tool_choice'], 'the model cannot be made to call a tool');
  return { type: 'auto' };
}

/** Without a choice, the limit to one call needs one to stand in. */
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
