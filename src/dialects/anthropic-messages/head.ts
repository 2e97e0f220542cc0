/**
 * Checks the head of a request: members that the gateway decides on, and faults that every provider refuses. Both modes
 * pass here. Unknown fields and unknown block types are not checked, since in relay they belong to the
 * upstream.
 */
import type { RequestHead } from '../../core/dialect.ts';
import { type FieldPath, GatewayError, invalidRequest } from '../../core/errors.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../json/value.ts';
import { threadRefusal } from './errors.ts';
import {
  type Field,
  isPresent,
  pathOf,
  readArray,
  readBoolean,
  readInteger,
  readNumber,
  readObject,
  readString,
  required,
  requireString,
  wrongType,
} from './fields.ts';

/** Keys that may not occur twice in a body. */
export const ownedKeys: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'stream',
  'max_tokens',
  'tools',
  'thread',
]);

const maxModelLength = 512;
const maxStops = 8192;
const maxStopLength = 4096;
const maxUserIdLength = 512;
const maxSchemaLength = 512 * 1024;
// Names with control characters would forge log lines.
// oxlint-disable-next-line no-control-regex
const controlCharacter = /[\u0000-\u001f\u007f]/;

/**
 * Reads the head of a messages request.
 * @throws GatewayError `invalid_request` or `too_large` with the path of the field.
 */
export function readHead(body: JsonObject): RequestHead {
  const begun = readOptions(body);
  return finished(begun, checkRequest(body), body);
}

function readOptions(body: JsonObject): Pick<RequestHead, 'model' | 'stream' | 'maxOutputTokens'> {
  const model = readModel(body);
  // 0 is legal here: it warms the prompt cache and generates nothing.
  const field = { of: body, key: 'max_tokens' };
  if (body['max_tokens'] === undefined) throw required(pathOf(field));
  const maxOutputTokens = readInteger(field, { min: 0 });
  if (maxOutputTokens === undefined) throw wrongType(pathOf(field), 'a valid integer');
  const stream = readBoolean({ of: body, key: 'stream' }) ?? false;
  if (isPresent(body['thread'])) throw threadRefusal();
  return { model, stream, maxOutputTokens };
}

function finished(
  begun: ReturnType<typeof readOptions>,
  reasoningBudget: number | undefined,
  body: JsonObject,
): RequestHead {
  return {
    ...begun,
    wantsUsageFrame: true,
    ...(reasoningBudget === undefined ? {} : { reasoningBudget }),
    ...(requestsThinking(body['thinking']) ? { reasons: true } : {}),
  };
}

function requestsThinking(thinking: Json | undefined): boolean {
  return isObject(thinking) && thinking['type'] !== 'disabled';
}

/**
 * Checks the members that requests and token counts share.
 * @returns the budget of thinking tokens.
 * @throws GatewayError as `readHead`.
 */
export function checkRequest(body: JsonObject): number | undefined {
  checkSystem(body);
  const messages = body['messages'];
  const pairing = new ToolPairing();
  listed(messages).forEach((message, i) => check(message, i, pairing));
  pairing.end();
  checkTools(body);
  readNumber({ of: body, key: 'temperature' }, { min: 0, max: 1 });
  readNumber({ of: body, key: 'top_p' }, { min: 0, max: 1 });
  readInteger({ of: body, key: 'top_k' }, { min: 0 });
  checkStops(body);
  checkMetadata(body);
  const config = readObject({ of: body, key: 'output_config' });
  if (config !== undefined) {
    readString({ of: config, key: 'effort', at: ['output_config'] });
    checkFormat({ of: config, key: 'format', at: ['output_config'] });
  }
  checkFormat({ of: body, key: 'output_format' });
  // Unknown kinds of thinking pass, since clients may know newer ones.
  const thinking = readObject({ of: body, key: 'thinking' });
  if (thinking === undefined) return undefined;
  const at = ['thinking'];
  const type = requireString({ of: thinking, key: 'type', at });
  const budget = { of: thinking, key: 'budget_tokens', at };
  const tokens = readInteger(budget, { min: 0 });
  if (type === 'enabled' && tokens === undefined) throw required(pathOf(budget));
  return type === 'enabled' ? tokens : undefined;
}

