/**
 * Items of the Responses API, for both halves of the dialect: their types, the prefixes of their ids, and the names in
 * `extras['openai-responses']` of members that the canonical form does not have.
 */
import type { DialectId, Extras, PartBase } from '../../core/conversation.ts';
import { tryParseInnerObject } from '../../json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { begunText, freeText, truncatedInput } from '../shared/request/tools.ts';

export const dialectId = 'openai-responses' satisfies DialectId;

/** How the client runs a tool. It decides the item type of a call. */
export type CallKind =
  'function' | 'custom' | 'tool_search' | 'local_shell' | 'shell' | 'apply_patch';

interface CallItem {
  readonly type: string;
  readonly output: string;
  readonly prefix: string;
}

/** The item types of a call and of its result, and the prefix of the call's item id. */
export const callItems: { readonly [K in CallKind]: CallItem } = {
  function: { type: 'function_call', output: 'function_call_output', prefix: 'fc_' },
  custom: { type: 'custom_tool_call', output: 'custom_tool_call_output', prefix: 'ctc_' },
  tool_search: { type: 'tool_search_call', output: 'tool_search_output', prefix: 'tsc_' },
  local_shell: { type: 'local_shell_call', output: 'local_shell_call_output', prefix: 'lsh_' },
  shell: { type: 'shell_call', output: 'shell_call_output', prefix: 'sh_' },
  apply_patch: { type: 'apply_patch_call', output: 'apply_patch_call_output', prefix: 'apc_' },
};

const kinds: readonly CallKind[] = [
  'function',
  'custom',
  'tool_search',
  'local_shell',
  'shell',
  'apply_patch',
];

const kindsByCall = new Map(kinds.map((kind) => [callItems[kind].type, kind]));
const kindsByOutput = new Map(kinds.map((kind) => [callItems[kind].output, kind]));

/** The kind of a call by its item type. Undefined for an item that is no call of a client's tool. */
export function callKindOf(type: Json | undefined): CallKind | undefined {
  return typeof type === 'string' ? kindsByCall.get(type) : undefined;
}

/** The kind of the call that an item of this type answers. */
export function outputKindOf(type: Json | undefined): CallKind | undefined {
  return typeof type === 'string' ? kindsByOutput.get(type) : undefined;
}

export function isCallKind(value: Json | undefined): value is CallKind {
  return kinds.some((kind) => kind === value);
}

/** Prefixes of the ids of all other items that are written. */
export const idPrefixes = {
  response: 'resp_',
  message: 'msg_',
  reasoning: 'rs_',
  search: 'ws_',
} as const;

const ownResponseId = /^resp_[A-Za-z0-9]{24}$/;

/** Whether the id has the form that the gateway gives its own ids of responses. */
export function isOwnResponseId(id: string): boolean {
  return ownResponseId.test(id);
}

/** The form that the service accepts as the id of an item. */
const itemId = /^[A-Za-z0-9_-]{1,64}$/;

/** Whether an id is valid for an item with this id prefix. */
export function isItemId(id: Json | undefined, prefix: string): id is string {
  return typeof id === 'string' && id.startsWith(prefix) && itemId.test(id);
}

/** Ids that may repeat while a response is stored: Ollama draws from a million numbers, other servers count. */
const repeated = /^\D*\d{1,12}$/;

/** Whether a later request can name an item of a stored response by the id that its upstream gave it. */
export function isStableItemId(id: Json | undefined): id is string {
  return typeof id === 'string' && itemId.test(id) && !repeated.test(id);
}

const madeForm = /^[a-z]{1,5}_([A-Za-z0-9]{1,40})_[io]\d{1,6}$/;

/**
 * An id that names an item by its position in a stored response. It needs no index in the store.
 * @param position `i` for input or `o` for output, and the item's number there
 */
export function positionalId({ type }: JsonObject, response: string, position: string): string {
  return `${itemPrefix(type)}${response.slice(idPrefixes.response.length)}_${position}`;
}

/** The response of such an id. Undefined for an id of another form. */
export function responseOf(id: string): string | undefined {
  const [, response] = madeForm.exec(id) ?? [];
  return response === undefined ? undefined : idPrefixes.response + response;
}

