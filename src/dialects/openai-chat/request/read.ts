/**
 * Reads a whole chat-completions request into the canonical conversation, for translation only.
 * The head was checked before; what is refused here is what no other
 * dialect can hold.
 */
import type {
  CacheMark,
  Conversation,
  Effort,
  OutputFormat,
  Part,
  Reasoning,
  Sampling,
  Tool,
  ToolChoice,
} from '../../../core/conversation.ts';
import { type FieldPath, type GatewayError, unsupported } from '../../../core/errors.ts';
import { type Notes, withMemberPaths, withPath, withPathOf } from '../../../core/notes.ts';
import type { Sealer } from '../../../core/secret.ts';
import { noteStrangers } from '../../../core/shape.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../../json/value.ts';
import { legacyFunction, readCacheMark } from '../message-forms.ts';
import {
  badValue,
  missing,
  readArray,
  readInteger,
  readNumber,
  readObject,
  readString,
} from '../fields.ts';
import { readConversationTurns } from './read-messages.ts';
import { readExtras, requestShape } from '../shape.ts';

/** @throws GatewayError `invalid_request` for a member that the canonical form does not have. */
export function readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation {
  refuseUntranslatable(body);
  noteStrangers(body, requestShape, notes);
  const { system, turns } = readConversationTurns(body, notes, sealer);
  const toolChoice = readToolChoice(body);
  const reasoning = readReasoningControl(body);
  const endUser = readString(body, 'safety_identifier') ?? readString(body, 'user');
  const read: Conversation = {
    system,
    turns,
    tools: readTools(body),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(body['parallel_tool_calls'] === false ? { parallelTools: false } : {}),
    sampling: readSampling(body),
    output: readOutputFormat(body),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(endUser === undefined ? {} : { endUser }),
    extras: withMemberPaths(readExtras(body), {
      parallelTools: ['parallel_tool_calls'],
      endUser: [typeof body['safety_identifier'] === 'string' ? 'safety_identifier' : 'user'],
    }),
  };
  return body['prompt_cache_retention'] === '24h' ? keepLonger(read) : read;
}

/** @throws GatewayError for members whose loss the client would misread, or wait for in vain. */
export function refuseUntranslatable(body: JsonObject): void {
  const found = findUntranslatable(body);
  if (found !== undefined) throw found;
}

/** Of a member whose loss the client would misread, or wait for in vain. */
export function findUntranslatable(body: JsonObject): GatewayError | undefined {
  const { n, logprobs, modalities, moderation } = body;
  if (typeof n === 'number' && n > 1) {
    return unsupported(['n'], 'This model gives one choice only; ask several times instead.');
  }
  if (logprobs === true || (typeof logprobs === 'number' && logprobs > 0)) {
    return unsupported(['logprobs'], 'This model does not report log probabilities.');
  }
  if (isArray(modalities) && modalities.includes('audio')) {
    return unsupported(['modalities'], 'This model does not answer in audio.');
  }
  if (isObject(moderation) && blocksContent(moderation)) {
    return unsupported(['moderation'], 'This model has no moderation that blocks.');
  }
  return undefined;
}

function blocksContent(moderation: JsonObject): boolean {
  const policy = moderation['policy'];
  if (!isObject(policy)) return false;
  return Object.values(policy).some((rule) => isObject(rule) && rule['mode'] === 'block');
}

const anyNumber = { min: -Infinity, max: Infinity };

