/** Tools, the choice among them, and the format of the answer. */
import type { Conversation, OutputFormat, Tool, ToolChoice } from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { memberPath, type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonObject, JsonMembers } from '../../../json/value.ts';
import type { CacheMarks } from '../../anthropic-messages/request/cache-marks.ts';
import { strictSchema } from '../../anthropic-messages/request/write-tools.ts';
import {
  isOptional,
  isSearch,
  jsonInstruction,
  objectSchema,
  schemaPath,
  typeOf,
} from '../../shared/request/offered-tools.ts';
import { canDemandCalls, type JsonTool, jsonTool } from '../../shared/request/demanded-call.ts';
import { describedTool } from '../../shared/request/responses-fields.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { publishedTool, searchRefusal, toolsOf } from '../../shared/request/tools.ts';
import { sentToolName } from '../../shared/tool-names.ts';
import { maxToolName } from '../fields.ts';

export interface ToolWriting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  readonly marks: CacheMarks;
}

interface WrittenTools {
  readonly tools: readonly JsonMembers[];
  /** Absent = the model chooses. */
  readonly choice?: JsonObject;
}

/** @throws GatewayError `invalid_request` for a tool that this upstream cannot offer. */
export function writeTools(writing: ToolWriting): WrittenTools | undefined {
  const { conversation, notes } = writing;
  const { toolChoice, parallelTools } = conversation;
  if (toolChoice?.type === 'none' && !hasCalls(conversation)) return undefined;
  const offered = offeredTools(writing);
  if (offered.length === 0) return undefined;
  if (toolChoice?.type === 'none') {
    notes.changed(pathOf(toolChoice, ['tool_choice']), 'the model cannot be kept from calling');
  }
  if (parallelTools === false) {
    const otherwise = ['tool_choice', 'disable_parallel_tool_use'];
    const path = memberPath(conversation.extras, 'parallelTools', otherwise);
    notes.changed(path, 'only the first call is kept');
  }
  const tools = offered.map((each) => writeTool(each, writing));
  const choice = writeChoice(writing);
  return { tools, ...(choice === undefined ? {} : { choice }) };
}

function hasCalls({ turns }: Conversation): boolean {
  return turns.some(({ parts }) => parts.some(({ type }) => type === 'tool-call'));
}

interface OfferedTool {
  readonly tool: Tool;
  readonly path: FieldPath;
}

/** If the client allows only some tools, only those and the ones that were called before are offered. */
function offeredTools({ conversation, traits, notes }: ToolWriting): readonly OfferedTool[] {
  const offered: OfferedTool[] = [];
  toolsOf(conversation, traits, notes).forEach((tool, i) => {
    const path = pathOf(tool, ['tools', i]);
    const usable =
      tool.native === undefined ? tool : published({ tool, path }, conversation, notes);
    if (usable !== undefined) offered.push({ tool: usable, path });
  });
  const { toolChoice } = conversation;
  if (toolChoice?.type !== 'allowed') return offered;
  const { names } = toolChoice;
  notes.changed(pathOf(toolChoice, ['tool_choice']), 'only the allowed tools are offered');
  const called = new Set(
    conversation.turns.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool-call' ? [part.name] : [])),
    ),
  );
  return offered.filter(({ tool }) => names.includes(tool.name) || called.has(tool.name));
}

/** A tool that another API defines, as a function that the client runs. Undefined when it is omitted. */
function published(
  { tool, path }: OfferedTool,
  conversation: Conversation,
  notes: Notes,
): Tool | undefined {
  const form = publishedTool(typeOf(tool));
  if (form !== undefined) {
    notes.changed([...path, 'type'], 'offered as an ordinary function tool');
    return { name: tool.name, ...form };
  }
  const at = tool.native?.dialect === 'openai-chat' ? path : [...path, 'type'];
  if (!isSearch(tool)) {
    throw unsupported(at, `This model has no tool of the type '${typeOf(tool)}'.`);
  }
  if (!isOptional(tool, conversation)) throw searchRefusal(at);
  // The note names the whole tool, since all of its members are lost.
  notes.lost(path, 'the model has no web search');
  return undefined;
}

function writeTool({ tool, path }: OfferedTool, writing: ToolWriting): JsonMembers {
  const { conversation, notes, marks, traits } = writing;
  const description = describedTool(tool, notes);
  const name = sentToolName(tool.name, maxToolName, conversation.tools);
  const toolSpec = {
    name,
    ...(description === undefined || description === '' ? {} : { description }),
    ...writeSchema({ tool, path }, writing),
  };
  const block: JsonMembers = { toolSpec };
  return traits.toolCacheMarks === false ? block : marks.prefix(block, tool);
}