/** @throws GatewayError `invalid_request`. */
export function readModel(body: JsonObject): string {
  const model = requireString({ of: body, key: 'model' });
  const path = ['model'];
  if (model === '') throw invalidRequest('String should have at least 1 character', path);
  if (model.length > maxModelLength) {
    throw invalidRequest(`String should have at most ${maxModelLength} characters`, path);
  }
  if (controlCharacter.test(model)) {
    throw invalidRequest('String should not contain control characters', path);
  }
  return model;
}

function checkSystem(body: JsonObject): void {
  const { system } = body;
  if (!isPresent(system) || typeof system === 'string') return;
  if (!isArray(system)) throw wrongType(['system'], 'a valid string or a list of text blocks');
  // Text blocks only, as in `system`. Other types are not checked.
  const path = ['system'];
  system.forEach((block, j) => {
    if (!isObject(block)) throw wrongType([...path, j], 'a valid dictionary');
    const type = requireString({ of: block, key: 'type', at: [...path, j] });
    if (type === 'text') requireString({ of: block, key: 'text', at: [...path, j] });
  });
}

function checkStops(body: JsonObject): void {
  const field = { of: body, key: 'stop_sequences' };
  const stops = readArray(field);
  if (stops === undefined) return;
  if (stops.length > maxStops) {
    throw invalidRequest(`List should have at most ${maxStops} items`, pathOf(field));
  }
  stops.forEach((stop, i) => {
    const path = [...pathOf(field), i];
    if (typeof stop !== 'string') throw wrongType(path, 'a valid string');
    if (stop === '') throw invalidRequest('String should have at least 1 character', path);
    if (stop.length > maxStopLength) {
      throw invalidRequest(`String should have at most ${maxStopLength} characters`, path);
    }
  });
}

function checkMetadata(body: JsonObject): void {
  const metadata = readObject({ of: body, key: 'metadata' });
  if (metadata === undefined) return;
  const field = { of: metadata, key: 'user_id', at: ['metadata'] };
  const userId = readString(field);
  if (userId !== undefined && userId.length > maxUserIdLength) {
    throw invalidRequest(`String should have at most ${maxUserIdLength} characters`, pathOf(field));
  }
}

function checkFormat(field: Field): void {
  const format = readObject(field);
  if (format === undefined) return;
  const at = pathOf(field);
  if (requireString({ of: format, key: 'type', at }) !== 'json_schema') {
    throw wrongType([...at, 'type'], "'json_schema'");
  }
  const { schema } = format;
  if (!isPresent(schema)) throw required([...at, 'schema']);
  if (!isObject(schema)) throw wrongType([...at, 'schema'], 'a valid dictionary');
  if (JSON.stringify(schema).length > maxSchemaLength) {
    throw new GatewayError('too_large', 'The JSON schema is larger than 512 KiB.', {
      path: [...at, 'schema'],
    });
  }
}

// Checks the messages of a request as strictly as the native service does.

const maxMessages = 100_000;

function listed(messages: Json | undefined): readonly Json[] {
  if (messages === undefined) throw required(['messages']);
  if (!isArray(messages)) throw wrongType(['messages'], 'a valid list');
  if (messages.length === 0) {
    throw invalidRequest('at least one message is required', ['messages']);
  }
  if (messages.length > maxMessages) {
    throw new GatewayError('too_large', `The request has more than ${maxMessages} messages.`, {
      path: ['messages'],
    });
  }
  return messages;
}