function readSampling(body: JsonObject): Sampling {
  const completion = readInteger(body, 'max_completion_tokens', anyNumber);
  const maxOutputTokens = completion ?? readInteger(body, 'max_tokens', anyNumber);
  const temperature = readNumber(body, 'temperature', anyNumber);
  const topP = readNumber(body, 'top_p', anyNumber);
  const topK = readInteger(body, 'top_k', anyNumber);
  const seed = readInteger(body, 'seed', anyNumber);
  const stop = stopsOf(body);
  const read: Sampling = {
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    // 0 and -1 mean that the limit is off.
    ...(topK === undefined || topK < 1 ? {} : { topK }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(seed === undefined ? {} : { seed }),
  };
  return withPath(read, [completion === undefined ? 'max_tokens' : 'max_completion_tokens']);
}

/** The stop sequences of a request. */
export function stopsOf(body: JsonObject): readonly string[] {
  const { stop } = body;
  if (typeof stop === 'string') return [stop];
  return isArray(stop) ? stop.filter((entry) => typeof entry === 'string') : [];
}

function readOutputFormat(body: JsonObject): OutputFormat {
  const format = readObject(body, 'response_format');
  switch (format?.['type']) {
    case undefined:
    case 'text':
      return { type: 'text' };
    case 'json_object':
      return withPath({ type: 'json' }, ['response_format']);
    case 'json_schema':
      return readJsonSchema(format);
    default:
      throw unsupported(['response_format', 'type'], 'This model does not know this format.');
  }
}

function readJsonSchema(format: JsonObject | undefined): OutputFormat {
  const named = format?.['json_schema'];
  if (!isObject(named)) return { type: 'json' };
  const { schema, name, description, strict } = named;
  const read: OutputFormat = {
    type: 'json',
    ...(isObject(schema) ? { schema } : {}),
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof description === 'string' ? { description } : {}),
    ...(typeof strict === 'boolean' ? { strict } : {}),
  };
  return withPath(read, ['response_format', 'json_schema']);
}

// How much the model may reason: three spellings of three vendors.

const efforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The messages spelling (`thinking`) wins, then OpenRouter's (`reasoning`), then OpenAI's. */
export function readReasoningControl(body: JsonObject): Reasoning | undefined {
  const effort = readEffort(body['reasoning_effort'], ['reasoning_effort']);
  const thinking = readObject(body, 'thinking');
  if (thinking !== undefined) {
    return readThinking(thinking, effort);
  }
  const reasoning = readObject(body, 'reasoning');
  if (reasoning !== undefined) {
    return readOpenRouterReasoning(reasoning, effort);
  }
  return effort === undefined ? undefined : withPath({ effort }, ['reasoning_effort']);
}

function readThinking(thinking: JsonObject, effort: Effort | undefined): Reasoning | undefined {
  const hidden = thinking['display'] === 'omitted' ? { hidden: true } : {};
  const budget = thinking['budget_tokens'];
  const path = effort === undefined ? ['thinking'] : ['reasoning_effort'];
  switch (thinking['type']) {
    case 'disabled':
      return withPath({ effort: 'none' }, ['thinking']);
    case 'enabled':
      return typeof budget === 'number'
        ? withPath({ budgetTokens: budget, ...hidden }, ['thinking', 'budget_tokens'])
        : withPath({ effort: effort ?? 'medium', ...hidden }, path);
    case 'adaptive':
      return withPath(
        { adaptive: true, ...(effort === undefined ? {} : { effort }), ...hidden },
        path,
      );
    default:
      throw badValue(['thinking', 'type'], "must be 'enabled', 'disabled' or 'adaptive'");
  }
}

function readOpenRouterReasoning(
  reasoning: JsonObject,
  outer: Effort | undefined,
): Reasoning | undefined {
  const { max_tokens: budget, enabled, exclude } = reasoning;
  const hidden = exclude === true ? { hidden: true } : {};
  if (enabled === false) return withPath({ effort: 'none' }, ['reasoning', 'enabled']);
  const inner = readEffort(reasoning['effort'], ['reasoning', 'effort']);
  const effort = inner ?? outer;
  if (typeof budget === 'number') {
    return withPath({ budgetTokens: budget, ...hidden }, ['reasoning', 'max_tokens']);
  }
  if (effort !== undefined) {
    const path = inner === undefined ? ['reasoning_effort'] : ['reasoning', 'effort'];
    return withPath({ effort, ...hidden }, path);
  }
  if (enabled === true) return withPath({ effort: 'medium', ...hidden }, ['reasoning', 'enabled']);
  return exclude === true ? { hidden: true } : undefined;
}

function readEffort(value: JsonObject[string], path: readonly string[]): Effort | undefined {
  if (value === undefined || value === null) return undefined;
  const effort = efforts.find((known) => known === value);
  if (effort === undefined) throw badValue(path, `must be one of ${efforts.join(', ')}`);
  return effort;
}

