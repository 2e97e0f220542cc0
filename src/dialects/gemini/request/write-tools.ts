/** Tools, the choice among them, and the format of the answer. */
import type { Conversation, OutputFormat, Tool, ToolChoice } from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { memberPath, type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { isObject, type Json, type JsonObject, type JsonMembers } from '../../../json/value.ts';
import {
  isOptional,
  isSearch,
  jsonInstruction,
  objectSchema,
  schemaPath,
  typeOf,
} from '../../shared/request/offered-tools.ts';
import { describedTool } from '../../shared/request/responses-fields.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { publishedTool, searchRefusal, toolsOf } from '../../shared/request/tools.ts';
import { sentToolName } from '../../shared/tool-names.ts';

export const maxToolName = 64;

interface ToolSetting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

interface WrittenTools {
  readonly members: JsonMembers;
  /** Functions that the client runs are offered. */
  readonly functions: boolean;
}

/** @throws GatewayError `invalid_request` for a tool that this upstream cannot offer. */
export function writeTools(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenTools {
  const setting = { conversation, traits, notes };
  const { functions, searches } = offeredTools(setting);
  const offered = functions.map(({ tool }) => tool);
  const tools: JsonObject[] = [];
  // All functions in one entry.
  if (functions.length > 0) {
    const declarations = functions.map((each) => writeFunction(each, setting));
    tools.push({ functionDeclarations: declarations });
  }
  if (searches) tools.push({ googleSearch: {} });
  if (tools.length === 0) return { members: {}, functions: false };
  if (conversation.parallelTools === false && offered.length > 0) {
    const otherwise = ['tool_choice', 'disable_parallel_tool_use'];
    const path = memberPath(conversation.extras, 'parallelTools', otherwise);
    notes.changed(path, 'only the first call is kept');
  }
  const choice = offered.length === 0 ? undefined : writeChoice(offered, setting);
  const config: JsonMembers = {
    ...(choice === undefined ? {} : { functionCallingConfig: choice }),
    ...(searches && offered.length > 0 ? { includeServerSideToolInvocations: true } : {}),
  };
  return {
    members: { tools, ...(Object.keys(config).length === 0 ? {} : { toolConfig: config }) },
    functions: offered.length > 0,
  };
}

/** A tool and its path in the client's request. */
interface OfferedTool {
  readonly tool: Tool;
  readonly path: FieldPath;
}

interface Offer {
  readonly functions: readonly OfferedTool[];
  /** The model may search the web. */
  readonly searches: boolean;
}

function offeredTools(setting: ToolSetting): Offer {
  const { conversation, traits, notes } = setting;
  const functions: OfferedTool[] = [];
  const wanted: OfferedTool[] = [];
  toolsOf(conversation, traits, notes).forEach((tool, i) => {
    const path = pathOf(tool, ['tools', i]);
    if (tool.native === undefined) functions.push({ tool, path });
    else if (isSearch(tool)) wanted.push({ tool, path });
    else functions.push({ tool: publishedForm(tool, path, notes), path });
  });
  const [search] = wanted;
  if (search === undefined) return { functions, searches: false };
  const may = traits.serverTools === true && traits.webSearch === 'tool';
  if (may && (functions.length === 0 || traits.searchBesideTools === true)) {
    noteSearchOptions(search, notes);
    return { functions, searches: true };
  }
  const { native } = search.tool;
  const at = native?.dialect === 'openai-chat' ? search.path : [...search.path, 'type'];
  if (!isOptional(search.tool, conversation)) throw searchRefusal(at);
  // The note names the whole tool, since all of its members are lost.
  notes.lost(
    search.path,
    may ? 'the model does not search beside functions' : 'the model has no web search',
  );
  return { functions, searches: false };
}

/** A tool of the messages API that the client runs, as a function. */
function publishedForm(tool: Tool, path: FieldPath, notes: Notes): Tool {
  const type = typeOf(tool);
  const published = publishedTool(type);
  if (published === undefined) {
    throw unsupported([...path, 'type'], `This model has no tool of the type '${type}'.`);
  }
  notes.changed([...path, 'type'], 'offered as an ordinary function tool');
  return { name: tool.name, ...published };
}

const told: ReadonlySet<string> = new Set(['type', 'name', 'cache_control']);

/** The provider's search has none of the options that other dialects define. */
function noteSearchOptions({ tool, path }: OfferedTool, notes: Notes): void {
  for (const [key, value] of Object.entries(tool.native?.value ?? {})) {
    if (value === null || value === undefined || told.has(key)) continue;
    notes.lost([...path, key], 'the search of this model has no such setting');
  }
}

function writeFunction({ tool, path }: OfferedTool, setting: ToolSetting): JsonObject {
  const { conversation, notes, traits } = setting;
  // A call that is demanded follows its schema.
  const free = (conversation.toolChoice?.type ?? 'auto') === 'auto';
  if (tool.strict === true && free && traits.jsonSchemas !== true) {
    const where = [...schemaPath(tool, path).slice(0, -1), 'strict'];
    notes.lost(where, 'the model does not enforce schemas');
  }
  return {
    name: sentToolName(tool.name, maxToolName, conversation.tools),
    // Older models refuse a function without a description.
    description: describedTool(tool, notes) ?? '',
    ...writeParameters({ tool, path }, setting),
  };
}

/** Empty for a function without arguments: the older form has no other way to declare it. */
function writeParameters({ tool, path }: OfferedTool, { traits, notes }: ToolSetting): JsonMembers {
  const whole = objectSchema(tool.schema);
  if (traits.jsonSchemas === true) return { parametersJsonSchema: whole };
  const { schema, removed } = cleanSchema(whole, 'openapi');
  if (removed.length > 0) {
    notes.changed(schemaPath(tool, path), `the model knows no ${removed.join(', ')}`);
  }
  const { properties } = schema;
  const takesNothing = isObject(properties) && Object.keys(properties).length === 0;
  return takesNothing ? {} : { parameters: withoutEmpty(schema) };
}

/** Objects with an empty list of properties are refused; without a list they may hold anything. */
function withoutEmpty(schema: JsonObject): JsonObject {
  const written: JsonMembers = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key !== 'properties') written[key] = withoutEmptyIn(value);
    else if (isObject(value) && Object.keys(value).length > 0) {
      const named = Object.entries(value).map(([name, each]) => [name, withoutEmptyIn(each)]);
      written[key] = Object.fromEntries(named) as JsonObject;
    }
  }
  return written;
}