function check(message: Json, i: number, pairing: ToolPairing): void {
  const { role, content } = checkMessage(message, i);
  const blocks = content.map((block, j) =>
    checkBlock(block, { path: ['messages', i, 'content', j], role }),
  );
  if (i === 0 && role === 'assistant') {
    throw invalidRequest('the first message must use the user role', ['messages', 0, 'role']);
  }
  pairing.see(role, blocks, i);
}

interface CheckedMessage {
  readonly role: 'user' | 'assistant' | 'system';
  /** Its blocks, which are not checked yet; empty for a text. */
  readonly content: readonly Json[];
}

const noBlocks: readonly Json[] = [];

/** Checks a message without its blocks. A system turn in mid-conversation is legal. */
function checkMessage(message: Json, i: number): CheckedMessage {
  const path = ['messages', i];
  if (!isObject(message)) throw wrongType(path, 'a valid dictionary');
  const { role, content } = message;
  if (role === undefined) throw required([...path, 'role']);
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw wrongType([...path, 'role'], "'user', 'assistant' or 'system'");
  }
  const configured = role === 'system' && hasEffort(message, path);
  if (typeof content === 'string') return { role, content: noBlocks };
  // An instruction may only set the effort of the following turns, without content.
  if (!isPresent(content) && configured) return { role, content: noBlocks };
  if (!isPresent(content)) throw required([...path, 'content']);
  if (!isArray(content)) {
    throw wrongType([...path, 'content'], 'a valid string or a list of content blocks');
  }
  return { role, content };
}

/** @throws GatewayError `invalid_request` for a configuration of the wrong type. */
function hasEffort(message: JsonObject, at: FieldPath): boolean {
  const field = { of: message, key: 'output_config', at };
  const config = readObject(field);
  if (config === undefined) return false;
  return readString({ of: config, key: 'effort', at: pathOf(field) }) !== undefined;
}

// Checks content blocks. Unknown types pass.

/** Where a block is. `result` is the inside of a tool result. */
interface BlockPosition {
  readonly path: FieldPath;
  readonly role: 'user' | 'assistant' | 'system' | 'result';
}

/** @throws GatewayError `invalid_request` with the path of the field. */
function checkBlock(block: Json, position: BlockPosition): JsonObject {
  const { path } = position;
  if (!isObject(block)) throw wrongType(path, 'a valid dictionary');
  const type = requireString({ of: block, key: 'type', at: path });
  checkRole(type, position);
  switch (type) {
    case 'text':
      requireString({ of: block, key: 'text', at: path });
      break;
    case 'image':
    case 'document':
      checkSource(block, path, type);
      break;
    case 'thinking':
      requireString({ of: block, key: 'thinking', at: path });
      readString({ of: block, key: 'signature', at: path });
      break;
    case 'redacted_thinking':
      requireString({ of: block, key: 'data', at: path });
      break;
    case 'tool_use':
      {
        for (const key of ['id', 'name']) {
          const field = { of: block, key, at: path };
          if (requireString(field) === '') {
            throw invalidRequest('String should have at least 1 character', pathOf(field));
          }
        }
        const { input } = block;
        if (input === undefined) throw required([...path, 'input']);
        if (!isObject(input)) throw wrongType([...path, 'input'], 'a valid dictionary');
      }
      break;
    case 'tool_result':
      checkToolResult(block, path);
      break;
    default:
      break;
  }
  return block;
}

function checkRole(type: string, { path, role }: BlockPosition): void {
  if (type === 'tool_use' && role !== 'assistant') {
    throw invalidRequest('`tool_use` blocks can only be in `assistant` messages', path);
  }
  if (type === 'tool_result' && role !== 'user') {
    throw invalidRequest('`tool_result` blocks can only be in `user` messages', path);
  }
}

