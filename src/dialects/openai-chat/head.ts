/**
 * The head of a request: what the gateway decides on, and what no provider could take. Both modes
 * pass here, so unknown fields and unknown part types are left alone: in relay they are the
 * upstream's business.
 */
import type { RequestHead } from '../../core/dialect.ts';
import { type FieldPath, GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject, type Json, type JsonObject, isArray } from '../../json/value.ts';
import {
  badValue,
  missing,
  readArray,
  readBoolean,
  readInteger,
  readNumber,
  readObject,
  readString,
  wrongType,
} from './fields.ts';

/** Keys that may not occur twice in a body. */
export const ownedKeys: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'tools',
  'n',
]);

const anyPositive = { min: 1, max: Number.MAX_SAFE_INTEGER };
/** 64 bits: what the API takes, and what clients draw. */
const anySeed = { min: -(2 ** 63), max: 2 ** 63 };
const maxModelLength = 512;
/** One call with n choices reserves n times the money. */
const maxChoices = 8;
/** Chat allows 4, other servers more; the writer of a translated request knows the real limit. */
const maxStops = 64;
const maxStopLength = 4096;
const maxSchemaLength = 512 * 1024;
const maxIdentityLength = 512;
/** Those of the API and those that engines add to it. */
const formats: ReadonlySet<string> = new Set([
  'text',
  'json_object',
  'json_schema',
  'grammar',
  'regex',
  'structural_tag',
]);
const controlCharacter = /\p{Cc}/u;

/**
 * Reads the head of a chat-completions request.
 * @throws GatewayError `invalid_request` or `too_large` with the path of the field.
 */
export function readHead(body: JsonObject): RequestHead {
  // Reads all members except messages and tools.
  const model = readModel(body);
  const stream = readBoolean(body, 'stream') ?? false;
  // The newer spelling wins; two that disagree are refused.
  const current = readInteger(body, 'max_completion_tokens', anyPositive);
  const deprecated = readInteger(body, 'max_tokens', anyPositive);
  if (current !== undefined && deprecated !== undefined && current !== deprecated) {
    throw invalidRequest(
      "'max_tokens' and 'max_completion_tokens' contradict each other; send only one of them.",
      ['max_tokens'],
      'invalid_value',
    );
  }
  const maxOutputTokens = current ?? deprecated;
  const wantsUsageFrame = readIncludeUsage(body);
  const choices = checkSampling(body);
  checkStop(body);
  for (const key of ['user', 'safety_identifier']) {
    const value = readString(body, key);
    if (value !== undefined && value.length > maxIdentityLength) {
      throw badValue([key], `must have at most ${maxIdentityLength} characters`);
    }
  }
  checkMetadata(body);
  checkResponseFormat(body);
  const begun = { model, stream, wantsUsageFrame, maxOutputTokens, choices };
  const messages = body['messages'];
  if (messages === undefined || messages === null) throw missing(['messages']);
  if (!isArray(messages)) throw wrongType(['messages'], 'an array', messages);
  if (messages.length === 0) throw badValue(['messages'], 'must hold at least one message');
  if (messages.length > maxMessages) {
    throw new GatewayError('too_large', `The request has more than ${maxMessages} messages.`, {
      path: ['messages'],
    });
  }
  const calls = new OpenCalls();
  for (let i = 0; i < messages.length; i++) check(messages[i], i, calls);
  calls.end();
  return finished(begun, body);
}

interface ReadOptions extends Pick<RequestHead, 'model' | 'stream' | 'wantsUsageFrame'> {
  readonly maxOutputTokens: number | undefined;
  readonly choices: number;
}

function finished(
  { model, stream, wantsUsageFrame, maxOutputTokens, choices }: ReadOptions,
  body: JsonObject,
): RequestHead {
  const { names, allKnown } = definedIn(body);
  checkChoice(body['tool_choice'], names, allKnown);
  checkFunctionCall(body['function_call'], names);
  return {
    model,
    stream,
    wantsUsageFrame,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(choices > 1 ? { choices } : {}),
    ...(requestsReasoning(body) ? { reasons: true } : {}),
  };
}

/** In the vendors' words for it; what says "none" in one of them is not examined closely. */
function requestsReasoning(body: JsonObject): boolean {
  const effort = body['reasoning_effort'];
  if (typeof effort === 'string') return effort !== 'none' && effort !== 'minimal';
  return (
    isObject(body['reasoning']) || isObject(body['thinking']) || body['enable_thinking'] === true
  );
}

function readModel(body: JsonObject): string {
  const model = readString(body, 'model');
  if (model === undefined) throw missing(['model']);
  if (model === '') throw badValue(['model'], 'must not be empty');
  if (model.length > maxModelLength) throw badValue(['model'], 'is too long to be a model name');
  if (controlCharacter.test(model)) {
    throw badValue(['model'], 'must not contain control characters');
  }
  return model;
}

function readIncludeUsage(body: JsonObject): boolean {
  const include = readObject(body, 'stream_options')?.['include_usage'];
  if (include === undefined || include === null) return false;
  if (typeof include !== 'boolean') {
    throw wrongType(['stream_options', 'include_usage'], 'a boolean', include);
  }
  return include;
}

