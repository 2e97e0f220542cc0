/** Tools and the choice among them, current and deprecated form (wire/translation.md §1.5, §1.6). */
import type { Json, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { legacyFunction } from './answered-tools.ts';
import { readCacheMark } from './cache-marks.ts';
import { badValue, isArray, missing, readArray } from './fields.ts';
import { readWebSearch, searchOptions } from './web-search.ts';

/** The arguments of a `custom` tool, whose input is one text. */
const freeTextSchema: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
};

export function readTools(body: JsonObject): readonly Tool[] {
  const tools = (readArray(body, 'tools') ?? []).map((tool, i) => readTool(tool, ['tools', i]));
  const functions = (readArray(body, 'functions') ?? []).map((definition, i): Tool => ({
    ...readFunction(isObject(definition) ? definition : {}, ['functions', i]),
    extras: { 'openai-chat': legacyFunction },
  }));
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
  const mark = readCacheMark(tool) ?? readCacheMark(definition);
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
    schema: readParameters(definition['parameters'], path),
    ...(typeof strict === 'boolean' ? { strict } : {}),
  };
}

/** @throws GatewayError for a grammar: the constraint would be lost. */
function readCustom(definition: JsonObject, path: FieldPath): Tool {
  const format = definition['format'];
  if (isObject(format) && format['type'] !== undefined && format['type'] !== 'text') {
    throw unsupported([...path, 'format'], 'This model cannot be held to a grammar.');
  }
  return { ...nameOf(definition, path), schema: freeTextSchema, freeText: true };
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

/** No parameters means an empty object; every other key of a schema is kept. */
function readParameters(parameters: Json | undefined, path: FieldPath): JsonObject {
  if (!isObject(parameters)) return { type: 'object', properties: {} };
  const { type } = parameters;
  if (type === undefined || type === null) return { ...parameters, type: 'object' };
  if (type !== 'object') {
    throw badValue([...path, 'parameters'], 'must be the schema of an object');
  }
  return parameters;
}

export function readToolChoice(body: JsonObject): ToolChoice | undefined {
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
  const names = isArray(tools)
    ? tools.map((tool) => (isObject(tool) ? toolNameOf(tool) : undefined))
    : [];
  return {
    type: 'allowed',
    mode: mode === 'required' ? 'required' : 'auto',
    names: names.filter((name) => name !== undefined),
  };
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
  if (call === 'none' || call === 'auto') return { type: call };
  const name = isObject(call) ? call['name'] : undefined;
  return typeof name === 'string' ? { type: 'tool', name } : undefined;
}
