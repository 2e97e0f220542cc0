/** Reads a whole messages request into a conversation. */
import type {
  Conversation,
  Effort,
  OutputFormat,
  Part,
  Reasoning,
  Sampling,
  Tool,
  ToolChoice,
  Turn,
} from '../../../core/conversation.ts';
import type { FieldPath } from '../../../core/errors.ts';
import { type Notes, withPath, withPathOf } from '../../../core/notes.ts';
import type { Sealer } from '../../../core/secret.ts';
import { noteStrangers } from '../../../core/shape.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { isPresent, knownFields } from '../fields.ts';
import { requestShape } from '../shape.ts';
import { checkRequest, isClientTool, readModel } from '../head.ts';
import {
  BlockReader,
  countReading,
  nativeExtras,
  type Reading,
  readMark,
  readToolChanges,
  requestReading as readingOf,
  without,
} from './read-blocks.ts';

/** Claude Code puts a line first that changes with each request. It would defeat prompt caches. */
const billingLine = 'x-anthropic-billing-header:';

/**
 * The body has passed `readHead`.
 * @throws GatewayError `invalid_request` for a member that no other dialect can carry.
 */
export function readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation {
  return readConversation(body, readingOf(notes, sealer));
}

/** The conversation of a request or of a token count. */
function readConversation(body: JsonObject, reading: Reading): Conversation {
  noteStrangers(body, requestShape, reading.notes);
  const reasoning = readReasoning(body, reading.notes);
  const metadata = body['metadata'];
  const userId = isObject(metadata) ? metadata['user_id'] : undefined;
  const endUser = typeof userId === 'string' && userId !== '' ? userId : undefined;
  const parallel = isObject(body['tool_choice'])
    ? body['tool_choice']['disable_parallel_tool_use']
    : undefined;
  const toolChoice = readToolChoice(body['tool_choice']);
  return {
    system: readSystem(body['system'], reading),
    turns: readTurns(body['messages'], reading),
    tools: readTools(body, reading),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(parallel === true ? { parallelTools: false } : {}),
    sampling: readSampling(body),
    output: readOutput(body),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(endUser === undefined ? {} : { endUser }),
    extras: readExtras(body),
  };
}

/** One part per block, never joined: joining changes cache keys. */
function readSystem(system: Json | undefined, reading: Reading): readonly Part[] {
  if (typeof system === 'string') return system === '' ? [] : [{ type: 'text', text: system }];
  if (!isArray(system)) return [];
  const parts: Part[] = [];
  system.forEach((block, i) => {
    if (!isObject(block)) return;
    const { type, text } = block;
    if (type !== 'text' || typeof text !== 'string') {
      reading.refuse(['system', i, 'type'], 'Only text blocks are supported here.');
    } else if (!text.startsWith(billingLine)) {
      parts.push({ type: 'text', text, ...readMark(block) });
    }
  });
  return parts;
}

function readSampling(body: JsonObject): Sampling {
  const { stop_sequences: stops } = body;
  const stop = isArray(stops) ? stops.filter((each) => typeof each === 'string') : [];
  const cap = numberOf(body['max_tokens']);
  const temperature = numberOf(body['temperature']);
  const topP = numberOf(body['top_p']);
  const topK = numberOf(body['top_k']);
  return {
    ...(cap === undefined ? {} : { maxOutputTokens: cap }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(stop.length === 0 ? {} : { stop }),
  };
}

const userIdKey: ReadonlySet<string> = new Set(['user_id']);
const outputConfigKeys: ReadonlySet<string> = new Set(['effort', 'format']);

/** Members without a canonical form retain their names. The writer of the other dialect notes or refuses them. */
function readExtras(body: JsonObject): Conversation['extras'] {
  const extras: { [key: string]: Json | undefined } = { ...without(body, knownFields) };
  const leftovers = [
    ['metadata', userIdKey],
    ['output_config', outputConfigKeys],
  ] as const;
  for (const [key, read] of leftovers) {
    const value = body[key];
    const rest = isObject(value) ? without(value, read) : {};
    if (isPresent(value) && Object.keys(rest).length > 0) extras[key] = rest;
  }
  return nativeExtras(extras).extras ?? {};
}

function numberOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

// `thinking` and `output_config`.

const efforts: ReadonlyMap<string, Effort> = new Map<string, Effort>([
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'xhigh'],
  ['max', 'max'],
]);

/** Undefined if the request sets neither thinking nor effort. */
function readReasoning(body: JsonObject, notes: Notes): Reasoning | undefined {
  const effort = readEffort(body, notes);
  const reasoning = readThinking(body, effort, notes);
  return effort === undefined || reasoning === undefined
    ? reasoning
    : withPath(reasoning, effort.path);
}

/** An effort and its path. */
interface RequestedEffort {
  readonly effort: Effort;
  readonly path: FieldPath;
}