function checkToolResult(block: JsonObject, path: FieldPath): void {
  requireString({ of: block, key: 'tool_use_id', at: path });
  readBoolean({ of: block, key: 'is_error', at: path });
  const { content } = block;
  if (!isPresent(content) || typeof content === 'string') return;
  if (!isArray(content)) {
    throw wrongType([...path, 'content'], 'a valid string or a list of content blocks');
  }
  content.forEach((inner, j) =>
    checkBlock(inner, { path: [...path, 'content', j], role: 'result' }),
  );
}

function checkSource(block: JsonObject, path: FieldPath, type: 'image' | 'document'): void {
  const { source } = block;
  const at = [...path, 'source'];
  if (source === undefined) throw required(at);
  if (!isObject(source)) throw wrongType(at, 'a valid dictionary');
  switch (requireString({ of: source, key: 'type', at })) {
    case 'base64':
      return checkBase64(source, at, type);
    case 'url':
      requireString({ of: source, key: 'url', at });
      return;
    case 'text':
      requireString({ of: source, key: 'data', at });
      return;
    case 'content':
      return checkContent(source['content'], [...at, 'content']);
    default:
      return;
  }
}

/** Checks a document with blocks as its content. */
function checkContent(content: Json | undefined, path: FieldPath): void {
  if (!isArray(content)) return;
  content.forEach((inner, j) => checkBlock(inner, { path: [...path, j], role: 'result' }));
}