// `prompt_cache_retention: "24h"` requests the longest life that cache marks can have.

/** The conversation with longer marks. */
function keepLonger(conversation: Conversation): Conversation {
  const longer = <T extends { readonly cacheUntilHere?: CacheMark }>(marked: T): T => {
    if (marked.cacheUntilHere === undefined || marked.cacheUntilHere.ttl !== undefined) {
      return marked;
    }
    const mark = withPathOf(marked.cacheUntilHere, { ttl: '1h' });
    return withPathOf(marked, { ...marked, cacheUntilHere: mark });
  };
  const part = (each: Part): Part =>
    longer(
      each.type === 'tool-result'
        ? withPathOf(each, { ...each, parts: each.parts.map(part) })
        : each,
    );
  return {
    ...conversation,
    tools: conversation.tools.map(longer),
    system: conversation.system.map(part),
    turns: conversation.turns.map((turn) =>
      withPathOf(turn, { ...turn, parts: turn.parts.map(part) }),
    ),
  };
}

// Tools and the choice among them, current and deprecated form.

/** The arguments of a `custom` tool, whose input is one text. */
const freeTextSchema: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
};

function readTools(body: JsonObject): readonly Tool[] {
  const tools = (readArray(body, 'tools') ?? []).map((tool, i) =>
    withPath(readTool(tool, ['tools', i]), ['tools', i]),
  );
  const functions = (readArray(body, 'functions') ?? []).map((definition, i): Tool => {
    const path = ['functions', i];
    const read = readFunction(isObject(definition) ? definition : {}, path);
    return withPath({ ...read, extras: { 'openai-chat': legacyFunction } }, path);
  });
  const declared = [...tools, ...functions];
  return [...declared, ...readWebSearch(body[searchOptions], declared)];
}

function readTool(tool: Json, path: FieldPath): Tool {
  if (!isObject(tool)) throw badValue(path, 'must be an object');
  const type = tool['type'] ?? 'function';
  const definition = typeof type === 'string' ? tool[type] : undefined;
  if (type !== 'function' && type !== 'custom') {
    throw unsupported([...path, 'type'], `This model has no tool of the type '${String(type)}'.`);
  }
  if (!isObject(definition)) throw missing([...path, type]);
  const mark = readCacheMark(tool, path) ?? readCacheMark(definition, [...path, type]);
  const read =
    type === 'custom'
      ? readCustom(definition, [...path, 'custom'])
      : readFunction(definition, [...path, 'function']);
  return mark === undefined ? read : { ...read, cacheUntilHere: mark };
}

function readFunction(definition: JsonObject, path: FieldPath): Tool {
  const { strict } = definition;
  return {
    ...nameOf(definition, path),
    schema: withPath(readParameters(definition['parameters'], path), [...path, 'parameters']),
    ...(typeof strict === 'boolean' ? { strict } : {}),
  };
}

/** A grammar needs a model whose server enforces it (shared/request/responses-fields.ts). */
function readCustom(definition: JsonObject, path: FieldPath): Tool {
  const { format } = definition;
  const isFree = !isObject(format) || (format['type'] ?? 'text') === 'text';
  return {
    ...nameOf(definition, path),
    schema: freeTextSchema,
    freeText: true,
    ...(isFree ? {} : { extras: { 'openai-chat': { format } } }),
  };
}

function nameOf(
  definition: JsonObject,
  path: FieldPath,
): { readonly name: string; readonly description?: string } {
  const { name, description } = definition;
  if (typeof name !== 'string') throw missing([...path, 'name']);
  return {
    name,
    ...(typeof description === 'string' && description !== '' ? { description } : {}),
  };
}

/** Absent parameters mean an empty object. All keys of a schema are kept. */
function readParameters(parameters: Json | undefined, path: FieldPath): JsonObject {
  if (!isObject(parameters)) return { type: 'object', properties: {} };
  const { type } = parameters;
  if (type === undefined || type === null) return { ...parameters, type: 'object' };
  if (type !== 'object') {
    throw badValue([...path, 'parameters'], 'must be the schema of an object');
  }
  return parameters;
}

