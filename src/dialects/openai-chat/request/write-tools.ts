/** Writes tools and the tool choice. */
import type { Conversation, OutputFormat, Tool, ToolChoice } from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { memberPath, type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonObject, JsonMembers } from '../../../json/value.ts';
import { publishedTool, searchRefusal, toolsOf } from '../../shared/request/tools.ts';
import { sentToolName } from '../../shared/tool-names.ts';
import { wantsThinking, type JsonTool, jsonTool } from '../../shared/request/demanded-call.ts';
import { describedTool, grammarOf } from '../../shared/request/responses-fields.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { writeCacheMark } from '../message-forms.ts';
import { searchesByItself, writeWebSearch } from './read.ts';
import {
  typeOf,
  isSearch,
  isOptional,
  schemaPath,
  objectSchema,
  isStrict,
  jsonInstruction,
} from '../../shared/request/offered-tools.ts';

/** Chat completions and nearly all its servers take names of this length. */
export const maxToolName = 64;

interface ToolSetting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

export function writeTools(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const setting = { conversation, traits, notes };
  const { tools, search } = offeredTools(setting);
  if (tools.length === 0) return search;
  const { toolChoice } = conversation;
  if (toolChoice?.type === 'none' && !traits.toolChoice) {
    notes.changed(
      pathOf(toolChoice, ['tool_choice']),
      'the tools are not sent: the model does not support tool_choice none',
    );
    return search;
  }
  const offered = tools.map(({ tool }) => tool);
  const written: JsonObject[] = [];
  for (const each of tools) written.push(writeTool(each, setting));
  return {
    ...search,
    tools: written,
    ...writeChoice(toolChoice, { ...setting, offered }),
    ...writeParallel(conversation, traits, notes),
  };
}

/** The forced tool whose input is the answer. */
function writeJsonTool(
  { name, description, schema }: JsonTool,
  { schemaRules }: UpstreamTraits,
): JsonMembers {
  const parameters = schemaRules === undefined ? schema : cleanSchema(schema, schemaRules).schema;
  return {
    tools: [{ type: 'function', function: { name, description, parameters } }],
    tool_choice: { type: 'function', function: { name } },
  };
}

/** A tool and its path in the client's request. */
interface OfferedTool {
  readonly tool: Tool;
  readonly path: FieldPath;
}

interface Offer {
  readonly tools: readonly OfferedTool[];
  /** Members that let the model search the web, where a tool requested that. */
  readonly search: JsonMembers;
}

/** The offered tools, those of other dialects as functions. */
function offeredTools(setting: ToolSetting): Offer {
  const { conversation, traits, notes } = setting;
  const tools: OfferedTool[] = [];
  let search: JsonMembers = {};
  toolsOf(conversation, traits, notes).forEach((tool, i) => {
    const path = pathOf(tool, ['tools', i]);
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

/** A provider-defined tool as a function that the client runs; undefined when it is omitted. */
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
  if (isSearch(tool)) throw searchRefusal([...path, 'type']);
  throw unsupported([...path, 'type'], `This model has no tool of the type '${type}'.`);
}

function writeTool({ tool, path }: OfferedTool, setting: ToolSetting): JsonObject {
  if (tool.native !== undefined) return tool.native.value;
  const { traits, conversation, notes } = setting;
  const { name, cacheUntilHere } = tool;
  const isCustom = tool.freeText === true && traits.customTools === true;
  const description = isCustom ? tool.description : describedTool(tool, notes);
  const described = {
    name: sentToolName(name, maxToolName, conversation.tools),
    ...(description === undefined || description === '' ? {} : { description }),
  };
  const mark =
    traits.cacheMarks && cacheUntilHere !== undefined ? writeCacheMark(cacheUntilHere) : {};
  if (isCustom) return { type: 'custom', custom: { ...described, ...writeGrammar(tool) }, ...mark };
  return {
    type: 'function',
    function: {
      ...described,
      parameters: writeSchema({ tool, path }, setting),
      ...writeStrict({ tool, path }, setting),
    },
    ...mark,
  };
}

/** Chat completions nests the grammar. */
function writeGrammar(tool: Tool): JsonMembers {
  const grammar = grammarOf(tool);
  if (grammar === undefined) return {};
  const { syntax, definition } = grammar;
  return { format: { type: 'grammar', grammar: { syntax, definition } } };
}

function writeSchema({ tool, path }: OfferedTool, { traits, notes }: ToolSetting): JsonObject {
  const schema = objectSchema(tool.schema);
  if (traits.schemaRules === undefined) return schema;
  const { schema: clean, removed } = cleanSchema(schema, traits.schemaRules);
  if (removed.length > 0) {
    notes.changed(schemaPath(tool, path), `the model knows no ${removed.join(', ')}`);
  }
  return clean;
}

/** Strict mode refuses schemas with optional properties. The tool is then offered without it. */
function writeStrict({ tool, path }: OfferedTool, { traits, notes }: ToolSetting): JsonMembers {
  const { strict, schema } = tool;
  if (strict !== true) return strict === undefined ? {} : { strict };
  if (traits.schemaRules === undefined && isStrict(schema)) return { strict };
  const where = [...schemaPath(tool, path).slice(0, -1), 'strict'];
  notes.lost(where, 'the model does not enforce this schema');
  return {};
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
      return tool === undefined ? {} : { tool_choice: writeNamed(tool, conversation, traits) };
    }
    case 'allowed': {
      const tools = offered
        .filter(({ name }) => choice.names.includes(name))
        .map((tool) => writeNamed(tool, conversation, traits));
      return {
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } },
      };
    }
    default:
      return choice satisfies never;
  }
}