/**
 * The maximum number of items of a request that can be found by their own id. The store writes a row for each, and many
 * clients send their whole history each time, so only the last items are indexed. An earlier request indexed the
 * others.
 */
const maxReferable = 100;

/** The own id of each item, if a later request can name the item by it. Of two items with one id, the later has it. */
export function referableIds(items: readonly Json[]): readonly (string | undefined)[] {
  const ids = new Set<string>();
  const named = items.toReversed().map((item) => {
    const id = isObject(item) ? item['id'] : undefined;
    if (ids.size === maxReferable || !isStableItemId(id) || ids.has(id)) return undefined;
    if (responseOf(id) !== undefined) return undefined;
    ids.add(id);
    return id;
  });
  return named.toReversed();
}

/** The prefix of the ids of an item's type. */
export function itemPrefix(type: Json | undefined): string {
  const call = callKindOf(type);
  if (call !== undefined) return callItems[call].prefix;
  const output = outputKindOf(type);
  if (output !== undefined) return callItems[output].prefix.replace('_', 'o_');
  switch (type) {
    case 'reasoning':
      return idPrefixes.reasoning;
    case 'web_search_call':
      return idPrefixes.search;
    case 'message':
    case undefined:
    case null:
      return idPrefixes.message;
    default:
      return 'item_';
  }
}

/**
 * The output index under which the stream sent each item of its last event. Undefined for an item that it did not send.
 * @param seen output indexes with the first form of each item
 */
export function streamedIndexes(
  output: readonly JsonObject[],
  seen: readonly (readonly [output: number, first: JsonObject])[],
): readonly (number | undefined)[] {
  const left = new Map(seen);
  const found: (number | undefined)[] = output.map(() => undefined);
  // Some servers give two items of one answer the same id, so each streamed item is taken once.
  for (const isAlike of [isSame, isOfOneType]) {
    for (const isInPlace of [true, false]) {
      output.forEach((item, index) => {
        if (found[index] !== undefined) return;
        const known = [...left].find(
          ([at, first]) => (at === index || !isInPlace) && isAlike(first, item),
        );
        if (known === undefined) return;
        [found[index]] = known;
        left.delete(known[0]);
      });
    }
  }
  return found;
}

function isOfOneType(first: JsonObject, item: JsonObject): boolean {
  return first['type'] === item['type'];
}

/** Whether two items are forms of the same one, by their type and ids. */
function isSame(first: JsonObject, { type, id, call_id: call }: JsonObject): boolean {
  if (first['type'] !== type) return false;
  const named = typeof id === 'string' && id !== '' && id === first['id'];
  return named || (typeof call === 'string' && call !== '' && call === first['call_id']);
}

/**
 * Members of `extras['openai-responses']`. On a part: `id`, `status`, `phase`, `caller` and `created_by` of its item,
 * `begins` on the first text of a message,
 * `kind` and `namespace` of a call, `summary` (how many parts the text was made of) and `content` of reasoning,
 * `detail` of an image. On a tool: `kind`, `namespace`, the bare `name`, and the `format` of a free text.
 */
export interface ItemExtras {
  readonly id?: string;
  readonly status?: string;
  readonly phase?: string;
  readonly begins?: true;
  readonly kind?: CallKind;
  readonly namespace?: string;
  readonly name?: string;
  readonly format?: JsonObject;
  readonly summary?: number;
  readonly content?: readonly Json[];
  readonly detail?: string;
}

/** This dialect's extras of a part or tool; empty if there are none. */
export function itemExtras(value: { readonly extras?: Extras }): JsonObject {
  return value.extras?.[dialectId] ?? {};
}

/** Extras of a part or tool with the members that are defined; empty if there are none. */
export function withItemExtras(members: {
  readonly [name: string]: Json | undefined;
}): Pick<PartBase, 'extras'> {
  const kept = Object.entries(members).filter(([, value]) => value !== undefined);
  return kept.length === 0 ? {} : { extras: { [dialectId]: Object.fromEntries(kept) } };
}

// Calls: the canonical form has one JSON text, each item type has its own members.