const anyTemperature = { min: 0, max: 2 };
const anyShare = { min: 0, max: 1 };
/** Engines take -1 and 0 for "off". */
const anyTopK = { min: -1, max: Number.MAX_SAFE_INTEGER };
const anyPenalty = { min: -2, max: 2 };
const anyChoices = { min: 1, max: maxChoices };

/** @returns how many answers are wanted. */
function checkSampling(body: JsonObject): number {
  readNumber(body, 'temperature', anyTemperature);
  readNumber(body, 'top_p', anyShare);
  readInteger(body, 'top_k', anyTopK);
  readNumber(body, 'frequency_penalty', anyPenalty);
  readNumber(body, 'presence_penalty', anyPenalty);
  const choices = readInteger(body, 'n', anyChoices) ?? 1;
  readInteger(body, 'seed', anySeed);
  readBoolean(body, 'parallel_tool_calls');
  readString(body, 'reasoning_effort');
  return choices;
}

function checkStop(body: JsonObject): void {
  const stop = body['stop'];
  if (stop === undefined || stop === null) return;
  if (typeof stop === 'string') return checkStopText(stop, ['stop']);
  if (!isArray(stop)) throw wrongType(['stop'], 'a string or an array of strings', stop);
  if (stop.length > maxStops) throw badValue(['stop'], `must hold at most ${maxStops} strings`);
  stop.forEach((entry, i) => {
    if (typeof entry !== 'string') throw wrongType(['stop', i], 'a string', entry);
    checkStopText(entry, ['stop', i]);
  });
}

function checkStopText(text: string, path: readonly (string | number)[]): void {
  if (text === '') throw badValue(path, 'must not be empty');
  if (text.length > maxStopLength) {
    throw badValue(path, `must have at most ${maxStopLength} characters`);
  }
}

/** At most 16 pairs, keys of 64 and string values of 512 characters. */
function checkMetadata(body: JsonObject): void {
  const metadata = readObject(body, 'metadata');
  if (metadata === undefined) return;
  const entries = Object.entries(metadata);
  if (entries.length > 16) throw badValue(['metadata'], 'must hold at most 16 pairs');
  for (const [key, value] of entries) {
    if (key.length > 64) {
      throw badValue(['metadata'], 'must not have keys longer than 64 characters');
    }
    if (typeof value !== 'string') throw wrongType(['metadata', key], 'a string', value);
    if (value.length > 512) {
      throw badValue(['metadata', key], 'must have at most 512 characters');
    }
  }
}

function checkResponseFormat(body: JsonObject): void {
  const format = readObject(body, 'response_format');
  if (format === undefined) return;
  const type = format['type'];
  if (typeof type !== 'string') throw wrongType(['response_format', 'type'], 'a string', type);
  if (!formats.has(type)) throw badValue(['response_format', 'type'], 'is not a known format');
  if (type !== 'json_schema') return;
  const named = format['json_schema'];
  if (!isObject(named)) throw missing(['response_format', 'json_schema']);
  const schema = named['schema'];
  const path = ['response_format', 'json_schema', 'schema'];
  if (schema === undefined || schema === null) throw missing(path);
  if (!isObject(schema)) throw wrongType(path, 'an object', schema);
  if (JSON.stringify(schema).length > maxSchemaLength) {
    throw new GatewayError('too_large', 'The JSON schema is larger than 512 KiB.', { path });
  }
}

// Checks the messages of a request as strictly as every provider does, and no further.

const maxMessages = 50_000;

function check(message: Json | undefined, i: number, calls: OpenCalls): void {
  if (!isObject(message)) throw wrongType(['messages', i], 'an object', message);
  checkMessage(message, i);
  calls.see(message, i);
}

/**
 * An assistant message with calls is followed by one tool message per call, before anything else;
 * a tool message answers a call of that assistant message.
 */
class OpenCalls {
  #open: Set<string> | undefined;
  #at = 0;

  see(message: JsonObject, i: number): void {
    if (message['role'] === 'tool') return this.#answer(message, i);
    this.end();
    const calls = message['tool_calls'];
    if (message['role'] !== 'assistant' || !isArray(calls) || calls.length === 0) return;
    this.#open = new Set();
    this.#at = i;
    for (let j = 0; j < calls.length; j++) {
      const call = calls[j];
      const id = isObject(call) ? call['id'] : undefined;
      if (typeof id !== 'string') continue;
      if (this.#open.has(id)) {
        throw badValue(['messages', i, 'tool_calls', j, 'id'], 'stands twice in one message');
      }
      this.#open.add(id);
    }
  }