/** Bytes and addresses were checked before (`body-media.ts`). */
function checkBase64(source: JsonObject, at: FieldPath, type: 'image' | 'document'): void {
  const mediaType = requireString({ of: source, key: 'media_type', at });
  if (type === 'image' && (!mediaType.startsWith('image/') || mediaType === 'image/svg+xml')) {
    throw wrongType(
      [...at, 'media_type'],
      "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    );
  }
  requireString({ of: source, key: 'data', at });
}

// Every call has one result in the user turn after it, results first in their message; an unmatched
// result, a missing or doubled one, and an id used twice are refused.
// Results may be spread over neighbouring user messages, which the service merges and the
// request reader regroups; a system message in between does not break the run.

class ToolPairing {
  readonly #used = new Set<string>();
  /** Calls of the last assistant turn, and whether their result was seen. */
  #calls = new Map<string, boolean>();
  /** Index of the message with the calls. */
  #at = 0;
  #previous: Json | undefined;

  /** @throws GatewayError `invalid_request`. `blocks` is empty for content that is a string. */
  see(role: Json | undefined, blocks: readonly JsonObject[], i: number): void {
    if (role === 'assistant') {
      // Neighbouring assistant messages are one turn.
      if (this.#previous !== 'assistant') this.end();
      blocks.forEach((block, j) => {
        if (block['type'] === 'tool_use') {
          const id = textOf(block['id']);
          if (this.#used.has(id)) {
            throw invalidRequest('`tool_use` ids must be unique', [
              'messages',
              i,
              'content',
              j,
              'id',
            ]);
          }
          this.#used.add(id);
          this.#calls.set(id, false);
          this.#at = i;
        }
      });
    } else if (role === 'user') {
      this.#results(blocks, i);
    }
    this.#previous = role;
  }

  /** The run of user messages after the calls is over. */
  end(): void {
    const open = [...this.#calls].filter(([, answered]) => !answered).map(([id]) => id);
    if (open.length > 0) {
      throw invalidRequest(
        '`tool_use` ids were found without `tool_result` blocks immediately after: ' +
          `${open.map(shown).join(', ')}. Each \`tool_use\` block must have a corresponding ` +
          '`tool_result` block in the next message.',
        ['messages', this.#at],
      );
    }
    this.#calls = new Map();
  }

  #results(blocks: readonly JsonObject[], i: number): void {
    let first = true;
    blocks.forEach((block, j) => {
      if (block['type'] !== 'tool_result') {
        first = false;
        return;
      }
      const path = ['messages', i, 'content', j];
      const id = textOf(block['tool_use_id']);
      const answered = this.#calls.get(id);
      if (answered === undefined) {
        throw invalidRequest(
          `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${shown(id)}. Each ` +
            '`tool_result` block must have a corresponding `tool_use` block in the previous message.',
          path,
        );
      }
      if (answered) {
        throw invalidRequest(
          'each `tool_use` must have a single result. Found multiple `tool_result` blocks with ' +
            `id: ${shown(id)}`,
          path,
        );
      }
      if (!first) {
        throw invalidRequest(
          '`tool_result` blocks must stand before all other blocks of their message',
          path,
        );
      }
      this.#calls.set(id, true);
    });
  }
}

function shown(id: string): string {
  return id.length > 80 ? `${id.slice(0, 80)}…` : id;
}

// Checks tool definitions and the choice among them.

const maxTools = 512;
/** Dots and colons come with tool servers; an upstream that refuses them gets another name. */
const toolName = /^[a-zA-Z0-9_.:-]{1,128}$/;

/** @throws GatewayError `invalid_request` with the path of the first fault. */
function checkTools(body: JsonObject): void {
  const tools = readArray({ of: body, key: 'tools' }) ?? [];
  if (tools.length > maxTools) {
    throw invalidRequest(`List should have at most ${maxTools} items`, ['tools']);
  }
  const names = new Set<string>();
  let allKnown = true;
  tools.forEach((tool, i) => {
    const name = checkTool(tool, ['tools', i]);
    if (name === undefined) {
      allKnown = false;
      return;
    }
    if (names.has(name)) throw invalidRequest('Tool names must be unique.', ['tools', i, 'name']);
    names.add(name);
  });
  checkChoice(body, { names, allKnown, none: tools.length === 0 });
}

/** A tool with `type: "custom"` or without a type is the client's. The vendor defines the others. */
export function isClientTool(tool: JsonObject): boolean {
  return !isPresent(tool['type']) || tool['type'] === 'custom';
}

/** The tool's name. Undefined for a kind that adds several tools or has fixed names. */
function checkTool(tool: Json, path: FieldPath): string | undefined {
  if (!isObject(tool)) throw wrongType(path, 'a valid dictionary');
  readString({ of: tool, key: 'type', at: path });
  if (!isClientTool(tool)) return readString({ of: tool, key: 'name', at: path });
  const name = requireString({ of: tool, key: 'name', at: path });
  if (!toolName.test(name)) {
    throw invalidRequest("String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", [...path, 'name']);
  }
  readString({ of: tool, key: 'description', at: path });
  const schema = readObject({ of: tool, key: 'input_schema', at: path });
  // The placeholder that keeps tool search alive has no schema.
  const deferred = readBoolean({ of: tool, key: 'defer_loading', at: path }) === true;
  if (schema === undefined && !deferred) throw required([...path, 'input_schema']);
  return name;
}

interface KnownTools {
  readonly names: ReadonlySet<string>;
  readonly allKnown: boolean;
  readonly none: boolean;
}

function checkChoice(body: JsonObject, tools: KnownTools): void {
  const choice = readObject({ of: body, key: 'tool_choice' });
  if (choice === undefined) return;
  const at = ['tool_choice'];
  readBoolean({ of: choice, key: 'disable_parallel_tool_use', at });
  const type = requireString({ of: choice, key: 'type', at });
  switch (type) {
    case 'auto':
    case 'none':
      return;
    case 'any':
    case 'tool':
      if (tools.none) {
        throw invalidRequest('tool_choice may only be specified while providing tools', at);
      }
      if (type === 'tool') {
        const name = requireString({ of: choice, key: 'name', at });
        if (tools.allKnown && !tools.names.has(name)) {
          throw invalidRequest(`Tool '${name.slice(0, 128)}' not found in provided tools`, [
            'tool_choice',
            'name',
          ]);
        }
      }
      return;
    default:
      throw wrongType([...at, 'type'], "'auto', 'any', 'tool' or 'none'");
  }
}
