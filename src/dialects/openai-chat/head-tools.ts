/** Checks tool definitions and the choice among them, in the current and the old form (B56, B57). */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type FieldPath, invalidRequest } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { badValue, isArray, missing, readArray, wrongType } from './fields.ts';

const maxTools = 512;
/** The widest rule among the providers; a narrower one is met by renaming (B7). */
const toolName = /^[a-zA-Z0-9_.:-]{1,128}$/;
const choiceWords: ReadonlySet<string> = new Set(['none', 'auto', 'required', 'any']);

/** @throws GatewayError `invalid_request` with the path of the first fault. */
export function checkTools(body: JsonObject): void {
  const names = new Set<string>();
  const allKnown = checkDefinitions(readArray(body, 'tools') ?? [], names);
  checkFunctions(readArray(body, 'functions') ?? [], names);
  checkChoice(body['tool_choice'], names, allKnown);
  checkFunctionCall(body['function_call'], names);
}

/** False when a tool has a type that only its provider knows, so its name is unknown here. */
function checkDefinitions(tools: readonly Json[], names: Set<string>): boolean {
  if (tools.length > maxTools) throw badValue(['tools'], `must hold at most ${maxTools} tools`);
  let allKnown = true;
  tools.forEach((tool, i) => {
    if (!isObject(tool)) throw wrongType(['tools', i], 'an object', tool);
    const type = tool['type'] ?? 'function';
    if (typeof type !== 'string') throw wrongType(['tools', i, 'type'], 'a string', type);
    if (type !== 'function' && type !== 'custom') {
      allKnown = false;
      return;
    }
    const definition = tool[type];
    if (!isObject(definition)) throw missing(['tools', i, type]);
    checkDefinition(definition, ['tools', i, type], names);
  });
  return allKnown;
}

function checkFunctions(functions: readonly Json[], names: Set<string>): void {
  if (functions.length > maxTools) {
    throw badValue(['functions'], `must hold at most ${maxTools} functions`);
  }
  functions.forEach((definition, i) => {
    if (!isObject(definition)) throw wrongType(['functions', i], 'an object', definition);
    checkDefinition(definition, ['functions', i], names);
  });
}

function checkDefinition(definition: JsonObject, path: FieldPath, names: Set<string>): void {
  const { name, description, parameters } = definition;
  if (name === undefined || name === null) throw missing([...path, 'name']);
  if (typeof name !== 'string') throw wrongType([...path, 'name'], 'a string', name);
  if (!toolName.test(name)) {
    throw badValue(
      [...path, 'name'],
      'must have 1 to 128 letters, digits, underscores or hyphens and nothing else',
    );
  }
  if (names.has(name)) throw badValue([...path, 'name'], 'is the name of another tool as well');
  names.add(name);
  if (description !== undefined && description !== null && typeof description !== 'string') {
    throw wrongType([...path, 'description'], 'a string', description);
  }
  if (parameters !== undefined && parameters !== null && !isObject(parameters)) {
    throw wrongType([...path, 'parameters'], 'an object', parameters);
  }
}

function checkChoice(
  choice: Json | undefined,
  names: ReadonlySet<string>,
  allKnown: boolean,
): void {
  if (choice === undefined || choice === null) return;
  if (typeof choice === 'string') return checkChoiceWord(choice, names.size > 0 || !allKnown);
  if (!isObject(choice)) throw wrongType(['tool_choice'], 'a string or an object', choice);
  for (const { name, path } of chosenNames(choice)) {
    if (typeof name !== 'string') throw missing(path);
    if (allKnown && !names.has(name)) throw noSuchTool(name, path);
  }
}

function checkChoiceWord(choice: string, hasTools: boolean): void {
  if (!choiceWords.has(choice)) {
    throw badValue(['tool_choice'], "must be 'none', 'auto', 'required' or an object");
  }
  if ((choice === 'required' || choice === 'any') && !hasTools) {
    throw badValue(['tool_choice'], "is only allowed when 'tools' are given");
  }
}

interface ChosenName {
  readonly name: Json | undefined;
  readonly path: FieldPath;
}

function chosenNames(choice: JsonObject): readonly ChosenName[] {
  const type = choice['type'];
  if (type === 'allowed_tools') {
    const allowed = choice['allowed_tools'];
    const tools = isObject(allowed) ? allowed['tools'] : undefined;
    if (!isArray(tools)) throw missing(['tool_choice', 'allowed_tools', 'tools']);
    return tools.flatMap((tool, i) =>
      isObject(tool) ? chosenName(tool, ['tool_choice', 'allowed_tools', 'tools', i]) : [],
    );
  }
  return chosenName(choice, ['tool_choice']);
}

function chosenName(choice: JsonObject, path: FieldPath): readonly ChosenName[] {
  const type = choice['type'] ?? 'function';
  if (type !== 'function' && type !== 'custom') return [];
  const named = choice[type];
  const name = isObject(named) ? named['name'] : choice['name'];
  return [{ name, path: [...path, type, 'name'] }];
}

function checkFunctionCall(call: Json | undefined, names: ReadonlySet<string>): void {
  if (call === undefined || call === null) return;
  if (typeof call === 'string') {
    if (call !== 'none' && call !== 'auto') {
      throw badValue(['function_call'], "must be 'none', 'auto' or an object");
    }
    return;
  }
  if (!isObject(call)) throw wrongType(['function_call'], 'a string or an object', call);
  const name = call['name'];
  if (typeof name !== 'string') throw missing(['function_call', 'name']);
  if (!names.has(name)) throw noSuchTool(name, ['function_call', 'name']);
}

function noSuchTool(name: string, path: FieldPath): Error {
  const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
  return invalidRequest(
    `The tool '${shown}' is chosen but not among the tools.`,
    path,
    'invalid_value',
  );
}