function readToolChoice(body: JsonObject): ToolChoice | undefined {
  const choice = body['tool_choice'];
  if (choice === undefined || choice === null) return readFunctionCall(body['function_call']);
  if (typeof choice === 'string') return readChoiceWord(choice);
  if (!isObject(choice)) throw badValue(['tool_choice'], 'must be a string or an object');
  if (choice['type'] === 'allowed_tools') return readAllowedTools(choice['allowed_tools']);
  const name = toolNameOf(choice);
  if (name === undefined) throw badValue(['tool_choice', 'type'], 'is not a known choice');
  return { type: 'tool', name };
}

function readChoiceWord(choice: string): ToolChoice {
  switch (choice) {
    case 'auto':
    case 'none':
    case 'required':
      return { type: choice };
    case 'any':
      return { type: 'required' };
    default:
      throw badValue(['tool_choice'], "must be 'none', 'auto', 'required' or an object");
  }
}

function readAllowedTools(allowed: Json | undefined): ToolChoice {
  if (!isObject(allowed)) throw missing(['tool_choice', 'allowed_tools']);
  const { mode, tools } = allowed;
  const names = (isArray(tools) ? tools : [])
    .map((tool) => (isObject(tool) ? toolNameOf(tool) : undefined))
    .filter((name) => name !== undefined);
  if (mode === 'required' && names.length === 0) {
    throw badValue(['tool_choice', 'allowed_tools', 'tools'], 'must hold at least one tool');
  }
  return { type: 'allowed', mode: mode === 'required' ? 'required' : 'auto', names };
}

/** `{type: "function", function: {name}}`, or the flat form of the Responses API. */
function toolNameOf(choice: JsonObject): string | undefined {
  const type = choice['type'] ?? 'function';
  if (type !== 'function' && type !== 'custom') return undefined;
  const named = choice[type];
  const name = isObject(named) ? named['name'] : choice['name'];
  return typeof name === 'string' ? name : undefined;
}

function readFunctionCall(call: Json | undefined): ToolChoice | undefined {
  const path = ['function_call'];
  if (call === 'none' || call === 'auto') return withPath({ type: call }, path);
  const name = isObject(call) ? call['name'] : undefined;
  return typeof name === 'string' ? withPath({ type: 'tool', name }, path) : undefined;
}

// Web search that the provider runs: a tool in messages, an
// option or a plugin here. Only where the operator allows it, since providers charge for it.

/** The type of the canonical tool that `web_search_options` is read as. */
const searchOptions = 'web_search_options';

/** @throws GatewayError if a function has the name of the search. */
function readWebSearch(options: Json | undefined, tools: readonly Tool[]): readonly Tool[] {
  if (!isObject(options)) return [];
  if (tools.some(({ name }) => name === 'web_search')) {
    throw unsupported([searchOptions], "A function of the name 'web_search' is in its way.");
  }
  const value = { ...options, type: searchOptions };
  const native = { dialect: 'openai-chat', value } as const;
  return [withPath({ name: 'web_search', schema: {}, native }, [searchOptions])];
}

/** Whether the call may use the model's own search. */
export function searchesByItself({ serverTools, webSearch }: UpstreamTraits): boolean {
  return serverTools === true && (webSearch === 'options' || webSearch === 'plugin');
}

const carried: ReadonlySet<string> = new Set(['type', 'name', 'user_location', 'cache_control']);

/** The members of a chat request that stand for a `web_search_…` tool of the messages API. */
export function writeWebSearch(
  tool: JsonObject,
  { webSearch }: UpstreamTraits,
  { notes, path }: { readonly notes: Notes; readonly path: FieldPath },
): JsonMembers {
  const { user_location: location } = tool;
  const located = webSearch === 'options' && isObject(location);
  for (const [key, value] of Object.entries(tool)) {
    if (value === null || (carried.has(key) && (key !== 'user_location' || located))) continue;
    notes.lost([...path, key], 'the search of this model has no such setting');
  }
  notes.changed([...path, 'type'], 'the model searches by itself');
  if (webSearch === 'plugin') return { plugins: [{ id: 'web' }] };
  if (!located) return { web_search_options: {} };
  const { type: _type, ...approximate } = location;
  return { web_search_options: { user_location: { type: 'approximate', approximate } } };
}