function readThinking(
  body: JsonObject,
  at: RequestedEffort | undefined,
  notes: Notes,
): Reasoning | undefined {
  const thinking = isObject(body['thinking']) ? body['thinking'] : undefined;
  const hidden = thinking?.['display'] === 'omitted' ? { hidden: true } : {};
  const effort = at === undefined ? {} : { effort: at.effort };
  switch (thinking?.['type']) {
    case undefined:
      return at === undefined ? undefined : effort;
    case 'between_tools':
      notes.changed(['thinking', 'type'], 'thinking is off, between calls of tools as well');
      return { effort: 'none' };
    case 'disabled':
      if (at !== undefined) notes.lost(at.path, 'thinking is disabled in the same request');
      return { effort: 'none' };
    case 'enabled': {
      const budget = thinking?.['budget_tokens'];
      return {
        ...effort,
        ...(typeof budget === 'number' ? { budgetTokens: budget } : {}),
        ...hidden,
      };
    }
    case 'adaptive':
      return { ...effort, adaptive: true, ...hidden };
    default:
      notes.changed(['thinking', 'type'], 'an unknown kind of thinking was read as "adaptive"');
      return { ...effort, adaptive: true, ...hidden };
  }
}

/** The effort of the last instruction that sets one, else the request's own. */
function readEffort(body: JsonObject, notes: Notes): RequestedEffort | undefined {
  const messages = isArray(body['messages']) ? body['messages'] : [];
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i];
    if (!isObject(message) || message['role'] !== 'system') continue;
    const effort = effortOf(message, ['messages', i], notes);
    if (effort !== undefined) return effort;
  }
  return effortOf(body, [], notes);
}

function effortOf(holder: JsonObject, at: FieldPath, notes: Notes): RequestedEffort | undefined {
  const config = holder['output_config'];
  const value = isObject(config) ? config['effort'] : undefined;
  if (typeof value !== 'string') return undefined;
  const path = [...at, 'output_config', 'effort'];
  const effort = efforts.get(value);
  if (effort !== undefined) return { effort, path };
  notes.lost(path, 'the effort is not known here');
  return undefined;
}

/** The writer of the other dialect decides how strictly the format is enforced. */
function readOutput(body: JsonObject): OutputFormat {
  const config = body['output_config'];
  const current = isObject(config) ? config['format'] : undefined;
  const format = current ?? body['output_format'];
  if (!isObject(format) || !isObject(format['schema'])) return { type: 'text' };
  const path = isObject(current) ? ['output_config', 'format'] : ['output_format'];
  return withPath({ type: 'json', schema: format['schema'] }, path);
}

// Tools and the choice among them.

const toolKeys: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
  // All tools are offered at once, so nothing is deferred.
  'defer_loading',
]);

/** It keeps the search for tools alive in clients. */
const placeholder = 'DeferredToolPlaceholder';
/** Tools that search among deferred tools have nothing to search once all are offered. */
const searchTool = /^tool_search_tool_/;

/** The declared tools, plus the added and minus the removed ones of the messages. */
function readTools({ tools, messages }: JsonObject, reading: Reading): readonly Tool[] {
  const read = new Map<string, Tool>();
  let deferred = false;
  for (const tool of isArray(tools) ? tools : []) {
    if (!isObject(tool)) continue;
    if (tool['defer_loading'] === true || searchTool.test(textOf(tool['type']))) deferred = true;
    if (!isPlaceholder(tool)) keep(read, readTool(tool));
  }
  if (deferred) {
    reading.notes.changed(['tools'], 'tools to be loaded on demand are all offered at once');
  }
  const { added, removed } = readToolChanges(messages);
  for (const { definition } of added)
    if (!isPlaceholder(definition)) keep(read, readTool(definition));
  for (const name of removed) read.delete(name);
  return [...read.values()];
}

/** A name that is declared again stays at its position. */
function keep(tools: Map<string, Tool>, tool: Tool): void {
  tools.set(tool.name, tool);
}

/** A tool that represents others: a deferred one without a schema, or the search for them. */
function isPlaceholder(tool: JsonObject): boolean {
  if (searchTool.test(textOf(tool['type']))) return true;
  if (tool['name'] === placeholder && tool['defer_loading'] === true) return true;
  return tool['defer_loading'] === true && isClientTool(tool) && !isObject(tool['input_schema']);
}

function readTool(tool: JsonObject): Tool {
  const { name, type, description, input_schema: schema, strict } = tool;
  if (!isClientTool(tool)) {
    return {
      name: typeof name === 'string' ? name : textOf(type),
      schema: {},
      native: { dialect: 'anthropic-messages', value: tool },
    };
  }
  return {
    name: textOf(name),
    ...(typeof description === 'string' ? { description } : {}),
    schema: isObject(schema) ? schema : {},
    ...(typeof strict === 'boolean' ? { strict } : {}),
    ...readMark(tool),
    ...nativeExtras(without(tool, toolKeys)),
  };
}