/** @throws GatewayError for parameters that are no object. */
function writeSchema({ tool, path }: OfferedTool, { traits, notes }: ToolWriting): JsonMembers {
  const schema = objectSchema(tool.schema);
  if (schema['type'] !== 'object') {
    const why = 'The parameters of a tool must be the schema of an object.';
    throw unsupported(schemaPath(tool, path), why);
  }
  if (tool.strict === true && enforces(traits)) {
    const { schema: subset, moved } = strictSchema(schema);
    if (moved.length > 0) {
      notes.changed(schemaPath(tool, path), `only described in the schema: ${moved.join(', ')}`);
    }
    return { inputSchema: { json: subset }, strict: true };
  }
  if (tool.strict === true) {
    const where = [...schemaPath(tool, path).slice(0, -1), 'strict'];
    notes.lost(where, 'the model does not enforce schemas');
  }
  if (traits.schemaRules === undefined) return { inputSchema: { json: schema } };
  const { schema: clean, removed } = cleanSchema(schema, traits.schemaRules);
  if (removed.length > 0) {
    notes.changed(schemaPath(tool, path), `the model knows no ${removed.join(', ')}`);
  }
  return { inputSchema: { json: clean } };
}

function enforces({ responseFormat, strictSchemas }: UpstreamTraits): boolean {
  return responseFormat === 'schema' && strictSchemas !== false;
}

function writeChoice({ conversation, traits, notes }: ToolWriting): JsonObject | undefined {
  const { toolChoice: choice, tools } = conversation;
  const wanted = choiceOf(choice, tools);
  if (choice === undefined || wanted === undefined || 'auto' in wanted || canDemandCalls(traits)) {
    return wanted;
  }
  notes.lost(pathOf(choice, ['tool_choice']), 'the model cannot be made to call a tool');
  return undefined;
}

function choiceOf(
  choice: ToolChoice | undefined,
  tools: Conversation['tools'],
): JsonObject | undefined {
  switch (choice?.type) {
    case undefined:
    case 'none':
      return undefined;
    case 'auto':
      return { auto: {} };
    case 'required':
      return { any: {} };
    case 'tool':
      return { tool: { name: sentToolName(choice.name, maxToolName, tools) } };
    case 'allowed':
      return choice.mode === 'required' ? { any: {} } : { auto: {} };
    default:
      return choice satisfies never;
  }
}

// The format of the answer.

interface WrittenOutput {
  /** Members of `outputConfig`. */
  readonly config: JsonMembers;
  /** The tool whose input is the answer, instead of the client's. */
  readonly tool?: WrittenTools;
  /** Text for the instructions, where the upstream does not enforce the format. */
  readonly instruction?: string;
}

const nothing: WrittenOutput = { config: {} };

/**
 * Writes the format as the model's own option, else as the input of a forced tool, else in the instructions.
 * @throws GatewayError `invalid_request` where the upstream cannot enforce a strict schema
 */
export function writeOutput(writing: ToolWriting, thinks: boolean): WrittenOutput {
  const { conversation, traits, notes } = writing;
  const { output } = conversation;
  if (output.type === 'text') return nothing;
  const path = pathOf(output, ['output_config', 'format']);
  if (output.schema !== undefined && traits.responseFormat === 'schema') {
    return { config: { textFormat: writeFormat(output, output.schema, { notes, path }) } };
  }
  const tool = canDemandCalls(traits) ? jsonTool(conversation, thinks) : undefined;
  if (tool !== undefined) {
    notes.changed(path, 'asked for as the input of a tool');
    return { config: {}, tool: asTool(tool, traits) };
  }
  if (output.strict === true && output.schema !== undefined) {
    throw unsupported(path, 'This model cannot be held to a JSON schema in this request.');
  }
  notes.changed(path, 'asked for in the prompt, not enforced by the model');
  return { config: {}, instruction: jsonInstruction(output.schema) };
}

function asTool({ name, description, schema }: JsonTool, traits: UpstreamTraits): WrittenTools {
  const json =
    traits.schemaRules === undefined ? schema : cleanSchema(schema, traits.schemaRules).schema;
  return {
    tools: [{ toolSpec: { name, description, inputSchema: { json } } }],
    choice: { tool: { name } },
  };
}

/** The API takes the schema as text. */
function writeFormat(
  output: Extract<OutputFormat, { readonly type: 'json' }>,
  schema: JsonObject,
  { notes, path }: { readonly notes: Notes; readonly path: FieldPath },
): JsonObject {
  const { schema: subset, moved } = strictSchema(schema);
  if (moved.length > 0) notes.changed(path, `only described: ${moved.join(', ')}`);
  const { name, description } = output;
  return {
    type: 'json_schema',
    structure: {
      jsonSchema: {
        schema: JSON.stringify(subset),
        ...(name === undefined ? {} : { name }),
        ...(description === undefined ? {} : { description }),
      },
    },
  };
}