function writeNamed(tool: Tool, { tools }: Conversation, traits: UpstreamTraits): JsonObject {
  const name = sentToolName(tool.name, maxToolName, tools);
  return tool.freeText === true && traits.customTools === true
    ? { type: 'custom', custom: { name } }
    : { type: 'function', function: { name } };
}

export function writeParallel(
  { parallelTools, extras }: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  if (parallelTools !== false) return {};
  if (traits.parallelFlag) return { parallel_tool_calls: false };
  const otherwise = ['tool_choice', 'disable_parallel_tool_use'];
  notes.changed(memberPath(extras, 'parallelTools', otherwise), 'only the first call is kept');
  return {};
}

// Structured output: as the model knows it, else as the input of a
// forced tool, else as an instruction. Notes name the fields of the messages dialect, the only one that
// is translated to this one.

type JsonOutput = Extract<OutputFormat, { readonly type: 'json' }>;

/** Where the client requested it. */
function formatPath(output: OutputFormat): FieldPath {
  return pathOf(output, ['output_config', 'format']);
}

interface WrittenOutput {
  /** `response_format`, or the tool and the choice of it. */
  readonly members: JsonMembers;
  /** Text for the system prompt, if the upstream does not enforce the format. */
  readonly instruction: string | undefined;
}

/** @throws GatewayError `invalid_request` if the upstream cannot enforce the schema. */
export function writeOutput(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenOutput {
  const { output } = conversation;
  if (output.type === 'text') return { members: {}, instruction: undefined };
  const { schema } = output;
  if (schema === undefined && traits.responseFormat !== 'none') {
    return { members: { response_format: { type: 'json_object' } }, instruction: undefined };
  }
  if (schema === undefined || traits.responseFormat === 'object') {
    return writeInstruction(output, traits, notes);
  }
  if (traits.responseFormat === 'none') return writeFormatTool(conversation, traits, notes);
  const members = writeFormat(output, schema, { traits, notes });
  return { members, instruction: undefined };
}

function writeInstruction(
  output: JsonOutput,
  { responseFormat }: UpstreamTraits,
  notes: Notes,
): WrittenOutput {
  const { schema } = output;
  notes.changed(formatPath(output), 'asked for in the prompt, not enforced by the model');
  return {
    members: responseFormat === 'none' ? {} : { response_format: { type: 'json_object' } },
    instruction: jsonInstruction(schema),
  };
}

function writeFormatTool(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenOutput {
  const path = formatPath(conversation.output);
  const thinks = traits.efforts.length > 0 && wantsThinking(conversation);
  const tool = traits.toolChoice ? jsonTool(conversation, thinks) : undefined;
  if (tool === undefined) {
    throw unsupported(path, 'This model cannot be held to a JSON schema in this request.');
  }
  notes.changed(path, 'asked for as the input of a tool');
  return { members: writeJsonTool(tool, traits), instruction: undefined };
}

function writeFormat(
  output: JsonOutput,
  schema: JsonObject,
  { traits, notes }: { readonly traits: UpstreamTraits; readonly notes: Notes },
): JsonMembers {
  const { name = 'output', description } = output;
  const { schemaRules } = traits;
  const strict = schemaRules === undefined && (output.strict ?? isStrict(schema));
  if (output.strict !== false && !strict) notes.changed(formatPath(output), notStrict(schemaRules));
  const clean = schemaRules === undefined ? schema : cleanSchema(schema, schemaRules).schema;
  return {
    response_format: {
      type: 'json_schema',
      json_schema: {
        name,
        ...(description === undefined ? {} : { description }),
        schema: clean,
        strict,
      },
    },
  };
}

function notStrict(rules: UpstreamTraits['schemaRules']): string {
  return rules === undefined
    ? 'optional properties: not enforced strictly'
    : 'the model knows a part of JSON Schema only';
}
