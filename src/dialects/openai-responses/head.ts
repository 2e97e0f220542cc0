/**
 * Checks the head of a Responses request: members that the gateway decides on, and faults that every provider refuses.
 * Relayed and translated requests both pass here. Unknown fields and items are not checked, since a relayed request may
 * have members that only its upstream knows.
 */
import type { RequestHead, RequestState } from '../../core/dialect.ts';
import { type FieldPath, GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../json/value.ts';
import {
  badValue,
  type Field,
  isPresent,
  missing,
  readArray,
  readBoolean,
  readInteger,
  readNumber,
  readObject,
  readString,
  requireString,
  wrongType,
} from './fields.ts';
import { callKindOf, referableIds, outputKindOf } from './items.ts';

/** Keys that may occur only once in a body (B39). */
export const ownedKeys: ReadonlySet<string> = new Set([
  'model',
  'input',
  'stream',
  'store',
  'previous_response_id',
  'max_output_tokens',
  'include',
  'background',
  'conversation',
  'tools',
]);

const maxModelLength = 512;
const maxItems = 50_000;
const maxTools = 512;
const maxIdentityLength = 512;
const maxCallIdLength = 1024;
const maxSchemaLength = 512 * 1024;
/** The widest rule of all providers. The gateway renames tools for a provider with a narrower rule. */
const toolName = /^[a-zA-Z0-9_.:-]{1,128}$/;
const controlCharacter = /\p{Cc}/u;
const roles: ReadonlySet<string> = new Set(['user', 'system', 'developer', 'assistant']);

/**
 * @throws GatewayError `invalid_request` or `too_large` with the path of the field.
 */
export function readHead(body: JsonObject): RequestHead {
  const model = readModel(body);
  const stream = readBoolean({ of: body, key: 'stream' }) ?? false;
  const state = readState(body);
  const maxOutputTokens = readInteger({ of: body, key: 'max_output_tokens' }, atLeast(1));
  checkOptions(body);
  checkTools(readArray({ of: body, key: 'tools' }) ?? [], ['tools'], new Set());
  checkInput(body, state);
  return {
    model,
    stream,
    wantsUsageFrame: true,
    state,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(requestsReasoning(body) ? { reasons: true } : {}),
  };
}

function atLeast(min: number): { readonly min: number; readonly max: number } {
  return { min, max: Number.MAX_SAFE_INTEGER };
}

function readModel(body: JsonObject): string {
  const model = requireString({ of: body, key: 'model' });
  if (model === '') throw badValue(['model'], 'must not be empty');
  if (model.length > maxModelLength) throw badValue(['model'], 'is too long to be a model name');
  if (controlCharacter.test(model)) {
    throw badValue(['model'], 'must not contain control characters');
  }
  return model;
}

function requestsReasoning({ reasoning }: JsonObject): boolean {
  const effort = isObject(reasoning) ? reasoning['effort'] : undefined;
  return typeof effort === 'string' && effort !== 'none';
}

/**
 * Reads whether the response is stored, and the ids that the request refers to.
 * @throws GatewayError for state that the gateway never stores.
 */
export function readState(body: JsonObject): RequestState {
  const store = readBoolean({ of: body, key: 'store' });
  if (readBoolean({ of: body, key: 'background' }) === true) {
    throw refused(
      'background',
      'Responses in the background are not supported here; leave `background` out and stream the answer instead.',
    );
  }
  if (isPresent(body['conversation'])) {
    throw refused(
      'conversation',
      'Conversations are not kept here; send all items in `input`, or use `previous_response_id`.',
    );
  }
  const previous = readString({ of: body, key: 'previous_response_id' });
  const { input } = body;
  const itemIds = store === false || !isArray(input) ? [] : referableIds(input);
  return {
    store: store ?? true,
    itemReferences: referencesIn(input),
    ...(itemIds.length === 0 ? {} : { itemIds: itemIds.filter((id) => id !== undefined) }),
    items: countItems(input),
    ...(previous === undefined ? {} : { previousResponseId: previous }),
  };
}

function refused(member: string, why: string): GatewayError {
  return invalidRequest(why, [member], 'unsupported_parameter');
}

/** The number of input items. A text counts as one. */
function countItems(input: Json | undefined): number {
  if (isArray(input)) return input.length;
  return isPresent(input) ? 1 : 0;
}

/** Ids of the item references, in order. */
function referencesIn(input: Json | undefined): readonly string[] {
  if (!isArray(input)) return [];
  return input.flatMap((item) => {
    const id = isObject(item) ? referenceOf(item) : undefined;
    return id === undefined ? [] : [id];
  });
}

/** The id of an `item_reference`, whose type is optional. Undefined for any other item. */
export function referenceOf({ type, role, id }: JsonObject): string | undefined {
  if (typeof id !== 'string') return undefined;
  if (type === 'item_reference') return id;
  return !isPresent(type) && !isPresent(role) ? id : undefined;
}

function checkOptions(body: JsonObject): void {
  readNumber({ of: body, key: 'temperature' }, { min: 0, max: 2 });
  readNumber({ of: body, key: 'top_p' }, { min: 0, max: 1 });
  readInteger({ of: body, key: 'top_logprobs' }, { min: 0, max: 20 });
  readInteger({ of: body, key: 'max_tool_calls' }, atLeast(0));
  readBoolean({ of: body, key: 'parallel_tool_calls' });
  readString({ of: body, key: 'prompt_cache_key' }, maxIdentityLength);
  readString({ of: body, key: 'safety_identifier' }, maxIdentityLength);
  readString({ of: body, key: 'user' }, maxIdentityLength);
  readString({ of: body, key: 'truncation' });
  readString({ of: body, key: 'service_tier' });
  readObject({ of: body, key: 'stream_options' });
  checkStrings({ of: body, key: 'include' });
  checkMetadata(body);
  checkReasoning(body);
  checkText(body);
  const { instructions } = body;
  // A response object that a client sends back has the items of its prompt template here.
  if (isPresent(instructions) && typeof instructions !== 'string' && !isArray(instructions)) {
    throw wrongType(['instructions'], 'a string', instructions);
  }
  if (isArray(instructions)) {
    instructions.forEach((item, i) => {
      if (!isObject(item)) throw wrongType(['instructions', i], 'an object', item);
    });
  }
}

function checkStrings(field: Field): void {
  const list = readArray(field) ?? [];
  list.forEach((entry, i) => {
    if (typeof entry !== 'string') throw wrongType([field.key, i], 'a string', entry);
  });
}

/** At most 16 pairs, keys of 64 and string values of 512 characters. */
function checkMetadata(body: JsonObject): void {
  const entries = Object.entries(readObject({ of: body, key: 'metadata' }) ?? {});
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

function checkReasoning(body: JsonObject): void {
  const reasoning = readObject({ of: body, key: 'reasoning' });
  if (reasoning === undefined) return;
  const at = ['reasoning'];
  for (const key of ['effort', 'summary', 'generate_summary', 'context', 'mode']) {
    readString({ of: reasoning, key, at });
  }
}

function checkText(body: JsonObject): void {
  const text = readObject({ of: body, key: 'text' });
  if (text === undefined) return;
  readString({ of: text, key: 'verbosity', at: ['text'] });
  const format = readObject({ of: text, key: 'format', at: ['text'] });
  if (format === undefined) return;
  const at = ['text', 'format'];
  const type = requireString({ of: format, key: 'type', at });
  if (type !== 'json_schema') return;
  requireString({ of: format, key: 'name', at });
  const schema = readObject({ of: format, key: 'schema', at });
  if (schema === undefined) throw missing([...at, 'schema']);
  if (JSON.stringify(schema).length > maxSchemaLength) {
    throw new GatewayError('too_large', 'The JSON schema is larger than 512 KiB.', {
      path: [...at, 'schema'],
    });
  }
}

// Tools: only names and types are checked, since each provider defines its own hosted tools.

/** @throws GatewayError `invalid_request` with the path of the first fault. */
function checkTools(tools: readonly Json[], at: FieldPath, names: Set<string>): void {
  if (tools.length > maxTools) throw badValue(at, `must hold at most ${maxTools} tools`);
  tools.forEach((tool, i) => {
    const path = [...at, i];
    if (!isObject(tool)) throw wrongType(path, 'an object', tool);
    const type = requireString({ of: tool, key: 'type', at: path });
    if (type === 'function' || type === 'custom') return checkNamed(tool, path, names);
    if (type !== 'namespace') return;
    const name = requireString({ of: tool, key: 'name', at: path });
    if (!toolName.test(name)) throw badValue([...path, 'name'], nameRule);
    const inner = readArray({ of: tool, key: 'tools', at: path });
    if (inner === undefined) throw missing([...path, 'tools']);
    checkTools(inner, [...path, 'tools'], new Set());
  });
}

const nameRule = 'must have 1 to 128 letters, digits, underscores or hyphens and nothing else';

function checkNamed(tool: JsonObject, path: FieldPath, names: Set<string>): void {
  const name = requireString({ of: tool, key: 'name', at: path });
  if (!toolName.test(name)) throw badValue([...path, 'name'], nameRule);
  if (names.has(name)) throw badValue([...path, 'name'], 'is the name of another tool as well');
  names.add(name);
  readString({ of: tool, key: 'description', at: path });
  readObject({ of: tool, key: 'parameters', at: path });
  readBoolean({ of: tool, key: 'strict', at: path });
  readObject({ of: tool, key: 'format', at: path });
}

// Input items: checked as strictly as OpenAI's service does.

function checkInput(body: JsonObject, state: RequestState): void {
  const { input } = body;
  if (!isPresent(input)) {
    // A prompt template has the messages itself.
    const has = state.previousResponseId !== undefined || isObject(body['prompt']);
    if (!has) throw missing(['input']);
    return;
  }
  if (typeof input === 'string') return;
  if (!isArray(input)) throw wrongType(['input'], 'a string or an array', input);
  if (input.length > maxItems) {
    const why = `The request has more than ${maxItems} items.`;
    throw new GatewayError('too_large', why, { path: ['input'] });
  }
  for (let i = 0; i < input.length; i += 1) checkItem(input[i], ['input', i]);
  // A stored response that the request refers to may have the other half of a pair.
  const complete = state.previousResponseId === undefined && state.itemReferences.length === 0;
  if (complete) checkPairs(input);
}

function checkItem(item: Json | undefined, path: FieldPath): void {
  if (!isObject(item)) throw wrongType(path, 'an object', item);
  const type = readString({ of: item, key: 'type', at: path });
  if (type === undefined && referenceOf(item) !== undefined) return;
  if (type === undefined || type === 'message') return checkMessage(item, path);
  if (type === 'reasoning') return checkReasoningItem(item, path);
  if (type === 'item_reference') return void requireString({ of: item, key: 'id', at: path });
  if (type === 'additional_tools') {
    return checkTools(
      readArray({ of: item, key: 'tools', at: path }) ?? [],
      [...path, 'tools'],
      new Set(),
    );
  }
  if (callKindOf(type) !== undefined) return checkCall(item, type, path);
  if (outputKindOf(type) !== undefined) checkOutput(item, path);
}

function checkMessage(item: JsonObject, path: FieldPath): void {
  const role = requireString({ of: item, key: 'role', at: path });
  if (!roles.has(role)) {
    throw badValue(
      [...path, 'role'],
      "must be one of 'user', 'assistant', 'system' and 'developer'",
    );
  }
  const { content } = item;
  if (!isPresent(content)) throw missing([...path, 'content']);
  checkContent(content, [...path, 'content']);
}

function checkContent(content: Json, path: FieldPath): void {
  if (typeof content === 'string') return;
  if (!isArray(content)) throw wrongType(path, 'a string or an array', content);
  for (let j = 0; j < content.length; j += 1) checkPart(content[j], [...path, j]);
}

function checkPart(part: Json | undefined, path: FieldPath): void {
  if (!isObject(part)) throw wrongType(path, 'an object', part);
  const type = requireString({ of: part, key: 'type', at: path });
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      requireString({ of: part, key: 'text', at: path });
      return;
    case 'refusal':
      requireString({ of: part, key: 'refusal', at: path });
      return;
    case 'input_image':
      readString({ of: part, key: 'detail', at: path });
      return requireOneOf(part, path, ['image_url', 'file_id']);
    case 'input_file':
      readString({ of: part, key: 'filename', at: path });
      return requireOneOf(part, path, ['file_data', 'file_url', 'file_id']);
    default:
  }
}

/** Checks that one of these members has the content of a part. */
function requireOneOf(
  part: JsonObject,
  path: FieldPath,
  keys: readonly [string, ...string[]],
): void {
  const given = keys.filter((key) => readString({ of: part, key, at: path }) !== undefined);
  if (given.length === 0) throw missing([...path, keys[0]]);
}

function checkReasoningItem(item: JsonObject, path: FieldPath): void {
  readString({ of: item, key: 'encrypted_content', at: path });
  for (const key of ['summary', 'content']) {
    const parts = readArray({ of: item, key, at: path }) ?? [];
    parts.forEach((part, j) => {
      if (!isObject(part)) throw wrongType([...path, key, j], 'an object', part);
    });
  }
}

function checkCall(item: JsonObject, type: string, path: FieldPath): void {
  const server = type === 'tool_search_call' && !isPresent(item['call_id']);
  if (!server) readCallId(item, path);
  if (type === 'function_call') {
    requireString({ of: item, key: 'name', at: path });
    requireString({ of: item, key: 'arguments', at: path });
  } else if (type === 'custom_tool_call') {
    requireString({ of: item, key: 'name', at: path });
    requireString({ of: item, key: 'input', at: path });
  }
}

/** A result without `call_id`, which Codex injects, is translated as text. */
function checkOutput(item: JsonObject, path: FieldPath): void {
  if (isPresent(item['call_id'])) readCallId(item, path);
  const { output } = item;
  if (item['type'] === 'tool_search_output') {
    readArray({ of: item, key: 'tools', at: path });
    return;
  }
  if (isPresent(output) && typeof output !== 'string' && !isArray(output) && !isObject(output)) {
    throw wrongType([...path, 'output'], 'a string or an array', output);
  }
  if (isArray(output) && item['type'] !== 'shell_call_output') {
    checkContent(output, [...path, 'output']);
  }
}

function readCallId(item: JsonObject, at: FieldPath): string {
  const field = { of: item, key: 'call_id', at };
  const id = requireString(field);
  if (id === '') throw badValue([...at, 'call_id'], 'must not be empty');
  if (id.length > maxCallIdLength) {
    throw badValue([...at, 'call_id'], `must have at most ${maxCallIdLength} characters`);
  }
  return id;
}

/**
 * Calls that were cut off and have no result, each with the reasoning before it. No client ran them, and services
 * refuse a call without its result. The history after an incomplete response contains them. The reasoning is not among
 * them if a remaining item of the turn follows: services refuse that item without its reasoning.
 */
export function abandonedItems(input: readonly Json[]): ReadonlySet<Json> {
  const abandoned = new Set<Json>();
  if (!input.some(isCutCall)) return abandoned;
  const results = input.filter(
    (item) => isObject(item) && outputKindOf(item['type']) !== undefined,
  );
  const answered = new Set(results.map((item) => (isObject(item) ? pairIdOf(item) : undefined)));
  /** Whether the items after this one, in the same turn of the model, are cut off or remain. */
  let behind = { cut: false, kept: false };
  for (const item of input.toReversed()) {
    if (isObject(item) && item['type'] === 'reasoning') {
      if (behind.cut && !behind.kept) abandoned.add(item);
    } else if (isCutCall(item) && !answered.has(pairIdOf(item))) {
      abandoned.add(item);
      behind.cut = true;
    } else if (isModelOutput(item)) behind.kept = true;
    else behind = { cut: false, kept: false };
  }
  return abandoned;
}

/** The note for abandoned items. */
export const abandonedNote = 'the call was cut off, and has no result';

function isCutCall(item: Json): item is JsonObject {
  return (
    isObject(item) && item['status'] === 'incomplete' && callKindOf(item['type']) !== undefined
  );
}

/** A call, of the client's tools or of hosted ones, or a message of the model. */
function isModelOutput(item: Json): boolean {
  return isObject(item) && (item['role'] === 'assistant' || textOf(item['type']).endsWith('_call'));
}

/**
 * Checks that each call has one later result, and each result an earlier call.
 * @throws GatewayError `invalid_request` in the wording of OpenAI's service.
 */
export function checkPairs(input: readonly Json[]): void {
  const called = new Set<string>();
  const open = new Set<string>();
  const abandoned = abandonedItems(input);
  for (const item of input) {
    if (!isObject(item) || abandoned.has(item)) continue;
    const id = pairIdOf(item);
    if (id === undefined) continue;
    if (callKindOf(item['type']) !== undefined) {
      if (called.has(id)) throw unpaired(`The call id ${shownId(id)} is used by two calls.`);
      called.add(id);
      open.add(id);
    } else if (!called.has(id)) {
      throw unpaired(`No tool call found for function call output with call_id ${shownId(id)}.`);
    } else if (!open.delete(id)) {
      throw unpaired(`Two outputs were given for the call with call_id ${shownId(id)}.`);
    }
  }
  const [first] = open;
  if (first !== undefined) {
    throw unpaired(`No tool output found for function call ${shownId(first)}.`);
  }
}

/** The id that a call and its result share. Undefined for other items, and for results that name no call. */
export function pairIdOf(item: JsonObject): string | undefined {
  const { type } = item;
  if (callKindOf(type) === undefined && outputKindOf(type) === undefined) return undefined;
  const id = textOf(item['call_id']);
  if (id !== '') return id;
  // The published schema of local shell outputs names the call in `id`.
  return type === 'local_shell_call_output' ? textOf(item['id']) || undefined : undefined;
}

function unpaired(message: string): GatewayError {
  return invalidRequest(message, ['input']);
}

function shownId(id: string): string {
  return id.length > 128 ? `${id.slice(0, 128)}…` : id;
}