function readToolChoice(choice: Json | undefined): ToolChoice | undefined {
  if (!isObject(choice)) return undefined;
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return { type: choice['type'] };
    case 'any':
      return { type: 'required' };
    case 'tool':
      return { type: 'tool', name: textOf(choice['name']) };
    default:
      return undefined;
  }
}

// Turns of a conversation. Results come right after their calls and before all other parts, whatever
// neighbouring user messages they were spread over; a system message that is between a call
// and its result goes after the result.

function readTurns(messages: Json | undefined, reading: Reading): readonly Turn[] {
  const builder = new TurnBuilder();
  const blocks = new BlockReader(reading);
  const all = isArray(messages) ? messages : [];
  for (let i = 0; i < all.length; i += 1) {
    const message = all[i];
    if (!isObject(message)) continue;
    const { content } = message;
    noteSettings(message, i, reading);
    const role = roleOf(message['role']);
    const position = { role, path: ['messages', i, 'content'] };
    const parts = blocks.readContent(content, position);
    builder.add(withPath({ role, parts }, ['messages', i]));
  }
  blocks.finish();
  const turns = builder.finish();
  if (turns.length === 0) reading.refuse(['messages'], 'At least one message must have content.');
  return turns;
}

function roleOf(role: Json | undefined): Turn['role'] {
  return role === 'assistant' || role === 'system' ? role : 'user';
}

/** Notes members that have no effect on this model. Unknown ones are noted for the whole request. */
function noteSettings(message: JsonObject, i: number, { notes }: Reading): void {
  const { clear_at: clearAt, output_config: config, role } = message;
  // Instructions stay for good by default.
  if (isPresent(clearAt) && clearAt !== 'never') {
    notes.lost(['messages', i, 'clear_at'], 'this model knows no such field of a message');
  }
  // The effort of an instruction is read with the request's own.
  if (isPresent(config) && role !== 'system') {
    notes.lost(['messages', i, 'output_config'], 'this model knows no such field of a message');
  }
}

class TurnBuilder {
  readonly #turns: Turn[] = [];
  /** Calls of the last assistant turn that have no result yet. */
  readonly #unanswered = new Set<string>();
  /** Position of the user turn that holds the results of these calls. */
  #answers: number | undefined;
  /** Turns between a call and its result. */
  #delayed: Turn[] = [];

  add(turn: Turn): void {
    if (turn.parts.length === 0) return;
    if (turn.role === 'assistant') {
      this.#release();
      this.#turns.push(turn);
      for (const part of turn.parts) if (part.type === 'tool-call') this.#unanswered.add(part.id);
    } else if (turn.role === 'user') this.#user(turn);
    else this.#append(turn);
  }

  finish(): readonly Turn[] {
    this.#release();
    return this.#turns;
  }

  #user(turn: Turn): void {
    const results = turn.parts.filter((part) => part.type === 'tool-result');
    if (results.length === 0) return this.#append(turn);
    for (const part of results) this.#unanswered.delete(part.callId);
    const rest = turn.parts.filter((part) => part.type !== 'tool-result');
    const complete = this.#unanswered.size === 0;
    if (this.#answers === undefined && complete && this.#delayed.length === 0) {
      this.#turns.push(withPathOf(turn, { role: 'user', parts: [...results, ...rest] }));
      return;
    }
    const open = this.#answers === undefined ? undefined : this.#turns[this.#answers];
    if (open === undefined || this.#answers === undefined) {
      this.#answers = this.#turns.push({ role: 'user', parts: results }) - 1;
    } else {
      this.#turns[this.#answers] = { role: 'user', parts: [...open.parts, ...results] };
    }
    if (rest.length > 0) this.#delayed.push({ role: 'user', parts: rest });
    if (complete) this.#release();
  }

  #append(turn: Turn): void {
    if (this.#unanswered.size > 0) this.#delayed.push(turn);
    else this.#turns.push(turn);
  }

  /** All results have arrived. Delayed turns follow them, in the same turn if possible. */
  #release(): void {
    const answers = this.#answers;
    this.#answers = undefined;
    this.#unanswered.clear();
    const delayed = this.#delayed;
    this.#delayed = [];
    for (const turn of delayed) {
      const last = this.#turns.at(-1);
      if (turn.role === 'user' && last !== undefined && this.#turns.length - 1 === answers) {
        this.#turns[this.#turns.length - 1] = {
          role: 'user',
          parts: [...last.parts, ...turn.parts],
        };
      } else {
        this.#turns.push(turn);
      }
    }
  }
}

// Bodies of `POST /v1/messages/count_tokens`.

/**
 * The requested model. The body is checked like a real request, whichever counter is used.
 * @throws GatewayError `invalid_request` or `too_large` for a body that every provider refuses.
 */
export function readCountHead(body: JsonObject): string {
  const model = readModel(body);
  checkRequest(body);
  return model;
}

/**
 * The prompt whose tokens are to be counted. `max_tokens` is not needed, and what a real request
 * would be refused for is omitted and noted. `readCountHead` checked it.
 */
export function readCountRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation {
  return readConversation(body, countReading(notes, sealer));
}