function withoutEmptyIn(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((each: Json) => withoutEmptyIn(each) ?? null);
  return isObject(value) ? withoutEmpty(value) : value;
}

// Which of the functions may or must be called.

/** `VALIDATED` makes calls follow their schemas, which `strict` requests. */
function writeChoice(offered: readonly Tool[], setting: ToolSetting): JsonMembers | undefined {
  const { toolChoice: choice } = setting.conversation;
  const strict = setting.traits.jsonSchemas === true && offered.some((tool) => tool.strict);
  if (choice === undefined) return strict ? { mode: 'VALIDATED' } : undefined;
  switch (choice.type) {
    case 'auto':
      return { mode: strict ? 'VALIDATED' : 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'tool':
    case 'allowed':
      return writeNamed(choice, offered, setting);
    default:
      return choice satisfies never;
  }
}

function writeNamed(
  choice: Extract<ToolChoice, { readonly type: 'tool' | 'allowed' }>,
  offered: readonly Tool[],
  { conversation }: ToolSetting,
): JsonMembers | undefined {
  const wanted = choice.type === 'tool' ? [choice.name] : choice.names;
  const names = offered
    .filter(({ name }) => wanted.includes(name))
    .map(({ name }) => sentToolName(name, maxToolName, conversation.tools));
  if (names.length === 0) return undefined;
  const free = choice.type === 'allowed' && choice.mode === 'auto';
  return { mode: free ? 'VALIDATED' : 'ANY', allowedFunctionNames: names };
}

// The format of the answer.

interface OutputSetting {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  readonly offersTools: boolean;
}

interface WrittenOutput {
  /** Members of the configuration. */
  readonly members: JsonMembers;
  /** Text for the instructions, where the upstream does not enforce the format. */
  readonly instruction: string | undefined;
}

/** @throws GatewayError `invalid_request` where the upstream cannot enforce a strict schema. */
export function writeOutput(
  { output }: Conversation,
  { traits, notes, offersTools }: OutputSetting,
): WrittenOutput {
  if (output.type === 'text') return { members: {}, instruction: undefined };
  const path = pathOf(output, ['output_config', 'format']);
  if (offersTools && traits.jsonBesideTools !== true) {
    if (output.strict === true && output.schema !== undefined) {
      throw unsupported(path, 'This model cannot be held to a JSON schema beside tools.');
    }
    notes.changed(path, 'asked for in the prompt, not enforced by the model beside tools');
    return { members: {}, instruction: jsonInstruction(output.schema) };
  }
  if (traits.responseFormat === 'none') {
    notes.changed(path, 'asked for in the prompt, not enforced by the model');
    return { members: {}, instruction: jsonInstruction(output.schema) };
  }
  return { members: writeFormat(output, { traits, notes }, path), instruction: undefined };
}

function writeFormat(
  { schema }: Extract<OutputFormat, { readonly type: 'json' }>,
  { traits, notes }: Pick<OutputSetting, 'traits' | 'notes'>,
  path: FieldPath,
): JsonMembers {
  const type = { responseMimeType: 'application/json' };
  if (schema === undefined) return type;
  if (traits.jsonSchemas === true) return { ...type, responseJsonSchema: schema };
  const { schema: clean, removed } = cleanSchema(schema, 'openapi');
  if (removed.length > 0) notes.changed(path, `the model knows no ${removed.join(', ')}`);
  return { ...type, responseSchema: withoutEmpty(clean) };
}