  /** The messages end here, or another turn begins. */
  end(): void {
    if (this.#open === undefined || this.#open.size === 0) return;
    throw invalidRequest(
      "An assistant message with 'tool_calls' must be followed by tool messages that answer each " +
        "'tool_call_id', before any other message.",
      ['messages', this.#at],
      'invalid_value',
    );
  }

  #answer(message: JsonObject, i: number): void {
    const id = message['tool_call_id'];
    if (typeof id === 'string' && this.#open?.delete(id) === true) return;
    throw invalidRequest(
      "A message with role 'tool' must answer a call in 'tool_calls' of the preceding assistant " +
        'message, and each call only once.',
      ['messages', i, 'tool_call_id'],
      'invalid_value',
    );
  }
}

function checkMessage(message: JsonObject, i: number): void {
  const role = message['role'];
  const content = message['content'];
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      return checkContent(content, i, true);
    case 'assistant':
      checkContent(content, i, false);
      return checkCalls(message['tool_calls'], i);
    case 'tool':
      if (typeof message['tool_call_id'] !== 'string') {
        throw missing(['messages', i, 'tool_call_id']);
      }
      return checkContent(content, i, true);
    case 'function':
      if (typeof message['name'] !== 'string') throw missing(['messages', i, 'name']);
      return checkContent(content, i, false);
    default:
      if (role === undefined || role === null) throw missing(['messages', i, 'role']);
      throw badValue(
        ['messages', i, 'role'],
        "must be one of 'system', 'developer', 'user', 'assistant', 'tool' and 'function'",
      );
  }
}

function checkContent(content: Json | undefined, i: number, required: boolean): void {
  if (typeof content === 'string') return;
  if (content === undefined || content === null) {
    if (required) throw wrongType(['messages', i, 'content'], 'a string or an array', content);
    return;
  }
  if (!isArray(content)) {
    throw wrongType(['messages', i, 'content'], 'a string or an array', content);
  }
  if (required && content.length === 0) {
    throw badValue(['messages', i, 'content'], 'must hold at least one part');
  }
  for (let j = 0; j < content.length; j++) checkPart(content[j], ['messages', i, 'content', j]);
}

function checkPart(part: Json | undefined, path: FieldPath): void {
  if (!isObject(part)) throw wrongType(path, 'an object', part);
  const type = part['type'];
  if (typeof type !== 'string') throw wrongType([...path, 'type'], 'a string', type);
  switch (type) {
    case 'text':
      return checkText(part['text'], [...path, 'text']);
    case 'refusal':
      return checkText(part['refusal'], [...path, 'refusal']);
    case 'image_url':
      return checkImage(part['image_url'], [...path, 'image_url']);
    case 'input_audio':
    case 'file':
      if (!isObject(part[type])) throw wrongType([...path, type], 'an object', part[type]);
      return;
    default:
      return;
  }
}

function checkText(value: Json | undefined, path: FieldPath): void {
  if (typeof value !== 'string') throw wrongType(path, 'a string', value);
}

/** `{url}`, or the bare string that many clients send; which addresses may travel is checked before (`body-media.ts`). */
function checkImage(value: Json | undefined, path: FieldPath): void {
  if (typeof value === 'string') return;
  if (!isObject(value)) throw wrongType(path, 'an object', value);
  const url = value['url'];
  if (typeof url !== 'string') throw wrongType([...path, 'url'], 'a string', url);
}

function checkCalls(calls: Json | undefined, i: number): void {
  if (calls === undefined || calls === null) return;
  if (!isArray(calls)) throw wrongType(['messages', i, 'tool_calls'], 'an array', calls);
  for (let j = 0; j < calls.length; j++) {
    const call = calls[j];
    const path = ['messages', i, 'tool_calls', j];
    if (!isObject(call)) throw wrongType(path, 'an object', call);
    if (typeof call['id'] !== 'string') throw missing([...path, 'id']);
    const kind = isObject(call['custom']) ? 'custom' : 'function';
    const called = call[kind];
    if (!isObject(called)) throw missing([...path, 'function']);
    const name = called['name'];
    if (typeof name !== 'string' || name === '') throw missing([...path, kind, 'name']);
    const field = kind === 'custom' ? 'input' : 'arguments';
    const text = called[field];
    if (text !== undefined && text !== null && typeof text !== 'string') {
      throw wrongType([...path, kind, field], 'a string', text);
    }
  }
}

// Checks tool definitions and the choice among them, in the current and the old form.

const maxTools = 512;
/** The widest rule among the providers; a narrower one is met by renaming. */
const toolName = /^[a-zA-Z0-9_.:-]{1,128}$/;
const choiceWords: ReadonlySet<string> = new Set(['none', 'auto', 'required', 'any']);

interface Defined {
  readonly names: ReadonlySet<string>;
  /** False when a tool has a type that only its provider knows, so its name is unknown here. */
  readonly allKnown: boolean;
}

const nothingDefined: Defined = { names: new Set(), allKnown: true };

/** The tools and functions of a request, all of them checked. */
function definedIn(body: JsonObject): Defined {
  const tools = readArray(body, 'tools');
  if (tools === undefined && (body['functions'] ?? null) === null) return nothingDefined;
  const names = new Set<string>();
  const allKnown = checkDefinitions(tools ?? [], names);
  checkFunctions(readArray(body, 'functions') ?? [], names);
  return { names, allKnown };
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

/** @returns whether all names are known. */
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