/** The canonical arguments of a call's item. */
export function argumentsOf(kind: CallKind, item: JsonObject): string {
  switch (kind) {
    case 'function':
      return writtenText(item['arguments']);
    case 'custom':
      return JSON.stringify({ input: writtenText(item['input']) });
    case 'tool_search':
      return writtenText(item['arguments'] ?? {});
    case 'local_shell':
    case 'shell': {
      const { type: _type, ...action } = isObject(item['action']) ? item['action'] : {};
      return JSON.stringify(action);
    }
    case 'apply_patch':
      return JSON.stringify({ operation: item['operation'] ?? {} });
    default:
      return kind satisfies never;
  }
}

/** A text that the model wrote. Some servers parse it and send the parsed value. */
export function writtenText(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/**
 * The members of a call's item that contain its arguments, without the `name` of functions and free texts. Undefined if
 * the arguments do not fit the kind.
 */
export function callMembers(kind: CallKind, argumentsJson: string): JsonObject | undefined {
  switch (kind) {
    case 'function':
      return { arguments: argumentsJson.trim() === '' ? '{}' : argumentsJson };
    case 'custom':
      return { input: freeText(argumentsJson) };
    case 'tool_search':
      return { execution: 'client', arguments: tryParseInnerObject(argumentsJson) ?? {} };
    case 'local_shell':
      return shellAction(argumentsJson);
    case 'shell':
      return commandsAction(argumentsJson);
    case 'apply_patch': {
      const operation = tryParseInnerObject(argumentsJson)?.['operation'];
      return isObject(operation) ? { operation } : undefined;
    }
    default:
      return kind satisfies never;
  }
}

/** The members of a call that was cut, as far as its arguments came. Undefined where they show nothing. */
export function cutMembers(kind: CallKind, argumentsJson: string): JsonObject | undefined {
  if (kind === 'function') return { arguments: argumentsJson };
  if (kind === 'custom') return { input: begunText(argumentsJson) };
  const members = truncatedInput(argumentsJson);
  return members && callMembers(kind, JSON.stringify(members));
}

function shellAction(argumentsJson: string): JsonObject | undefined {
  const given = tryParseInnerObject(argumentsJson);
  const command = given?.['command'];
  if (given === undefined || !Array.isArray(command)) return undefined;
  const { timeout_ms: timeout, working_directory: directory, env, user } = given;
  return {
    action: {
      type: 'exec',
      command,
      env: isObject(env) ? env : {},
      ...(typeof timeout === 'number' ? { timeout_ms: timeout } : {}),
      ...(typeof directory === 'string' ? { working_directory: directory } : {}),
      ...(typeof user === 'string' ? { user } : {}),
    },
  };
}

function commandsAction(argumentsJson: string): JsonObject | undefined {
  const given = tryParseInnerObject(argumentsJson);
  const commands = given?.['commands'];
  if (given === undefined || !Array.isArray(commands)) return undefined;
  const { timeout_ms: timeout = null, max_output_length: length = null } = given;
  return { action: { commands, timeout_ms: timeout, max_output_length: length } };
}

/** The published arguments of the tools that the API defines and the client runs. */
export const typedTools: {
  readonly [K in 'local_shell' | 'shell' | 'apply_patch']: {
    readonly description: string;
    readonly schema: JsonObject;
  };
} = {
  local_shell: {
    description: 'Runs a command on the machine of the user and returns its output.',
    schema: {
      type: 'object',
      properties: {
        command: { type: 'array', items: { type: 'string' }, description: 'The command to run.' },
        timeout_ms: { type: 'integer' },
        working_directory: { type: 'string' },
        env: { type: 'object', additionalProperties: { type: 'string' } },
        user: { type: 'string' },
      },
      required: ['command'],
    },
  },
  shell: {
    description: 'Runs shell commands on the machine of the user and returns their output.',
    schema: {
      type: 'object',
      properties: {
        commands: { type: 'array', items: { type: 'string' }, description: 'Commands to run.' },
        timeout_ms: { type: 'integer' },
        max_output_length: { type: 'integer' },
      },
      required: ['commands'],
    },
  },
  apply_patch: {
    description: 'Creates, changes or deletes a file by a patch in the V4A diff format.',
    schema: {
      type: 'object',
      properties: {
        operation: {
          type: 'object',
          properties: {
            type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
            path: { type: 'string' },
            diff: { type: 'string' },
          },
          required: ['type', 'path'],
        },
      },
      required: ['operation'],
    },
  },
};

/** The arguments of a free-text tool. */
export const freeTextSchema: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
};
